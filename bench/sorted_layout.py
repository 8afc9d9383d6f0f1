"""Layout of a history from rows that DuckDB or Spark has sorted, for the benchmark `layout.py`.

One SQL query for each table (`SORTS`) returns its rows with the columns that `linearizability.shards.tables` defines;
the records are joined with `operations`. The rows are sorted by log and one more column, which is the offset for
records. DuckDB sorts with `ORDER BY` under a memory limit, Spark with `repartitionByRange` and
`sortWithinPartitions`. Then the parts of the layout are settled: kafkatrial's own tasks merge the rows of each part and
write them. Here these tasks read the sorted files. In kafkatrial's own layout they read its sorted runs
(`linearizability.shards.runs`). Both layouts have the same files and result in the same verdict.

With `rules`, DuckDB checks the rules between records, and the task `CheckOperations` checks `operations`. The rules
about single rows are not checked, which favours these layouts. Only synthesized histories can be laid out: they have
four tables of one file each, and a topic id in every row.
"""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from linearizability.anomalies.arrow import OPERATION_FIELDS
from linearizability.anomalies.faults import NEVER_NS
from linearizability.anomalies.gather import PLACE_FIELDS, SHARD_FIELDS
from linearizability.history.reader import open_history
from linearizability.shards import laying_out, settling, tables
from linearizability.shards.census import Counted, plan
from linearizability.shards.manifest import Layout, fingerprint_of, layout_folder
from linearizability.shards.pieces import pieces_of
from linearizability.shards.rules import CheckOperations
from linearizability.shards.running import Run
from linearizability.shards.runs import HIGHEST, KEYS, LOWEST, canonical
from linearizability.shards.settling import SettlePart, SettleSmall, bounds_of

ROW_GROUP_ROWS = 131_072
STRETCH_ROWS = 8_192
_UNSERVED = (
    "'BROKER_NOT_AVAILABLE', 'KAFKA_STORAGE_ERROR', 'LEADER_NOT_AVAILABLE', 'NETWORK_EXCEPTION', 'REQUEST_TIMED_OUT'"
)
_BIT = "CASE WHEN {0} THEN {1} ELSE 0 END"
_ROW_FLAGS = (("r.value IS NULL", tables.TOMBSTONE), ("r.intact", tables.INTACT), ("NOT r.intact", tables.CORRUPT))
_OPERATION_FLAGS = {
    "send": (
        ("o.outcome = 'ok'", tables.OK),
        ("o.outcome = 'fail'", tables.FAIL),
        ("o.txn_seq IS NOT NULL", tables.IN_TRANSACTION),
        (f"o.outcome <> 'ok' AND o.complete_ns IS NOT NULL AND o.error IN ({_UNSERVED})", tables.NOT_SERVED),
    ),
    "read": (("o.outcome = 'ok' AND o.complete_ns IS NOT NULL AND o.f <> 'read_replica'", tables.SERVED),),
}


def _records_sql(direction: str) -> str:
    flags = " + ".join(_BIT.format(*bit) for bit in (*_ROW_FLAGS, *_OPERATION_FLAGS[direction]))
    return f"""
        SELECT p.log, r.op_id, r.seq, coalesce(r.offset, -1) AS offset, coalesce(r.value, 0) AS value,
            coalesce(r.leader_epoch, -1) AS leader_epoch, o.process, coalesce(o.node, -1) AS node, o.invoke_ns,
            coalesce(o.complete_ns, {NEVER_NS}) AS complete_ns, {flags} AS flags,
            CASE WHEN r.value IS NULL THEN r.key END AS key
        FROM records r JOIN operations o ON o.op_id = r.op_id JOIN places p ON {_same_place("r")}
        WHERE r.direction = '{direction}'"""


def _same_place(row: str) -> str:
    return " AND ".join(f"p.{name} = {row}.{name}" for name in PLACE_FIELDS)


def _operations_sql() -> str:
    columns = ", ".join(f"o.{name}" for name in OPERATION_FIELDS)
    return f"""
        SELECT k.log, {columns}, k.key FROM operations o JOIN (
            SELECT p.log, r.op_id, min(coalesce(r.offset, -1)) AS key
            FROM records r JOIN places p ON {_same_place("r")} GROUP BY p.log, r.op_id
            UNION ALL
            SELECT DISTINCT p.log, r.op_id, CAST(-1 AS bigint) AS key
            FROM positions r JOIN places p ON {_same_place("r")}
        ) k ON k.op_id = o.op_id"""


