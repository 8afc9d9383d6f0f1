"""Small random histories for every model, linearizable or not, with many concurrent operations."""

import random
from collections.abc import Callable
from dataclasses import replace

from linearizability.model import Model, Rejected
from linearizability.models.append_log import append_log
from linearizability.models.committed_offset import committed_offset
from linearizability.models.compare_and_set import compare_and_set
from linearizability.models.fenced_producer import fenced_producer
from linearizability.models.fifo_queue import EMPTY, fifo_queue
from linearizability.models.group_membership import group_membership
from linearizability.models.key_value import key_value
from linearizability.models.leadership_lease import leadership_lease
from linearizability.models.register import register
from linearizability.models.value_set import value_set
from linearizability.operation import UNKNOWN, Event, EventKind, Operation, Outcome

Input = Callable[[random.Random], tuple]
"""Function that generates the input of an operation."""
Outputs = Callable[[tuple], list]
"""Function that returns the outputs from which one is chosen for an operation with this input."""


def coin() -> Model:
    """Return a nondeterministic model. A toss has one of two results, and a look returns the result."""

    def step(state, given, output):
        if given[0] == "toss":
            return (0, 1)
        return (state,) if output in (UNKNOWN, state) else Rejected("the coin shows the other side")

    return Model(
        name="coin", init=lambda: (0,), step=step, nondeterministic=True, pure=lambda given, _: given[0] == "look"
    )


def _log_outputs(given):
    if given[0] == "append":
        return [0, 1, 2, 3]
    return [((1,), 1), ((2,), 1), ((), 0), ((1, 2), 2), ((2,), 2), ((), 1), ((3,), 3)]


def _pick(*choices):
    return lambda rng: rng.choice(choices)


PLANS: dict[str, tuple[Callable[[], Model], Input, Outputs]] = {
    "register": (
        lambda: register(0),
        lambda rng: rng.choice([("read",), ("write", rng.randrange(3))]),
        lambda given: [0, 1, 2] if given[0] == "read" else [None],
    ),
    "compare-and-set": (
        lambda: compare_and_set(0),
        lambda rng: rng.choice([("read",), ("write", rng.randrange(3)), ("cas", rng.randrange(3), rng.randrange(3))]),
        lambda given: {"read": [0, 1, 2], "write": [None], "cas": [True, False]}[given[0]],
    ),
    "key-value": (
        key_value,
        lambda rng: rng.choice([("get", "k"), ("put", "l", "a"), ("get", "l"), ("append", "k", rng.choice("ab"))]),
        lambda given: ["", "a", "b", "ab", "ba"] if given[0] == "get" else [None],
    ),
    "set": (
        value_set,
        lambda rng: rng.choice([("add", 1), ("add", 2), ("remove", 1), ("contains", 1), ("read",)]),
        lambda given: {"contains": [True, False], "read": [frozenset(), frozenset({1}), frozenset({1, 2})]}.get(
            given[0], [None]
        ),
    ),
    "queue": (
        fifo_queue,
        lambda rng: rng.choice([("enqueue", rng.randrange(3)), ("dequeue",)]),
        lambda given: [0, 1, 2, EMPTY] if given[0] == "dequeue" else [None],
    ),
    "append-log": (
        append_log,
        lambda rng: rng.choice([("append", 0, (rng.randrange(1, 3),)), ("read", 0, rng.randrange(2))]),
        _log_outputs,
    ),
    "linearizable-log": (
        lambda: append_log(linearizable=True),
        lambda rng: rng.choice([("append", 0, (rng.randrange(1, 3),)), ("read", 0, rng.randrange(2))]),
        _log_outputs,
    ),
    "committed-offset": (
        committed_offset,
        lambda rng: rng.choice([("commit", "g", rng.randrange(3)), ("fetch", "g"), ("fetch", "h")]),
        lambda given: [None, 0, 1, 2] if given[0] == "fetch" else [None],
    ),
    "fenced-producer": (
        fenced_producer,
        lambda rng: rng.choice([("init", "t"), ("produce", "t", rng.randrange(2), rng.randrange(2))]),
        lambda given: [(0, 0), (0, 1), (1, 0)] if given[0] == "init" else [True, False],
    ),
    "group-membership": (
        group_membership,
        lambda rng: rng.choice([("rebalance", "g"), ("act", "g", rng.choice("ab"), rng.randrange(3), 0)]),
        lambda given: (
            [(1, frozenset({(0, "a")})), (2, frozenset({(0, "b")})), (0, frozenset())]
            if given[0] == "rebalance"
            else [True, False]
        ),
    ),
    "leadership-lease": (
        leadership_lease,
        lambda rng: rng.choice(
            [
                ("acquire", "r", rng.choice("ab")),
                ("release", "r", 0),
                ("expire", "r", 0),
                ("act", "r", rng.randrange(2)),
            ]
        ),
        lambda given: {"acquire": [0, 1, None], "act": [True, False]}.get(given[0], [None]),
    ),
    "coin": (coin, _pick(("toss",), ("look",)), lambda given: [0, 1] if given[0] == "look" else [None]),
}
"""For each model: its factory, and the functions that generate inputs and outputs."""


