"""Derived positions agree with the rule, read row by row, and with what careful clients recorded."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linearizability.history.positions import MOVES, derive_positions
from linearizability.history.reader import open_history
from linearizability.history.schema import SCHEMAS
from linearizability.history.validate import validate
from tests.linearizability.history.foreign import operation, record, write_history

EXAMPLES = Path(__file__).parents[3] / "examples" / "histories"


def derived_by_hand(tables):
    """The rule of the format, one read at a time, in the order of op_ids."""
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
                end, since = last[key]
                events = [event for event in tables["assignments"] if event["process"] == op["process"]]
                if not any(since <= event["at_ns"] <= op["complete_ns"] for event in events):
                    before = end
            last[key] = (offsets[-1] + 1, op["invoke_ns"])
            rows.append((op["op_id"], partition, before, offsets[-1] + 1))
    return sorted(rows)


@st.composite
def readers(draw):
    """Consumers that poll, seek and are assigned partitions, and read at any offsets."""
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


@settings(max_examples=80, deadline=None)
@given(tables=readers())
def test_the_derived_table_follows_the_rule(tables, tmp_path_factory):
    history = open_history(write_history(tmp_path_factory.mktemp("reads") / "run", tables))
    validate(history)
    assert history.is_absent("positions")
    derived = derive_positions(history)
    assert derived.schema == SCHEMAS["positions"]
    rows = derived.select(["op_id", "partition", "before", "after"]).to_pydict().values()
    assert sorted(zip(*rows, strict=True)) == derived_by_hand(tables)
    assert set(derived["cause"].to_pylist()) <= {"read"}


@pytest.mark.parametrize("name", ["clean", "clean.acks-1-old-leader"])
def test_derived_reads_lie_inside_those_that_careful_clients_recorded(name):
    history = open_history(EXAMPLES / name)
    recorded = {}
    for row in history.table("positions").to_pylist():
        if row["cause"] == "read":
            recorded[row["op_id"], row["topic_id"], row["partition"]] = (row["before"], row["after"])
    derived = derive_positions(history).to_pylist()
    assert len(derived) > 50
    for row in derived:
        before, after = recorded[row["op_id"], row["topic_id"], row["partition"]]
        assert row["after"] <= after
        # What lies between is a transaction marker, which only the client's position passes over.
        assert row["before"] >= before or row["before"] >= before - 3
