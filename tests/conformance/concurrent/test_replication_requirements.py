"""Requirements of replication: a valid history satisfies them, and a change of one fact violates them.

Apache Kafka 4.3.1 produced the valid history; its times are rounded. The link of a follower is cut at 1 s. The follower
is removed from the ISR at 4.5 s, because `replica.lag.time.max.ms` is 3 s. The link is healed at 10 s, and the follower
returns to the ISR at 11 s.

Each test changes one fact and writes the history with the real writer. The history checks of the requirement and the
checkers of anomalies then judge the history.
"""

import pytest

from conformance.concurrent.check import judge_with_history_checks
from conformance.concurrent.requirements import HISTORY_CHECKS
from linearizability.history.recorder import Position, Read, Recorder, Sent
from linearizability.history.run import RunInfo
from linearizability.history.writer import HistoryWriter
from linearizability.judgement import Verdict

SHRINKS = "replication/isr-shrinks-and-expands"
HOLDS = "produce/acks-all-holds-for-isr"
SECOND_NS = 1_000_000_000
FULL, SHRUNK = [1, 2, 3], [1, 3]


class Target:
    def __init__(self):
        self.cluster_properties = {"replica.lag.time.max.ms": "3000"}


class ValidHistory:
    """Facts of the history, with times in seconds. A test changes one of them before the history is written.

    :ivar isrs: time of each Metadata response, and the ISR in it.
    :ivar produces: begin and end of the produce of each value. Values count from 0 and equal their offsets.
    """

    def __init__(self):
        self.cut_s = (1.0, 10.0)
        self.isrs = [(0.5, FULL), (2.0, FULL), (4.4, FULL), (4.6, SHRUNK), (9.0, SHRUNK), (11.0, FULL)]
        self.produces = [(0.6, 0.7), (1.5, 4.5), (5.0, 5.1), (10.5, 10.6)]
        self.read_back = [0, 1, 2, 3]
        self.end_offset = 4

    def write(self, run_dir):
        at = Timeline()
        info = RunInfo("run", cluster={"min.insync.replicas": "2"})
        with HistoryWriter(run_dir, info) as writer:
            recorder = Recorder(writer, clock=at)
            recorder.topic("t", {})
            self._write_rows(recorder, at)
        return run_dir

    def _write_rows(self, recorder, at):
        moments = [(at_s, 0, ("isr", isr)) for at_s, isr in self.isrs]
        for value, (invoked, completed) in enumerate(self.produces):
            moments += [(invoked, 1, ("invoke", value)), (completed, 2, ("complete", value))]
        fault = recorder.fault("cut", "2->1", "requests")
        if self.cut_s is not None:
            moments += [(self.cut_s[0], 0, ("cut", None)), (self.cut_s[1], 0, ("heal", None))]
        pending = {}
        for seconds, _, (action, subject) in sorted(moments, key=lambda moment: moment[:2]):
            at.seconds = seconds
            if action == "isr":
                self._state(recorder, at, "metadata", leader=1, isr=subject)
            elif action == "invoke":
                pending[subject] = recorder.invoke(
                    1, "produce", sends=[Sent(subject)], topic="t", partition=0, acks=-1, attempts=1
                )
            elif action == "complete":
                recorder.complete(pending[subject], "ok", base_offset=subject, node=1)
            elif action == "cut":
                fault.__enter__()
            else:
                fault.__exit__(None, None, None)
        at.seconds = 12.0
        self._state(
            recorder, at, "list_offsets", isolation="read_uncommitted", leader_epoch=0, high_watermark=self.end_offset
        )
        at.seconds = 13.0
        op_id = recorder.invoke(2, "fetch", isolation="read_uncommitted", topic="t", partition=0, offset=0)
        reads = [Read("t", None, 0, value, value, leader_epoch=0) for value in self.read_back]
        recorder.complete(op_id, "ok", reads=reads, positions=[Position("t", None, 0, 0, len(self.produces))])

    @staticmethod
    def _state(recorder, at, source, **columns):
        recorder.state(asked_ns=at(), answered_ns=at(), source=source, node=1, topic="t", partition=0, **columns)


class Timeline:
    def __init__(self):
        self.seconds = 0.0

    def __call__(self):
        return int(self.seconds * SECOND_NS)


def verdict_of(history, requirement_id, tmp_path):
    return judge_with_history_checks(history.write(tmp_path / "run"), HISTORY_CHECKS[requirement_id](Target()))


@pytest.fixture
def history():
    return ValidHistory()


@pytest.mark.parametrize("requirement_id", [SHRINKS, HOLDS])
def test_the_valid_history_is_ok(requirement_id, history, tmp_path):
    result = verdict_of(history, requirement_id, tmp_path)
    assert (result.verdict, result.reason) == (Verdict.OK, "")


def test_an_isr_that_never_shrinks_is_a_violation(history, tmp_path):
    history.isrs = [(at_s, FULL) for at_s, _ in history.isrs]
    result = verdict_of(history, SHRINKS, tmp_path)
    assert result.verdict is Verdict.VIOLATION
    assert result.reason == "node 2 was in every ISR while it was cut for 9.0 s"


def test_an_isr_that_does_not_expand_is_a_violation(history, tmp_path):
    history.isrs[-1] = (11.0, SHRUNK)
    result = verdict_of(history, SHRINKS, tmp_path)
    assert result.verdict is Verdict.VIOLATION
    assert result.reason == "node 2 is not in the ISR 1.0 s after healing"


def test_an_isr_that_shrinks_only_after_healing_is_a_violation(history, tmp_path):
    history.isrs = [(0.5, FULL), (9.9, FULL), (10.5, SHRUNK), (11.0, FULL)]
    assert verdict_of(history, SHRINKS, tmp_path).verdict is Verdict.VIOLATION


def test_an_acknowledgement_that_does_not_wait_is_a_violation(history, tmp_path):
    history.produces[1] = (1.5, 1.6)
    result = verdict_of(history, HOLDS, tmp_path)
    assert result.verdict is Verdict.VIOLATION
    assert "was acknowledged 0.60 s after node 2 was cut" in result.reason


def test_a_lost_record_that_was_sent_during_the_cut_is_a_violation(history, tmp_path):
    history.read_back = [0, 2, 3]
    result = verdict_of(history, HOLDS, tmp_path)
    assert result.verdict is Verdict.VIOLATION
    assert result.reason.startswith("lost-write (1)")


@pytest.mark.parametrize("requirement_id", [SHRINKS, HOLDS])
def test_a_history_without_a_cut_is_unknown(requirement_id, history, tmp_path):
    history.cut_s = None
    assert verdict_of(history, requirement_id, tmp_path).verdict is Verdict.UNKNOWN


def test_a_history_without_a_record_during_the_cut_is_unknown(history, tmp_path):
    history.produces[1] = (5.0, 5.05)
    result = verdict_of(history, HOLDS, tmp_path)
    assert result.verdict is Verdict.UNKNOWN
    assert result.reason == "no acks=all record that was sent during the cut was acknowledged"