def _small_sql(name: str) -> str:
    own = ", ".join(f"r.{column}" for column in SHARD_FIELDS[name] if column not in PLACE_FIELDS)
    if name != "positions":
        return f"SELECT p.log, {own} FROM {name} r JOIN places p ON {_same_place('r')}"
    return f"""
        SELECT p.log, {own}, o.process, CASE WHEN o.f = 'poll' THEN 1 ELSE 0 END AS polls
        FROM positions r JOIN operations o ON o.op_id = r.op_id JOIN places p ON {_same_place("r")}"""


SORTS: Mapping[str, tuple[str, str]] = {
    "sends": (_records_sql("send"), "offset"),
    "reads": (_records_sql("read"), "offset"),
    "operations": (_operations_sql(), "key"),
    "positions": (_small_sql("positions"), "op_id"),
    "states": (_small_sql("states"), "asked_ns"),
}
"""Query of each table, and the column by which the rows of a log are sorted."""


@dataclass(frozen=True, slots=True)
class Rows:
    """A range of row groups of a sorted file."""

    path: Path
    row_groups: tuple[int, ...]
    logs: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class FromSorted:
    """A settling task that reads sorted files instead of sorted runs."""

    task: SettleSmall | SettlePart

    def __call__(self) -> object:
        """Settle from the sorted files, and return the result of the task."""
        with mock.patch.object(settling, "gathered", _gathered):
            return self.task()


def _gathered(dealt, name: str, schema: pa.Schema, low: int = LOWEST, high: int = HIGHEST) -> pa.Table:
    found = [schema.empty_table()]
    for rows in dealt.get(name, ()):
        with pq.ParquetFile(rows.path) as file:
            for group in rows.row_groups:
                table = file.read_row_group(group, columns=schema.names, use_threads=False).select(schema.names)
                kept = np.isin(table["log"].to_numpy(), rows.logs)
                if name in KEYS:
                    key = table[KEYS[name]].to_numpy()
                    kept &= (key >= low) & ((key < high) | (high == HIGHEST))
                found.append((table if kept.all() else table.filter(pa.array(kept))).cast(schema))
    return pa.concat_tables(found)


class SortedFiles:
    """The sorted files of a history, by table, with the ranges of log and key of each row group."""

    def __init__(self, folder: Path) -> None:
        self._groups: dict[str, list[tuple[Path, int, tuple[int, int], tuple[int, int]]]] = {}
        for name in SORTS:
            whole = folder / f"{name}.parquet"
            for path in sorted(whole.glob("*.parquet")) if whole.is_dir() else [whole]:
                metadata = pq.read_metadata(path)
                for number in range(metadata.num_row_groups):
                    group = metadata.row_group(number)
                    columns = {group.column(c).path_in_schema: group.column(c) for c in range(group.num_columns)}
                    spans = [(s.min, s.max) for s in (columns[c].statistics for c in ("log", KEYS.get(name, "log")))]
                    self._groups.setdefault(name, []).append((path, number, spans[0], spans[1]))

    def of(self, logs: Sequence[int], keys: Mapping[str, tuple[int, int]]) -> dict[str, list[Rows]]:
        """Return by table the row groups that may hold rows of these logs and ranges of keys (see `runs.Index.of`)."""
        found: dict[str, list[Rows]] = {}
        for name, (low, high) in keys.items():
            for path, number, (first, last), (lowest, highest) in self._groups.get(name, ()):
                within = name not in KEYS or (lowest <= high and highest >= low)
                if within and any(first <= log <= last for log in logs):
                    found.setdefault(name, []).append(Rows(path, (number,), tuple(logs)))
        return found


RULES = (
    "SELECT op_id FROM records GROUP BY op_id, direction, seq HAVING count(*) > 1",
    (
        "SELECT op_id FROM records WHERE direction = 'send' GROUP BY op_id"
        " HAVING min(topic) <> max(topic) OR min(partition) <> max(partition)"
    ),
    "SELECT op_id FROM records ANTI JOIN operations USING (op_id)",
)
"""Queries that find violations of rules; each must return no row."""


def sorted_by_duckdb(run_dir: Path, folder: Path, *, cores: int, memory: str, rules: bool) -> None:
    """Write the sorted files with DuckDB, and with `rules` check the rules between records."""
    import duckdb

    config = {"threads": cores, "memory_limit": memory, "temp_directory": str(folder / "spill")}
    with duckdb.connect(config=config) as connection:
        for name in ("operations", "records", "positions", "states"):
            connection.execute(f"CREATE VIEW {name} AS SELECT * FROM read_parquet('{run_dir}/history/{name}.parquet')")
        rows = connection.execute(_places()).fetchall()
        connection.register("places", _numbered(rows))
        for name, (sql, key) in SORTS.items():
            connection.execute(
                f'COPY ({sql} ORDER BY log, "{key}")'
                f" TO '{folder}/{name}.parquet'"
                f" (FORMAT parquet, COMPRESSION lz4_raw, ROW_GROUP_SIZE {ROW_GROUP_ROWS})"
            )
        for rule in RULES if rules else ():
            assert not connection.execute(f"{rule} LIMIT 1").fetchall(), rule
    (folder / "places").write_text(repr(rows))


