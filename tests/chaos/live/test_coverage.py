"""States of partitions that a history covers, by the responses and errors in it."""

import itertools

import pytest

from chaos.live.coverage import STATES, coverage_of
from linearizability.history.reader import open_history
from linearizability.history.recorder import Recorder
from linearizability.history.run import RunInfo
from linearizability.history.writer import HistoryWriter


@pytest.fixture
def covered(tmp_path):
    def covered(*responses, errors=()):
        """Return the coverage. Each of `responses` is (node, leader, epoch, ISR) or (node, end offset)."""
        clock = itertools.count(1)
        with HistoryWriter(tmp_path / "run", RunInfo(run_id="r", seed=0, target="t")) as writer:
            recorder = Recorder(writer, clock=lambda: next(clock))
            for each in responses:
                row = {
                    "asked_ns": next(clock),
                    "answered_ns": next(clock),
                    "node": each[0],
                    "topic": "a",
                    "partition": 0,
                }
                if len(each) == 2:
                    recorder.state(**row, source="list_offsets", high_watermark=each[1])
                else:
                    _, leader, epoch, isr = each
                    recorder.state(**row, source="metadata", leader=leader, leader_epoch=epoch, isr=isr)
            for error in errors:
                recorder.complete(recorder.invoke(1, "produce", topic="a", partition=0), "info", error)
        return dict(coverage_of(open_history(tmp_path / "run"), "a", 2))

    return covered


@pytest.mark.parametrize(
    ("responses", "states"),
    [
        ([(1, 1, 0, [1, 2, 3]), (1, 1, 0, [1, 2, 3])], {}),
        ([(1, 1, 0, [1, 2, 3]), (1, 1, 0, [1, 2]), (1, 1, 0, [1, 2, 3])], {"ISR shrunk": 1, "ISR grown": 1}),
        ([(1, 1, 0, [1, 2, 3]), (1, 1, 0, [1, 2]), (3, 1, 0, [1, 2, 3]), (1, 1, 0, [1, 2])], {"ISR shrunk": 1}),
        (
            [(1, 1, 0, [1, 2]), (1, 1, 0, [1])],
            {"ISR shrunk": 1, "ISR of one": 1, "ISR below min.insync.replicas": 1},
        ),
        ([(1, 1, 0, [1, 2]), (2, 2, 1, [1, 2])], {"leader elected": 1}),
        (
            [(1, 1, 0, [1, 2]), (3, 3, 1, [3])],
            {"leader elected": 1, "leader outside the last ISR (unclean)": 1},
        ),
        (
            [(1, 1, 0, [1]), (2, None, 1, [1]), (2, 1, 2, [1])],
            {"partition without a leader": 1, "leader elected": 1},
        ),
        (
            [(1, 1, 0, [1, 2]), (2, 2, 1, [1, 2]), (1, 1, 0, [1, 2])],
            {"leader elected": 1, "leader deposed without knowing": 1},
        ),
        ([(1, 5), (2, 3), (1, 7)], {}),
        ([(1, 5), (1, 3)], {"log truncated": 1}),
    ],
)
def test_responses_of_nodes_cover_states(covered, responses, states):
    assert covered(*responses) == states
    assert set(states) <= set(STATES)


def test_errors_of_produces_are_states(covered):
    assert covered(errors=["NOT_ENOUGH_REPLICAS", "NETWORK_EXCEPTION", None]) == {
        "acks=all rejected: NOT_ENOUGH_REPLICAS": 1,
        "produce without a response": 1,
    }
