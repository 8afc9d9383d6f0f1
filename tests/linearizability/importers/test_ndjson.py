"""Histories as NDJSON: a round trip changes nothing, and errors are reported with their line."""

import io
import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linearizability.check import judge_history
from linearizability.history.errors import HistoryError, NotARunError
from linearizability.history.reader import open_history
from linearizability.history.saving import save
from linearizability.history.schema import SCHEMAS
from linearizability.history.validate import validate
from linearizability.importers.ndjson import read_ndjson, write_ndjson
from tests.linearizability.anomalies.arbitrary_histories import arbitrary_history
from tests.linearizability.anomalies.histories import Tables
from tests.linearizability.anomalies.simulated_partition import SimulatedPartition
from tests.linearizability.many import examples

RUN = '{"table": "run", "format": 1, "run_id": "r", "complete": true}'
ENDS = '"complete_ns": 9, "outcome": "ok"'
PRODUCE = f'{{"table": "operations", "op_id": 1, "process": 1, "f": "produce", "invoke_ns": 5, {ENDS}}}'
POLL = f'{{"table": "operations", "op_id": 2, "process": 2, "f": "poll", "invoke_ns": 6, {ENDS}}}'
SEND = '{"table": "records", "op_id": 1, "seq": 0, "direction": "send", "topic": "t", "partition": 0, "value": 3}'


def written(history):
    text = io.StringIO()
    line_count = write_ndjson(history, text)
    assert line_count == text.getvalue().count("\n")
    return text.getvalue()


def assert_same(one, other):
    assert one.run == other.run
    for name in SCHEMAS:
        assert one.table(name).equals(other.table(name)), name
        assert one.is_absent(name) == other.is_absent(name), name


def valid(history):
    try:
        validate(history)
    except HistoryError:
        return False
    return True


@examples(40)
@given(seed=st.integers(0, 2**32), valid_run=st.booleans())
def test_round_trip(tmp_path_factory, seed, valid_run):
    folder = tmp_path_factory.mktemp("history")
    rng = random.Random(seed)
    tables = SimulatedPartition(rng).run(rng.randrange(1, 40)) if valid_run else arbitrary_history(rng)
    history = open_history(tables.write(folder / "run"))
    path = folder / "history.ndjson"
    path.write_text(written(history))
    if not valid(history):
        with pytest.raises(HistoryError, match=rf"{path}, line \d+: table "):
            read_ndjson(path)
        return
    imported = read_ndjson(path)
    assert_same(history, imported)
    assert judge_history(imported) == judge_history(history)
    save(imported, folder / "copy")
    assert_same(history, open_history(folder / "copy"))


@examples(30)
@given(
    text=st.text(st.characters(exclude_categories=["Cs"])),
    number=st.integers(-(2**63), 2**63 - 1),
    isr=st.lists(st.integers(0, 9)),
)
def test_every_value_is_preserved(tmp_path_factory, text, number, isr):
    folder = tmp_path_factory.mktemp("history")
    tables = Tables(topics={text: {"cleanup.policy": "delete"}}, seed=number, clients={"7": {"acks": "all"}})
    op_id = tables.op(7, "produce", 1, None, "info", error=text)
    tables.record(op_id, 0, "send", text, 0, None, number, key=text, intact=None)
    tables.add("states", asked_ns=1, answered_ns=1, source="metadata", isr=isr)
    history = open_history(tables.write(folder / "run"))
    (folder / "history.ndjson").write_text(written(history), encoding="utf-8")
    assert_same(history, read_ndjson(folder / "history.ndjson"))


def test_table_without_rows_is_not_absent(tmp_path):
    path = tmp_path / "history.ndjson"
    path.write_text(f'{RUN}\n{{"table": "positions"}}\n\n{PRODUCE}\n')
    history = read_ndjson(path)
    assert not history.is_absent("positions")
    assert history.is_absent("records")
    assert '{"table": "positions"}\n' in written(history)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([RUN, PRODUCE, "{"], "line 3: not JSON"),
        ([RUN, PRODUCE, "[1]"], "line 3: not an object with a table (run, operations, records, "),
        ([RUN, PRODUCE, '{"op_id": 4}'], "line 3: not an object with a table"),
        ([RUN, PRODUCE, '{"table": "record", "op_id": 4}'], "line 3: not an object with a table"),
        ([RUN, '{"table": "records", "ofset": 4}'], "line 2: table records has no column ofset"),
        ([RUN, PRODUCE.replace("9", '"9"')], 'line 2: table operations: complete_ns is "9", not of type int64'),
        ([RUN, PRODUCE.replace("9", "9.0")], "line 2: table operations: complete_ns is 9.0, not of type int64"),
        ([RUN, PRODUCE.replace("9", "true")], "line 2: table operations: complete_ns is true, not of type int64"),
        ([RUN, PRODUCE.replace("9", str(2**63))], f"line 2: table operations: complete_ns is {2**63}, not"),
        ([RUN, PRODUCE.replace('"ok"', '"\\ud800"')], 'line 2: table operations: outcome is "\\ud800", not'),
        ([RUN, '{"table": "states", "isr": [1, "2"]}'], 'line 2: table states: isr is [1, "2"], not of type list'),
        ([RUN, PRODUCE.replace(": 9", ": 4")], "line 2: table operations: complete_ns is 4; that is before its"),
        ([RUN, PRODUCE.replace(', "f": "produce"', "")], "line 2: table operations: f is null; null is not allowed"),
        ([RUN, PRODUCE.replace('"ok"', '"fine"')], "line 2: table operations: outcome is 'fine'; known are ok, fail,"),
        ([RUN, PRODUCE, PRODUCE], "line 3: table operations: line 2 has the same op_id"),
        ([RUN, PRODUCE, SEND, POLL, SEND.replace(": 0, \"v", ": -1, \"v")], "line 5: table records: partition is -1"),
        ([RUN, PRODUCE, SEND, SEND.replace('"seq": 0', '"seq": 1')], "line 4: table records: value is 3, which line 3"),
        ([RUN, SEND], "line 2: table records: op_id is 1; there is no such operation"),
        ([RUN, RUN], "line 2: a second line of table run"),
        ([RUN.replace("true", '"yes"')], 'line 1: complete is "yes", not true or false'),
        ([RUN, PRODUCE, b'{"table": "\xff"}'], "line 3: not UTF-8"),
    ],
)  # fmt: skip
def test_damage_is_named_with_its_line(tmp_path, lines, message):
    path = tmp_path / "history.ndjson"
    path.write_bytes(b"".join((line if isinstance(line, bytes) else line.encode()) + b"\n" for line in lines))
    with pytest.raises(HistoryError) as caught:
        read_ndjson(path)
    assert str(caught.value).startswith(f"{path}, {message}")
    assert "\n" not in str(caught.value)


def test_file_without_a_run_is_rejected(tmp_path):
    path = tmp_path / "history.ndjson"
    path.write_text(PRODUCE)
    with pytest.raises(HistoryError, match="it has no line"):
        read_ndjson(path)
    path.write_text(json.dumps({"table": "run", "format": 2}))
    with pytest.raises(NotARunError, match="line 1: format is 2, this version reads format 1"):
        read_ndjson(path)


def test_saving_overwrites_nothing(tmp_path):
    path = tmp_path / "history.ndjson"
    path.write_text(RUN)
    history = read_ndjson(path)
    save(history, tmp_path / "run")
    with pytest.raises(HistoryError, match="already contains a run"):
        save(history, tmp_path / "run")
    with pytest.raises(HistoryError, match="cannot be written"):
        save(history, path / "run")