def random_history(plan: str, rng: random.Random, size: int) -> list[Operation]:
    """Generate a history of at most `size` operations.

    Half of the histories have random outputs. The other half have outputs of a correct system, of which a tenth are
    replaced at random.
    """
    make, generate_input, outputs = PLANS[plan]
    ticks = rng.choice([size, 2 * size, 4 * size])
    history = []
    for op_id in range(size):
        invoke_ns = rng.randrange(ticks)
        complete_ns = invoke_ns + rng.randrange(max(2, ticks // 2))
        history.append(Operation(op_id=op_id, input=generate_input(rng), invoke_ns=invoke_ns, complete_ns=complete_ns))
    correct = rng.random() < 0.5
    history = _with_correct_outputs(history, make(), outputs, rng) if correct else history
    changed = [
        replace(op, output=rng.choice(outputs(op.input))) if not correct or rng.random() < 0.1 else op for op in history
    ]
    return [_with_outcome(op, rng) for op in changed]


def _with_correct_outputs(history, model, outputs, rng):
    """Apply each operation to the model at a random moment of its interval. Return the operations with the outputs.

    An operation is left out if the model permits none of its outputs.
    """
    states, completed = {}, []
    for op in sorted(history, key=lambda op: rng.uniform(op.invoke_ns, op.complete_ns)):
        key = model.partition(op.input) if model.partition else None
        state = states.get(key, model.first_states()[0])
        choices = outputs(op.input)
        rng.shuffle(choices)
        for output in choices:
            after = model.next_states(state, op.input, output, pure=False)
            if after:
                states[key] = rng.choice(after)
                completed.append(replace(op, output=output))
                break
    return completed


def _with_outcome(op: Operation, rng: random.Random) -> Operation:
    chance = rng.random()
    if chance < 0.2:
        end = None if rng.random() < 0.5 else op.complete_ns
        return replace(op, outcome=Outcome.INFO, output=UNKNOWN, complete_ns=end)
    if chance < 0.25:
        return replace(op, outcome=Outcome.FAIL)
    return op


def as_events(history: list[Operation]) -> list:
    """Return the events of the history in the order of time. At the same time, invocations precede completions."""
    moments = []
    for op in history:
        moments.append((op.invoke_ns, 0, Event(kind=EventKind.INVOKE, op_id=op.op_id, value=op.input)))
        if op.complete_ns is not None:
            kind = EventKind(op.outcome.value)
            moments.append((op.complete_ns, 1, Event(kind=kind, op_id=op.op_id, value=op.output)))
    return [event for *_, event in sorted(moments, key=lambda moment: moment[:2])]
