"""Writer of a synthetic history: chunks of valid traffic in a run directory, with planted anomalies between them.

Optionally it creates the layout by topic partition in the same pass: while a chunk is generated, a thread distributes
the previous one.
"""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from linearizability.history.errors import HistoryError, one_line
from linearizability.history.layout import HISTORY_FOLDER, table_file
from linearizability.history.reader import open_history
from linearizability.history.run import RUN_FILE, RunInfo
from linearizability.history.schema import SCHEMAS
from linearizability.shards.running import Run
from linearizability.shards.writing import LayoutThread, LayoutWriter
from linearizability.synthetic.episode import Episode
from linearizability.synthetic.planted_anomalies import LAST, PLANTED_ANOMALIES
from linearizability.synthetic.workload import BATCH_RECORDS, CODED, TOPIC, Tables, Topic, chunk, schema_of

CHUNK_STEPS: Final = 50_000
"""The steps of a chunk: about a million records, which need about 100 MB while they are generated."""
_TOPIC_PROPERTIES: Final = {"replication.factor": "3", "min.insync.replicas": "2"}


@dataclass(frozen=True, slots=True)
class Request:
    """The size and the anomalies of a synthetic history."""

    records: int
    """The approximate number of records, sent and read."""
    partitions: int
    skew: float = 0.0
    """The share of all records that partition 0 has, if it is more than an even share."""
    planted: Sequence[str] = ()
    """Names from PLANTED_ANOMALIES; each is planted as often as it is listed."""
    seed: int = 0


def synthesize(run_dir: Path, request: Request, progress: Callable[[int], None], lay_out: Run | None = None) -> int:
    """Write a history; return the number of its records.

    `progress` is called with the number of records written so far. If `lay_out` is given, the layout by
    topic partition is also created, and `lay_out` runs its last tasks. Raises HistoryError if the directory contains a
    run already or cannot be written.
    """
    if (run_dir / RUN_FILE).exists() or (run_dir / HISTORY_FOLDER).exists():
        raise HistoryError(f"{run_dir}: already contains a run; name another directory")
    run = RunInfo(f"synthetic-{request.seed}", request.seed, "synthetic", topics={TOPIC: _TOPIC_PROPERTIES})
    written = 0
    with _disk_errors(run_dir):
        run_dir.mkdir(parents=True, exist_ok=True)
        run.write(run_dir)
        with _Writer(run_dir / HISTORY_FOLDER) as writer, LayoutThread(LayoutWriter(run_dir)) as thread:
            for tables in history(request):
                if lay_out is not None:
                    thread.add(tables)
                writer.write(tables)
                written += tables["records"].num_rows if "records" in tables else 0
                progress(written)
        replace(run, complete=True).write(run_dir)
        if lay_out is not None:
            thread.wait()
            thread.layout.finish(open_history(run_dir), lay_out)
    return written


def history(request: Request) -> Iterator[Tables]:
    """Yield the history as tables in the order of time: one chunk or one planted anomaly at a time."""
    rng, topic = np.random.default_rng(request.seed), Topic.of(request.partitions, request.skew)
    steps = -(-request.records // (2 * BATCH_RECORDS))
    chunks = -(-steps // CHUNK_STEPS)
    among = sorted((name for name in request.planted if name not in LAST), key=lambda _: rng.random())
    chunk_numbers = np.sort(rng.integers(0, chunks, len(among)))
    for number in range(chunks):
        yield chunk(topic, min(CHUNK_STEPS, steps - number * CHUNK_STEPS), rng)
        for name in [name for name, planted_after in zip(among, chunk_numbers, strict=True) if planted_after == number]:
            yield _planted(topic, name, int(rng.integers(request.partitions)))
    last = [name for name in request.planted if name in LAST]
    partitions = rng.permutation(np.resize(np.arange(request.partitions), len(last)))
    for name, partition in zip(last, partitions, strict=True):
        yield _planted(topic, name, int(partition))


def _planted(topic: Topic, name: str, partition: int) -> Tables:
    episode = Episode(topic, partition)
    PLANTED_ANOMALIES[name](episode)
    return episode.tables()


class _Writer:
    """Writer of one Parquet file for each table that has rows."""

    def __init__(self, history_dir: Path) -> None:
        self._history_dir = history_dir
        self._files = contextlib.ExitStack()
        self._writers: dict[str, pq.ParquetWriter] = {}
        history_dir.mkdir()

    def __enter__(self) -> "_Writer":
        return self

    def __exit__(self, *error: object) -> None:
        self._files.close()

    def write(self, tables: Tables) -> None:
        """Append rows to each table."""
        for name, table in tables.items():
            if name not in self._writers:
                self._writers[name] = self._files.enter_context(self._open(name))
            self._writers[name].write_table(table)

    def _open(self, name: str) -> pq.ParquetWriter:
        # The Arrow schema is not stored, so that readers return plain strings. Here, these columns are dictionaries.
        return pq.ParquetWriter(
            table_file(self._history_dir, name),
            schema_of(name),
            compression="lz4",
            use_dictionary=[column for column in SCHEMAS[name].names if column in CODED],
            store_schema=False,
        )


@contextlib.contextmanager
def _disk_errors(run_dir: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else one_line(error)
        raise HistoryError(f"{run_dir}: cannot write the history: {reason}") from None