def sorted_by_spark(spark, run_dir: Path, folder: Path, *, records: int) -> None:
    """Write the sorted files with Spark, one file per range of rows.

    Sends and reads have one range per million records, and each other table has a quarter of that number. No table has
    fewer than two.
    """
    for name in ("operations", "records", "positions", "states"):
        spark.read.parquet(str(run_dir / "history" / f"{name}.parquet")).createOrReplaceTempView(name)
    rows = [tuple(row) for row in spark.sql(_places()).collect()]
    spark.createDataFrame(_numbered(rows)).createOrReplaceTempView("places")
    for name, (sql, key) in SORTS.items():
        ranges = max(2, records // 1_000_000 // (1 if name in ("sends", "reads") else 4))
        frame = spark.sql(sql).repartitionByRange(ranges, "log", key).sortWithinPartitions("log", key)
        frame.write.option("compression", "lz4_raw").parquet(str(folder / f"{name}.parquet"))
    (folder / "places").write_text(repr(rows))


def _places() -> str:
    each = (f"SELECT DISTINCT {', '.join(PLACE_FIELDS)} FROM {name}" for name in ("records", "positions", "states"))
    return " UNION ".join(each)


def _numbered(rows: list[tuple[str, str, int]]) -> pa.Table:
    rows.sort(key=canonical)
    columns = dict(zip(PLACE_FIELDS, map(list, zip(*rows, strict=True)), strict=True))
    return pa.table({"log": pa.array(range(len(rows)), pa.int32()), **columns})


def settled(run_dir: Path, folder: Path, run: Run, *, rules: bool = False) -> Layout:
    """Settle every part from sorted files, as `laying_out.settled` does from runs, and publish the layout."""
    import duckdb

    history = open_history(run_dir)
    places = eval((folder / "places").read_text())
    glob = {name: f"{folder}/{name}.parquet" + ("/*.parquet" if (folder / f"{name}.parquet").is_dir() else "")
            for name in ("sends", "reads")}  # fmt: skip
    both = list(glob.values())
    with duckdb.connect(config={"threads": 1}) as connection:
        counts = [dict(connection.execute(f"SELECT log, count(*) FROM '{glob[name]}' GROUP BY log").fetchall())
                  for name in ("sends", "reads")]  # fmt: skip
        census = {
            place: Counted(counts[0].get(log, 0) + counts[1].get(log, 0), counts[1].get(log, 0))
            for log, place in enumerate(places)
        }

        def stretches(log: int):
            rows = connection.execute(
                'SELECT min("offset"), max("offset"), count(*)'
                " FROM read_parquet(?, filename=true, file_row_number=true)"
                f' WHERE log = ? AND "offset" >= 0 GROUP BY filename, file_row_number // {STRETCH_ROWS}',
                [both, log],
            ).fetchall()
            return np.array(rows, np.int64).reshape(-1, 3)

        layout = plan(census, laying_out.PART_ROWS, stretches)
    positions = sum(piece.rows for piece in pieces_of(history, "positions"))
    layout = replace(layout, folder=folder, fingerprint=fingerprint_of(history), positions=positions)
    tasks = list(_tasks(layout, SortedFiles(folder)))
    for _ in run([*([CheckOperations(history)] if rules else []), *tasks]):
        pass
    for name in (*SORTS, "places", "spill"):
        path = folder / (f"{name}.parquet" if name in SORTS else name)
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    return laying_out.published(layout, layout_folder(history))


def _tasks(layout: Layout, files: SortedFiles) -> Iterator[FromSorted]:
    everything = (LOWEST, HIGHEST)
    for number, shard in enumerate(layout.shards):
        layout.shard_folder(number).mkdir()
        loose = dict.fromkeys(("sends", "operations"), (LOWEST, 0)) if shard.is_cut else {}
        of_shard = files.of(shard.logs, {**dict.fromkeys(tables.SMALL, everything), **loose})
        yield FromSorted(SettleSmall(layout, number, of_shard))  # type: ignore[arg-type]
        for part in range(len(shard.parts)):
            own = files.of(shard.logs, bounds_of(shard, part))
            yield FromSorted(SettlePart(layout, number, part, own, of_shard))  # type: ignore[arg-type]
