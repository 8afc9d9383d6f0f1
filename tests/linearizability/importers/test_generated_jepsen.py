"""Generated histories of Jepsen's Kafka workload: valid ones have no anomaly, and a lost record is detected."""

import random

from hypothesis import given
from hypothesis import strategies as st

from linearizability.check_file import judge_file
from linearizability.judgement import Verdict
from tests.linearizability.many import examples

KEYS, PROCESSES = 2, 4


class Workload:
    """Simulation of Jepsen's workload: a log for each key, and processes that send to the logs and poll them.

    A send takes effect when it completes. A send of unknown outcome takes effect with probability 1/2.

    :param lost: value that no poll returns.
    """

    def __init__(self, rng, lost=None):
        self.rng, self.lost = rng, lost
        self.rows, self.running, self.positions = [], {}, {}
        self.logs = {key: [] for key in range(KEYS)}
        self.value = 0
        self.acknowledged = set()

    def run(self, steps):
        """Return the history as EDN. At its end, process 9 reads all logs from the beginning."""
        live = list(range(PROCESSES))
        for _ in range(steps):
            self.step(live)
        for process in list(self.running):
            self.complete(process, "ok")
        for kind in ("invoke", "ok"):
            self.row(9, kind, "assign", f"[{' '.join(map(str, range(KEYS)))}] :seek-to-beginning? true")
        for key in range(KEYS):
            self.positions[9, key] = 0
        while any(self.positions[9, key] < len(self.logs[key]) for key in range(KEYS)):
            self.row(9, "invoke", "poll", "[[:poll]]")
            self.row(9, "ok", "poll", f"[[:poll {self.poll(9)[0]}]]")
        return "\n".join(self.rows)

    def step(self, live):
        index = self.rng.randrange(len(live))
        process = live[index]
        if process not in self.running:
            self.invoke(process)
            return
        outcome = self.rng.choices(["ok", "fail", "info"], [8, 1, 1])[0]
        self.complete(process, outcome)
        # As in Jepsen, an operation of unknown outcome is the last one of its process.
        if outcome == "info":
            live[index] = max(live) + 10

    def row(self, process, kind, f, value):
        number = len(self.rows)
        self.rows.append(f"{{:index {number} :time {number} :process {process} :type :{kind} :f :{f} :value {value}}}")

    def invoke(self, process):
        f = self.rng.choice(["send", "poll", "txn", "txn", "assign"])
        if f == "assign":
            self.running[process] = f, None
            self.row(process, "invoke", f, "[0 1]")
            return
        sizes = {"send": (1, 0), "poll": (0, 1), "txn": (self.rng.randrange(3), self.rng.randrange(2))}
        sends, polls = sizes[f]
        sent = []
        for _ in range(sends):
            self.value += 1
            sent.append((self.rng.randrange(KEYS), self.value))
        self.running[process] = f, (sent, polls)
        self.row(process, "invoke", f, self.shown([(key, value) for key, value in sent], ["[:poll]"] * polls))

    def shown(self, sends, polls):
        """Return micro-operations as EDN: sends as (key, value or [offset value]), polls as text."""
        return f"[{' '.join([f'[:send {key} {result}]' for key, result in sends] + polls)}]"

    def complete(self, process, outcome):
        f, invoked = self.running.pop(process)
        if f == "assign":
            self.row(process, outcome, f, "[0 1]")
            return
        polls, before = [], dict(self.positions)
        for _ in range(invoked[1]):
            found, reached = self.poll(process)
            polls.append(f"[:poll {found}]")
            self.positions.update(reached)
        has_effect = outcome == "ok" or (outcome == "info" and self.rng.random() < 0.5)
        sent = []
        for key, value in invoked[0]:
            offset = self.append(key, value, has_effect) if has_effect or f == "txn" else None
            is_known = offset is not None and (outcome == "ok" or self.rng.random() < 0.5)
            if outcome == "ok":
                self.acknowledged.add(value)
            sent.append((key, f"[{offset} {value}]" if is_known else value))
        if f == "txn":
            for key in {key for key, _ in invoked[0]}:
                self.logs[key].append(None)  # the control record
        if outcome != "ok" and self.rng.random() < 0.5:
            self.positions = before  # the client seeks back
        self.row(process, outcome, f, self.shown(sent, polls))

    def append(self, key, value, visible):
        self.logs[key].append(value if visible else None)
        return len(self.logs[key]) - 1

    def poll(self, process):
        """Advance a process's position in each log. Return the records as EDN, and the new positions."""
        found, reached = [], {}
        for key, log in self.logs.items():
            begin = self.positions.get((process, key), 0)
            end = min(len(log), begin + self.rng.randrange(1, 5))
            pairs = [
                f"[{offset} {log[offset]}]"
                for offset in range(begin, end)
                if log[offset] is not None and log[offset] != self.lost
            ]
            reached[process, key] = end
            if pairs:
                found.append(f"{key} [{' '.join(pairs)}]")
        self.positions.update(reached)
        return f"{{{' '.join(found)}}}", reached


def judged(folder, text):
    path = folder / "history.edn"
    path.write_text(text)
    return {anomaly.name: anomaly for anomaly in judge_file(path).judgement.anomalies}


@examples(40)
@given(seed=st.integers(0, 2**32), steps=st.integers(5, 120))
def test_valid_history_has_no_anomaly(tmp_path_factory, seed, steps):
    found = judged(tmp_path_factory.mktemp("jepsen"), Workload(random.Random(seed)).run(steps))
    assert not [anomaly for anomaly in found.values() if anomaly.verdict is not Verdict.PERMITTED]


@examples(40)
@given(seed=st.integers(0, 2**32), nth=st.integers(0, 30))
def test_lost_record_is_detected(tmp_path_factory, seed, nth):
    folder = tmp_path_factory.mktemp("jepsen")
    workload = Workload(random.Random(seed))
    workload.run(80)
    followed = []  # acknowledged values with a later value in their log, which shows the loss
    for log in workload.logs.values():
        visible = [value for value in log if value is not None]
        followed += [value for value in visible[:-1] if value in workload.acknowledged]
    if followed:
        lost = followed[nth % len(followed)]
        assert "lost-write" in judged(folder, Workload(random.Random(seed), lost).run(80))
