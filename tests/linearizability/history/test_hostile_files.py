"""Hostile input files: each is rejected in bounded memory, by a message of one line.

The files are special files, Parquet files with a false footer, with endlessly repeated rows or with damage, and tables
that are too large.
"""

import os
import shutil
import socket
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kafkatrial.__main__ import exit_code
from kafkatrial.exit_codes import ExitCode
from linearizability.check import judge
from linearizability.history.errors import HistoryError
from linearizability.history.reader import open_history
from linearizability.history.rows import RepeatSample
from linearizability.history.schema import SCHEMAS
from linearizability.history.validate import check_sizes

pytestmark = pytest.mark.sampled(2)

EXAMPLES = Path(__file__).parents[3] / "examples" / "histories"


@pytest.fixture
def run(tmp_path):
    return Path(shutil.copytree(EXAMPLES / "clean", tmp_path / "run"))


def create(kind, path, monkeypatch):
    """Create something other than a regular file."""
    path.unlink(missing_ok=True)
    match kind:
        case "FIFO":
            os.mkfifo(path)
        case "socket":
            monkeypatch.chdir(path.parent)  # because the length of a socket's path is limited
            with socket.socket(socket.AF_UNIX) as listener:
                listener.bind(path.name)
        case "device":
            path.symlink_to("/dev/zero")
        case "dangling":
            path.symlink_to("nowhere")
        case "directory":
            path.mkdir()


SHOWN = {
    "FIFO": "a FIFO",
    "socket": "a socket",
    "device": "a character device",
    "dangling": "a link to a file that does not exist",
    "directory": "a directory",
}


@pytest.mark.parametrize("kind", SHOWN)
@pytest.mark.parametrize("place", ["run.json", "history/operations/00001.parquet", "history/records.parquet"])
def test_special_file_is_rejected_in_one_line_that_names_it(run, capsys, monkeypatch, kind, place):
    create(kind, run / place, monkeypatch)
    if (kind, place) == ("directory", "history/records.parquet"):
        return  # valid: Spark writes a table as a directory
    assert exit_code(["check", str(run)]) is ExitCode.USAGE
    (line,) = capsys.readouterr().err.splitlines()
    assert place in line
    assert SHOWN[kind] in line


@pytest.mark.parametrize("kind", ["FIFO", "socket", "device", "dangling", "directory"])
@pytest.mark.parametrize(
    "command",
    [["check"], ["report"], ["check", "--model", "register"], ["export"], ["run", "--expectations"]],
    ids=" ".join,
)
def test_every_command_rejects_special_files(tmp_path, capsys, monkeypatch, command, kind):
    path = tmp_path / "input"
    create(kind, path, monkeypatch)
    more = [str(tmp_path / "out")] if command == ["export"] else []
    assert exit_code([*command, str(path), *more]) is ExitCode.USAGE
    (line,) = capsys.readouterr().err.splitlines()
    assert str(path) in line


def varint(number):
    digits = bytearray()
    number <<= 1  # zigzag
    while number >= 128:
        digits.append(number % 128 | 128)
        number >>= 7
    return bytes([*digits, number])


def claim(path, rows, *, everywhere):
    """Replace the number of rows in a Parquet footer. With `everywhere`, replace it in the only row group too."""
    true_rows = varint(pq.read_metadata(path).num_rows)
    content = path.read_bytes()
    length = int.from_bytes(content[-8:-4], "little")
    body, footer = content[: -8 - length], content[-8 - length : -8]
    # The Thrift field headers around the number of rows: first of the file, then of the row group.
    headers = [(b"\x16", b"\x19"), *([(b"\x16", b"\x26")] if everywhere else [])]
    for before, after in headers:
        assert footer.count(before + true_rows + after) == 1
        footer = footer.replace(before + true_rows + after, before + varint(rows) + after)
    path.write_bytes(body + footer + len(footer).to_bytes(4, "little") + b"PAR1")


@pytest.mark.parametrize(("rows", "everywhere"), [(10**12, False), (10**12, True), (10**7, True), (200, True)])
def test_footer_with_a_false_number_of_rows_is_rejected(run, rows, everywhere):
    path = run / "history" / "records.parquet"
    table = pq.read_table(path)
    pq.write_table(table, path, write_statistics=False)
    claim(path, rows, everywhere=everywhere)
    with pytest.raises(HistoryError, match=r"records\.parquet.*(footer|not a readable)"):
        judge(run)


