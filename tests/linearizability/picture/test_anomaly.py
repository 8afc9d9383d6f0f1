"""The picture of one piece of evidence for an anomaly."""

import random
from pathlib import Path

import pytest

from linearizability.check import judge_history
from linearizability.history.reader import open_history
from linearizability.judgement import Evidence
from linearizability.picture.anomaly import draw_anomaly
from linearizability.picture.drawing import LaneKind, Mark, Seen
from tests.linearizability.anomalies.arbitrary_histories import arbitrary_history
from tests.linearizability.anomalies.histories import Tables

EXAMPLES = Path(__file__).parents[3] / "examples" / "histories"


def evidence_of(run_dir, name):
    anomalies = judge_history(open_history(run_dir)).anomalies
    return next(anomaly for anomaly in anomalies if anomaly.name == name).evidence[0]


def picture_of(run_dir, name, **options):
    return draw_anomaly(open_history(run_dir), name, evidence_of(run_dir, name), **options)


@pytest.fixture(scope="module")
def lost_write():
    return picture_of(EXAMPLES / "lost-write", "lost-write")


def test_picture_shows_operations_by_process_and_marks_the_evidence(lost_write):
    bars = {bar.name: bar for bar in lost_write.bars}
    assert bars["121"].mark is Mark.EVIDENCE
    assert bars["121"].label == "produce 4 @ 65-68"
    assert bars["133"].mark is Mark.BAD
    assert lost_write.first_bad.label == "poll 65→74, 8 records"
    assert ("Position", "read 65 → 74 (high watermark 74, last stable 74, start 0)") in bars["133"].details
    lanes = {lane.name: lane for lane in lost_write.lanes}
    assert "133" in {bar.name for bar in lanes["process 11"].bars}
    assert lanes["node 2"].kind is LaneKind.NODE
    assert lanes["node 2"].bars[0].label == "e0 end 17"
    assert [band.label for band in lost_write.bands] == ["delay 2->3 200ms"]


def test_the_log_shows_which_reads_returned_each_record_and_which_passed_it(lost_write):
    log = lost_write.log
    assert log.partition == "orders-2"
    by_offset = {row.offset: row for row in log.rows}
    column = [reader.name for reader in log.readers].index("op 133")
    assert log.readers[column].is_evidence
    assert by_offset[65].is_evidence
    assert by_offset[65].sent == "op 121, process 1, acks=all: acknowledged at 65"
    assert by_offset[65].seen[column] is Seen.PASSED
    assert by_offset[66].seen[column] is Seen.RETURNED
    assert by_offset[64].seen[column] is Seen.NOT_COVERED
    assert Seen.RETURNED not in by_offset[65].seen
    assert list(by_offset) == sorted(by_offset)


def test_operations_of_other_partitions_are_left_out_and_counted(lost_write):
    shown = {bar.name for lane in lost_write.lanes if lane.kind is LaneKind.PROCESS for bar in lane.bars}
    assert lost_write.notes[0] == f"{249 - len(shown)} operations of 249 left out because they did not touch orders-2."


def test_a_window_keeps_the_evidence_and_notes_what_was_left_out():
    picture = picture_of(EXAMPLES / "lost-write", "lost-write", bars_max=4)
    shown = {bar.name for lane in picture.lanes if lane.kind is LaneKind.PROCESS for bar in lane.bars}
    assert {"121", "133"} <= shown
    assert len(shown) <= 4
    assert any("left out around those shown" in note for note in picture.notes)


def test_evidence_from_another_partition_is_labelled_with_it():
    picture = picture_of(EXAMPLES / "torn-transaction", "torn-transaction")
    elsewhere = next(bar for bar in picture.bars if bar.name == "235")
    assert elsewhere.mark is Mark.EVIDENCE
    assert " in orders-" in elsewhere.label
    assert picture.first_bad.name == "241"


def test_a_value_at_two_offsets_has_a_row_for_each(tmp_path):
    history = Tables(topics={"t": {}})
    sent = history.op(0, "produce", 0, 1, acks=-1, producer_id=1, producer_epoch=0)
    history.record(sent, 0, "send", "t", 0, 3, 70)
    read = history.op(1, "fetch", 5, 6, isolation="read_uncommitted")
    history.record(read, 0, "read", "t", 0, 3, 70, leader_epoch=0)
    history.record(read, 1, "read", "t", 0, 40, 70, leader_epoch=0)
    history.write(tmp_path)
    log = picture_of(tmp_path, "duplicate").log
    assert [(row.offset, row.value, row.is_evidence) for row in log.rows] == [(3, "70", True), (40, "70", True)]


def test_without_positions_a_read_passed_the_offsets_between_its_records(tmp_path):
    history = Tables(topics={"t": {}})
    sent = history.op(0, "produce", 0, 1, acks=-1)
    read = history.op(1, "fetch", 5, 6, isolation="read_uncommitted")
    for offset in range(4):
        history.record(sent, offset, "send", "t", 0, offset, 70 + offset)
        if offset in (0, 2):
            history.record(read, offset, "read", "t", 0, offset, 70 + offset, leader_epoch=0)
    history.write(tmp_path)
    log = picture_of(tmp_path, "lost-write").log
    assert [reader.moved for reader in log.readers] == ["0→3"]
    assert [row.seen[0] for row in log.rows] == [Seen.RETURNED, Seen.PASSED, Seen.RETURNED, Seen.NOT_COVERED]


def test_evidence_without_operations_or_partition_has_a_picture(tmp_path):
    history = Tables()
    history.op(0, "commit_offsets", 5, None, "info", group="g", error="REQUEST_TIMED_OUT")
    history.write(tmp_path)
    group_evidence = Evidence((), None, None, None, None, "the group went back")
    picture = draw_anomaly(open_history(tmp_path), "commit-regress", group_evidence)
    assert [bar.label for bar in picture.bars] == ["commit_offsets REQUEST_TIMED_OUT"]
    assert picture.log is None
    empty_partition = Evidence((), "t", 0, 5, None, "the watermark went back")
    assert draw_anomaly(open_history(tmp_path), "watermark-regress", empty_partition).bars == ()


def test_any_finding_in_any_history_has_a_picture(tmp_path):
    """Every anomaly can be drawn in a window of any size, even in a history that no broker would produce."""
    drawn = set()
    for seed in range(10):
        rng = random.Random(seed)
        run_dir = tmp_path / str(seed)
        arbitrary_history(rng).write(run_dir)
        history = open_history(run_dir)
        for anomaly in judge_history(history).anomalies:
            picture = draw_anomaly(history, anomaly.name, anomaly.evidence[0], bars_max=rng.randrange(2, 30))
            drawn.add(anomaly.name)
            names = {bar.name for lane in picture.lanes if lane.kind is LaneKind.PROCESS for bar in lane.bars}
            assert {str(op_id) for op_id in anomaly.evidence[0].op_ids[:2]} & names or not anomaly.evidence[0].op_ids
            for lane in picture.lanes:
                assert [bar.begin_ns for bar in lane.bars] == sorted(bar.begin_ns for bar in lane.bars)
            for row in picture.log.rows if picture.log else ():
                assert len(row.seen) == len(picture.log.readers)
    assert len(drawn) > 8
