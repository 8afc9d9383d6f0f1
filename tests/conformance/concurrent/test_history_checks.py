"""History checks of one broker: valid histories pass, and changes of single rows are violations."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.concurrent.history_checks import (
    _end_offsets,
    _lowest_end_after,
    acknowledged_offsets_are_unique,
    reads_ascend,
    reads_stay_below_watermark,
)
from linearizability.judgement import Verdict


class Table(list):
    def to_pylist(self):
        return list(self)


class History:
    """Fake of `History` with tables of given rows."""

    def __init__(self, **tables):
        self._tables = tables

    def table(self, name):
        return Table(self._tables.get(name, ()))


def operation(op_id, process=1, invoke_ns=0, complete_ns=None, outcome="ok"):
    return {
        "op_id": op_id,
        "process": process,
        "invoke_ns": invoke_ns,
        "complete_ns": complete_ns or op_id * 10,
        "outcome": outcome,
    }


def record(op_id, seq, offset, value=0, *, direction="read", partition=0):
    return {
        "op_id": op_id,
        "seq": seq,
        "offset": offset,
        "value": value,
        "direction": direction,
        "topic": "t",
        "partition": partition,
    }


def position(op_id, high_watermark):
    return {"op_id": op_id, "topic": "t", "partition": 0, "high_watermark": high_watermark}


def end(at_ns, high_watermark, source="list_offsets"):
    return {"asked_ns": at_ns, "source": source, "topic": "t", "partition": 0, "high_watermark": high_watermark}


def verdicts(findings):
    return [each.verdict for each in findings]


# --- reads ascend


def test_ascending_reads_of_two_processes_are_valid():
    history = History(
        operations=[operation(1, 1), operation(2, 2), operation(3, 1)],
        records=[record(3, 0, 2), record(1, 0, 0), record(1, 1, 1), record(2, 0, 0), record(2, 1, 4)],
    )
    assert reads_ascend(history) == []


def test_a_repeated_and_a_backward_read_are_violations():
    for offsets in ([0, 1, 1], [0, 2, 1]):
        history = History(
            operations=[operation(1)], records=[record(1, seq, offset) for seq, offset in enumerate(offsets)]
        )
        (found,) = reads_ascend(history)
        assert found.verdict is Verdict.VIOLATION
        assert found.topic == "t"
        assert "process 1 read offset 1 of t-0 after offset" in found.text


def test_a_backward_read_across_two_polls_is_a_violation():
    history = History(operations=[operation(1), operation(2)], records=[record(2, 0, 3), record(1, 0, 7)])
    assert verdicts(reads_ascend(history)) == [Verdict.VIOLATION]


def test_partitions_are_distinguished():
    history = History(operations=[operation(1)], records=[record(1, 0, 7), record(1, 1, 3, partition=1)])
    assert reads_ascend(history) == []


def test_a_history_without_reads_is_unknown():
    assert verdicts(reads_ascend(History(records=[record(1, 0, 0, direction="send")]))) == [Verdict.UNKNOWN]


# --- reads stay below the watermark


def watched(*, later_watermark=2, later_end=2, requested_ns=100):
    """Return a history of one Fetch until 50 ns, which returns offsets 0 and 1 with the high watermark 1.

    :param later_watermark: high watermark of a second Fetch.
    :param later_end: end offset of a ListOffsets response.
    :param requested_ns: time of the second Fetch and of the ListOffsets request.
    """
    return History(
        operations=[operation(1, complete_ns=50), operation(2, invoke_ns=requested_ns, complete_ns=150)],
        records=[record(1, 0, 0), record(1, 1, 1)],
        positions=[position(1, 1), position(2, later_watermark)],
        states=[end(10, 0), end(requested_ns, later_end), end(200, 0, source="metadata")],
    )


def test_reads_below_later_watermarks_and_ends_are_valid():
    """Offset 1 may be read with the high watermark 1, because the broker determines the high watermark first."""
    assert reads_stay_below_watermark(watched()) == []


def test_a_record_at_the_watermark_of_a_later_response_is_a_violation():
    (found,) = reads_stay_below_watermark(watched(later_watermark=1))
    assert found.text == "offset 1 of t-0 (op 1) was read before another Fetch returned the high watermark 1"


def test_a_record_at_an_end_that_is_returned_later_is_a_violation():
    (found,) = reads_stay_below_watermark(watched(later_end=1))
    assert found.text == "offset 1 of t-0 (op 1) was read before ListOffsets returned the end offset 1"


@pytest.mark.parametrize("kind", ["later_end", "later_watermark"])
def test_an_end_requested_before_the_read_completed_is_ignored(kind):
    history = watched(**{kind: 1}, requested_ns=49)
    assert verdicts(reads_stay_below_watermark(history)) == [Verdict.UNKNOWN]


def test_a_read_without_a_later_end_is_unknown():
    history = History(operations=[operation(1, complete_ns=50)], records=[record(1, 0, 0)], positions=[position(1, 1)])
    assert verdicts(reads_stay_below_watermark(history)) == [Verdict.UNKNOWN]


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=12), st.integers(0, 30))
def test_the_lowest_later_end_is_found(ends, at_ns):
    history = History(states=[end(end_ns, offset) for end_ns, offset in ends])
    lowest = min((offset for end_ns, offset in ends if end_ns > at_ns), default=None)
    found = _lowest_end_after(_end_offsets(history, {})["t", 0], at_ns)
    assert (None if found is None else found.offset) == lowest


# --- acknowledged offsets


def sent(op_id, offset, value):
    return record(op_id, 0, offset, value, direction="send")


def test_different_offsets_are_valid():
    history = History(operations=[operation(1), operation(2)], records=[sent(1, 0, 10), sent(2, 1, 11)])
    assert acknowledged_offsets_are_unique(history) == []


def test_one_offset_for_two_values_is_a_violation():
    history = History(operations=[operation(1), operation(2)], records=[sent(1, 0, 10), sent(2, 0, 11)])
    (found,) = acknowledged_offsets_are_unique(history)
    assert found.text == "values 10 and 11 were both acknowledged at offset 0 of t-0"


def test_only_acknowledged_records_count():
    unknown = History(operations=[operation(1), operation(2, outcome="info")], records=[sent(1, 0, 10), sent(2, 0, 11)])
    assert acknowledged_offsets_are_unique(unknown) == []
    nothing = History(operations=[operation(1)], records=[sent(1, None, 10)])
    assert verdicts(acknowledged_offsets_are_unique(nothing)) == [Verdict.UNKNOWN]