@pytest.mark.parametrize("name", ["operations", "records"])
@pytest.mark.parametrize("distinct", [1, 200_000])
def test_endlessly_repeated_rows_are_rejected_before_judgement(run, monkeypatch, name, distinct):
    """The file repeats one row 100,000 times, or a block of 200,000 distinct rows five times."""
    monkeypatch.setattr("linearizability.check.LARGE_ROWS", 1000)
    monkeypatch.setattr("linearizability.shards.laying_out._distributed", None)
    row = pq.read_table(run / "history" / "records.parquet").slice(0, 1)
    if name == "operations":
        row = pa.concat_tables(pq.read_table(p) for p in (run / "history" / name).iterdir()).slice(0, 1)
    shutil.rmtree(run / "history" / name, ignore_errors=True)
    block = pa.concat_tables([row.cast(SCHEMAS[name])] * 100).combine_chunks()
    block = pa.concat_tables([block] * (distinct // 100 or 1)).combine_chunks()
    block = block.set_column(0, "op_id", pa.array(np.arange(len(block)) if distinct > 1 else np.zeros(len(block), int)))
    with pq.ParquetWriter(run / "history" / f"{name}.parquet", block.schema) as writer:
        for _ in range(5 if distinct > 1 else 1_000):
            writer.write_table(block)
    with pytest.raises(HistoryError, match=rf"table {name}, row \d+ .*: row \d+ has the same op_id"):
        judge(run)


ROWS = {
    "positions": {"op_id": 0, "topic": "t", "partition": 0, "before": 0, "after": 1, "cause": "read"},
    "offsets": {"op_id": 0, "group": "g", "topic": "t", "partition": 0, "offset": 3, "direction": "commit"},
    "assignments": {"at_ns": 1, "process": 1, "group": "g", "topic": "t", "partition": 0, "event": "assigned"},
    "inputs": {"op_id": 0, "seq": 0, "topic": "t", "partition": 0, "offset": 1},
    "states": {"asked_ns": 1, "answered_ns": 2, "source": "metadata", "topic": "t", "partition": 0, "isr": [1, 2]},
}


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("distinct", [1, 300])
def test_equal_rows_of_a_table_without_a_key_are_rejected_before_judgement(run, name, distinct):
    table = pa.Table.from_pylist([ROWS[name]] * distinct, SCHEMAS[name])
    table = table.set_column(0, table.schema.field(0).name, pa.array(np.arange(distinct)))
    table = table.take(pa.array(np.arange(100_000) % distinct)).cast(SCHEMAS[name])
    shutil.rmtree(run / "history" / name, ignore_errors=True)
    pq.write_table(table, run / "history" / f"{name}.parquet")
    with pytest.raises(HistoryError, match=rf"table {name}, row \d+: more than 100 rows are equal to row \d+"):
        judge(run)


def test_a_large_table_with_few_equal_rows_is_not_rejected(run):
    """Each row occurs 90 times; up to 100 equal rows are accepted."""
    rows = pa.Table.from_pylist([ROWS["states"]], SCHEMAS["states"]).take(pa.array(np.zeros(70_000, np.int64)))
    times = pa.array(np.arange(70_000) // 90)
    for index, name in enumerate(("asked_ns", "answered_ns")):
        rows = rows.set_column(index, SCHEMAS["states"].field(name), times)
    pq.write_table(rows, run / "history" / "states.parquet")
    check_sizes(open_history(run))


def test_a_sample_finds_no_repeat_where_there_is_none_and_stays_small():
    sample = RepeatSample(2)
    for number in range(20):
        keys = np.arange(50_000) + 50_000 * number
        assert sample.find_repeat(50_000 * number, keys // 7, keys % 7) is None
    assert sample._hashes.size < 65_537
    assert sample.find_repeat(1_000_000, np.arange(50_000) // 7, np.arange(50_000) % 7) is not None


def test_too_many_faults_are_rejected(run):
    row = {"fault_id": 1, "kind": "kill", "target": "1", "inject_ns": 1, "heal_ns": 2}
    table = pa.Table.from_pylist([row], SCHEMAS["faults"])
    table = table.take(pa.array(np.zeros(100_001, np.int64)))
    pq.write_table(table, run / "history" / "faults.parquet")
    with pytest.raises(HistoryError, match="table faults, row 100000: a history has at most 100000 faults"):
        judge(run)


UNREADABLE = {
    "truncated": lambda path: path.write_bytes(path.read_bytes()[:-9]),
    "zero length": lambda path: path.write_bytes(b""),
    "magic": lambda path: path.write_bytes(b"PARE" + path.read_bytes()[4:-4] + b"PARE"),
    "text": lambda path: path.write_text("op_id,process\n1,2\n"),
    "schema": lambda path: pq.write_table(pa.table({"op_id": ["one"]}), path),
    "pages": lambda path: path.write_bytes(path.read_bytes()[:4] + b"\xff" * 400 + path.read_bytes()[404:]),
}


@pytest.mark.parametrize("how", UNREADABLE)
@pytest.mark.parametrize(
    "command",
    [["check"], ["check", "--model", "append-log"], ["check", "--json"], ["report"], ["export"]],
    ids=" ".join,
)
def test_unreadable_parquet_is_bad_input_for_every_command(run, capsys, monkeypatch, tmp_path, command, how):
    monkeypatch.chdir(tmp_path)
    UNREADABLE[how](run / "history" / "records.parquet")
    more = ["out.ndjson"] if command == ["export"] else []
    assert exit_code([*command, str(run), *more]) is ExitCode.USAGE
    (line,) = capsys.readouterr().err.splitlines()
    assert "records" in line


def test_a_long_error_reserves_no_memory_for_other_rows(run):
    """For each row, Arrow would reserve the mean length of the distinct error texts: up to five gigabytes."""
    path = next((run / "history").glob("operations*.parquet"), None) or next((run / "history/operations").iterdir())
    table = pq.read_table(path, partitioning=None)
    errors = table["error"].to_pylist()
    errors[-1] = "x" * (5_000_000_000 // len(errors))
    index = table.schema.get_field_index("error")
    pq.write_table(table.set_column(index, "error", pa.array(errors, pa.string())), path)
    pool, normal = pa.proxy_memory_pool(pa.default_memory_pool()), pa.default_memory_pool()
    pa.set_memory_pool(pool)
    try:
        assert judge(run).operations >= len(errors)
    finally:
        pa.set_memory_pool(normal)
    assert pool.max_memory() < 1_000_000_000
