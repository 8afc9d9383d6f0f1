"""Interleaved transactions that tests append to a history: the shortest cycle of each anomaly, or arbitrary steps.

`linearizability.synthetic.interleavings` defines steps and their options.
"""

from linearizability.synthetic.episode import Episode
from linearizability.synthetic.interleavings import INTERLEAVINGS, READ, SEND, write_interleaving
from linearizability.synthetic.workload import Topic

FIRST_VALUE = 90_000
"""The lowest value of the appended records; the histories themselves have lower values."""


def write_into(tables, steps):
    """Write the steps to two new partitions, after all other operations of a history."""
    topic, operations = Topic.of(1, 0.0), tables.rows["operations"]
    times = [row[name] or 0 for row in operations for name in ("invoke_ns", "complete_ns")]
    topic.now_ns, topic.next_op_id, topic.next_value = max(times, default=0) + 1000, len(operations), FIRST_VALUE
    episode = Episode(topic, 0)
    write_interleaving(episode, steps)
    for name, table in episode.tables().items():
        tables.rows[name] += table.to_pylist()


def planting(name):
    """Return a function that plants the cycle anomaly of this name."""

    def plant(tables, _):
        write_into(tables, INTERLEAVINGS[name])
        return True

    return plant


def serial_steps(steps):
    """Return the steps of one transaction after the other, without options, as a correct broker executes them."""
    return sorted((step[:3] for step in steps), key=lambda step: step[0])


def arbitrary_steps(rng):
    """Return the interleaved steps of up to four transactions, some with an option."""
    numbers, steps = range(1, rng.randrange(3, 6)), []
    kinds = rng.choice([[SEND], [SEND, READ], [SEND, READ, READ]])
    options = rng.choice([[None], [None, None, 1, "dirty"]])
    for _ in range(rng.randrange(4, 12)):
        kind = rng.choice(kinds)
        option = rng.choice(options)
        has_no_option = option is None or (kind == SEND and option == "dirty")
        rest = () if has_no_option else (option + rng.randrange(5) if option == 1 else option,)
        steps.append((rng.choice(numbers), kind, rng.choice("ab"), *rest))
    return steps


PLANTED_CYCLES = {name: planting(name) for name in INTERLEAVINGS}
"""Functions that each plant a cycle anomaly in any history."""
