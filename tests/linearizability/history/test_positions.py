"""Derived positions, compared with an oracle that works row by row, and with positions that clients recorded."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linearizability.history.positions import MOVES, Reads, derive_befores
from linearizability.history.reader import open_history
from tests.linearizability.history.foreign import operation, record

EXAMPLES = Path(__file__).parents[3] / "examples" / "histories"


def derived_by_hand(tables):
    """Return the positions by the rule of `positions`, applied to one read at a time in the order of op_ids."""
    last, rows = {}, []
    for op in sorted(tables["operations"], key=lambda row: row["op_id"]):
        if op["f"] in MOVES:
            last = {key: value for key, value in last.items() if key[0] != op["process"]}
        reads = [row for row in tables["records"] if row["op_id"] == op["op_id"] and row["direction"] == "read"]
        reads.sort(key=lambda row: row["seq"])
        for partition in sorted({row["partition"] for row in reads}):
            offsets = [row["offset"] for row in reads if row["partition"] == partition]
            key = (op["process"], partition)
            before = offsets[0]
            if key in last:
                end, since_ns = last[key]
                events = [event for event in tables["assignments"] if event["process"] == op["process"]]
                if not any(since_ns <= event["at_ns"] <= op["complete_ns"] for event in events):
                    before = end
            last[key] = (offsets[-1] + 1, op["invoke_ns"])
            rows.append((op["op_id"], "t", partition, before, offsets[-1] + 1))
    return sorted(rows)


@st.composite
def readers(draw):
    """Generate consumers that poll, seek, are assigned partitions, and read at any offsets."""
    tables = {"operations": [], "records": [], "assignments": []}
    for op_id in range(1, draw(st.integers(1, 14))):
        process, f = draw(st.integers(0, 1)), draw(st.sampled_from(["poll", "poll", "poll", "poll", "seek", "assign"]))
        tables["operations"].append(operation(op_id, process, f, op_id * 10, op_id * 10 + 8))
        if f != "poll":
            continue
        for seq in range(draw(st.integers(0, 4))):
            topic_id, partition = draw(st.sampled_from(["ID", None])), draw(st.integers(0, 1))
            where = {"topic": "t", "topic_id": topic_id, "partition": partition}
            tables["records"].append(record(op_id, seq, "read", where, draw(st.integers(0, 9)), seq))
    for at_ns in draw(st.lists(st.integers(0, 150), max_size=3)):
        where = {"topic": "t", "topic_id": "ID", "partition": 0}
        event = {"at_ns": at_ns, "process": draw(st.integers(0, 1)), "event": "assigned", **where}
        tables["assignments"].append(event)
    return tables


def derived(tables):
    """Derive the positions with the module under test, partition by partition."""
    moves = [(row["process"], row["at_ns"]) for row in tables["assignments"]]
    moves += [(row["process"], row["invoke_ns"]) for row in tables["operations"] if row["f"] in MOVES]
    moves_ns = {process: np.array(sorted(at_ns for mover, at_ns in moves if mover == process)) for process, _ in moves}
    rows = []
    for topic, partition in sorted({(row["topic"], row["partition"]) for row in tables["records"]}):
        reads = []
        for op in sorted(tables["operations"], key=lambda row: (row["process"], row["op_id"])):
            key = op["op_id"], topic, partition
            own = [row for row in tables["records"] if (row["op_id"], row["topic"], row["partition"]) == key]
            own = [row for row in own if row["direction"] == "read" and row["offset"] is not None]
            if own:
                own.sort(key=lambda row: row["seq"])
                end_ns = op["invoke_ns"] if op["complete_ns"] is None else op["complete_ns"]
                reads.append((op["process"], op["invoke_ns"], end_ns, own[0]["offset"], own[-1]["offset"], op["op_id"]))
        columns = [np.array(column, np.int64) for column in zip(*reads, strict=True)] or [np.empty(0, np.int64)] * 6
        befores = derive_befores(Reads(*columns[:5]), moves_ns)
        ranges = zip(columns[5].tolist(), befores.tolist(), (columns[4] + 1).tolist(), strict=True)
        rows += [(op_id, topic, partition, before, after) for op_id, before, after in ranges]
    return sorted(rows)


@settings(max_examples=80)
@given(tables=readers())
def test_derived_positions_follow_the_rule(tables):
    assert derived(tables) == derived_by_hand(tables)


@pytest.mark.parametrize("name", ["clean", "clean.acks-1-old-leader"])
def test_derived_reads_lie_inside_the_recorded_ones(name):
    history = open_history(EXAMPLES / name)
    tables = {table: history.table(table).to_pylist() for table in ("operations", "records", "assignments")}
    recorded = {
        (row["op_id"], row["topic"], row["partition"]): (row["before"], row["after"])
        for row in history.table("positions").to_pylist()
        if row["cause"] == "read"
    }
    rows = derived(tables)
    assert len(rows) > 50
    for op_id, topic, partition, begin, end in rows:
        before, after = recorded[op_id, topic, partition]
        assert end <= after
        # A client moves past transaction markers. The derived position is still that after the last record.
        assert begin >= before - 3
