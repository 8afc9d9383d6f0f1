"""Live view of a run in progress: running counts, the anomalies so far, and how far the counts are behind.

A follower copies each whole flush of the run into `RUN/live`. This is a run directory that only grows, and that is a
valid history at any time.

Structured Streaming counts the rows of its files as they arrive, in micro-batches. The counts are merged in a small
file per table. So Spark's only state is its checkpoint, with the names of the files that it has read. A micro-batch
that is repeated after a kill has the same number and the same files, and is not counted again.

The local engine judges the copy. So the last progress has the same anomalies as a judgement of the run. The copy is
then removed.
"""

import json
import shutil
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow.parquet as pq

from linearizability.check import judge
from linearizability.history import layout
from linearizability.history.accompanying import Accompaniment
from linearizability.history.following import Follower
from linearizability.history.run import RUN_FILE, RunInfo
from linearizability.history.schema import SCHEMAS
from linearizability.judgement import Judgement, Verdict
from reports.spark.errors import EngineFailedError, spark_errors

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

LIVE_FOLDER: Final = "live"
INTERVAL_S: Final = 3.0
_COUNTED: Final = {"operations": ("f", "outcome"), "records": ("direction",)}
"""The tables that are counted, and by which columns."""
_NEWEST: Final = "newest_ns"


@dataclass(frozen=True, slots=True)
class LiveProgress:
    """The counts and anomalies of a run so far."""

    counts: Mapping[str, Mapping[tuple[str, ...], int]]
    """Number of rows of `operations` by f and outcome, of `records` by direction."""
    judgement: Judgement | None
    """The judgement of the copy; None before the copy has a `run.json`."""
    lag_s: float
    """The time between the newest completion that was copied and the newest that was counted; 0 at first."""

    def __str__(self) -> str:
        operations, records = (f"{self.total(name):,} {name}" for name in ("operations", "records"))
        found = [
            f"{anomaly.name} x{anomaly.count:,} (last: {anomaly.evidence[-1].text})"
            for anomaly in (self.judgement.anomalies if self.judgement is not None else ())
            if anomaly.verdict is Verdict.VIOLATION and anomaly.evidence
        ]
        return f"{operations}, {records}; {'; '.join(found) or 'no violation'}; {self.lag_s:.1f} s behind"

    def total(self, table: str) -> int:
        """Return the number of rows of a table."""
        return sum(self.counts.get(table, {}).values())


class LiveRun(Accompaniment):
    """Reporter of the progress of one run: a context manager, which must be exited after the history has ended.

    :param session: returns a context manager that yields the Spark session for counting. It is entered in a separate
        thread, because that takes seconds.
    :param on_progress: receives the progress every few seconds, and once more when everything is counted.
    """

    def __init__(
        self,
        run_dir: Path,
        session: Callable[[], Any],
        on_progress: Callable[[LiveProgress], None],
        interval_s: float = INTERVAL_S,
    ) -> None:
        super().__init__("live-run")
        self._run_dir = run_dir
        self._session = session
        self._on_progress = on_progress
        self._interval_s = interval_s

    def follow(self) -> None:
        """Report progress every few seconds, and when everything is counted."""
        with self._session() as spark, counting(spark, self._run_dir / LIVE_FOLDER) as counts:
            copy = _Copy(self._run_dir)
            while not self.ended.wait(self._interval_s):
                copy.extend()
                self._on_progress(counts.progress(copy))
            copy.extend()
            counts.wait()
            self._on_progress(counts.progress(copy))
        shutil.rmtree(copy.folder)


class _Copy:
    """`RUN/live`: the run's whole flushes so far. Files of an earlier process that was killed are kept."""

    def __init__(self, run_dir: Path) -> None:
        self._run_dir = run_dir
        self.folder = run_dir / LIVE_FOLDER
        self._history = self.folder / layout.HISTORY_FOLDER
        there = {name: sorted((self._history / name).glob("*.parquet")) for name in SCHEMAS}
        seen = {name: sum(pq.read_metadata(path).num_rows for path in paths) for name, paths in there.items()}
        self._number = 1 + max((int(paths[-1].stem) for paths in there.values() if paths), default=-1)
        self._follower = Follower(run_dir, seen)
        self.newest_ns = 0

    def extend(self) -> None:
        """Copy new rows, `operations` last."""
        if not (self._run_dir / RUN_FILE).exists():
            return
        new_rows = self._follower.poll()
        RunInfo.read(self._run_dir).write(self.folder)
        for name in sorted(new_rows, key=lambda name: name == "operations"):
            path = layout.part_file(self._history, name, self._number)
            path.parent.mkdir(parents=True, exist_ok=True)
            draft = path.with_name(f".{path.name}")
            pq.write_table(new_rows[name], draft)
            draft.rename(path)
        if "operations" in new_rows:
            times = new_rows["operations"]["complete_ns"].drop_null()
            self.newest_ns = max(self.newest_ns, *times.to_pylist()) if len(times) else self.newest_ns
        self._number += bool(new_rows)


class Counts:
    """Counts of rows by table, and the streams that update them, one for each table."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._counted = {name: self._load(name) for name in _COUNTED}
        self.queries: list[StreamingQuery] = []

    def progress(self, copy: _Copy) -> LiveProgress:
        """Return the current progress. Raises EngineFailedError if a stream has stopped."""
        for query in self.queries:
            if query.exception() is not None:
                raise EngineFailedError(f"Spark: a stream has stopped: {str(query.exception()).splitlines()[0]}")
        with self._lock:
            counts = {name: dict(kept["counts"]) for name, kept in self._counted.items()}
            newest_ns = self._counted["operations"][_NEWEST]
        judgement = judge(copy.folder) if (copy.folder / RUN_FILE).exists() else None
        return LiveProgress(counts, judgement, max(0, copy.newest_ns - newest_ns) / 1e9 if newest_ns else 0.0)

    def wait(self) -> None:
        """Wait until every existing file is counted."""
        with spark_errors():
            for query in self.queries:
                query.processAllAvailable()

    def add(self, name: str, rows: "DataFrame", batch: int) -> None:
        """Count one micro-batch of a table, unless it was counted before."""
        from pyspark.sql import functions as F  # noqa: N812  the usual name in PySpark

        if batch <= self._counted[name]["batch"]:
            return
        newest = F.max("complete_ns") if name == "operations" else F.lit(0)
        found = rows.groupBy(*_COUNTED[name]).agg(F.count("*").alias("rows"), newest.alias(_NEWEST)).collect()
        with self._lock:
            kept = self._counted[name]
            counts = Counter(kept["counts"])
            counts.update({tuple(row[column] for column in _COUNTED[name]): row["rows"] for row in found})
            newest_ns = max([kept[_NEWEST], *(row[_NEWEST] or 0 for row in found)])
            self._counted[name] = {"batch": batch, "counts": counts, _NEWEST: newest_ns}
            self._save(name)

    def _save(self, name: str) -> None:
        kept = self._counted[name]
        document = {**kept, "counts": [[*key, count] for key, count in kept["counts"].items()]}
        draft = self._folder / f".{name}.json"
        draft.write_text(json.dumps(document), encoding="utf-8")
        draft.replace(self._folder / f"{name}.json")

    def _load(self, name: str) -> dict[str, Any]:
        path = self._folder / f"{name}.json"
        if not path.exists():
            return {"batch": -1, "counts": Counter(), _NEWEST: 0}
        document = json.loads(path.read_text(encoding="utf-8"))
        return {**document, "counts": Counter({tuple(key): count for *key, count in document["counts"]})}


@contextmanager
def counting(spark: "SparkSession", folder: Path) -> Iterator[Counts]:
    """Start streams that count the copy in a folder, from its checkpoint if there is one. Yield the counts."""
    from pyspark.sql.pandas.types import from_arrow_schema

    counts = Counts(folder)
    with ExitStack() as stack:
        for name in _COUNTED:
            files = folder / layout.HISTORY_FOLDER / name
            files.mkdir(parents=True, exist_ok=True)
            rows = spark.readStream.schema(from_arrow_schema(SCHEMAS[name])).parquet(files.absolute().as_uri())
            writer = rows.writeStream.foreachBatch(partial(counts.add, name))
            writer = writer.option("checkpointLocation", (folder / "checkpoint" / name).absolute().as_uri())
            query = writer.trigger(processingTime="1 second").start()
            stack.callback(query.stop)
            counts.queries.append(query)
        yield counts
