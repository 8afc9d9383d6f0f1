"""Sorted runs: the intermediate files of the layout, with rows sorted by log and key.

A distributing task writes many rows at a time, sorted by their log and by a key (`KEYS`): the offset of the record or,
for an operation, of one of its records. An index has the bounds of each record batch of a file. Parts are planned after
all rows are distributed. The task that settles a part reads the record batches of every run that overlap the part.

A task numbers logs in the order of their first rows; `Source` maps these numbers to those of the layout. Two logs of a
task may be one log of the layout: rows without a topic id belong to the log of the topic's only id.
"""

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from linearizability.anomalies.arrow import Place
from linearizability.anomalies.columns import Flags, Indexes, Int64s

BATCH_ROWS: Final = 8_192
"""The number of rows in a record batch. It is small, because a shard may need only a hundredth of each run."""
LOWEST, HIGHEST = -(2**63), 2**63 - 1
"""Bounds that include every key."""
KEYS: Final = {"sends": "offset", "reads": "offset", "operations": "key"}
"""The key column of each table. Other tables have none, because they are never split."""
_RECORDS: Final = ("sends", "reads")
_OPTIONS: Final = pa.ipc.IpcWriteOptions(compression="lz4")


def canonical(place: Place) -> tuple[str, int, bool, str]:
    """Return the sort key of a place in the canonical order: by topic, partition and topic id."""
    topic, topic_id, partition = place
    return topic, partition, topic_id is not None, topic_id or ""


def with_id(place: Place, own_id: Mapping[str, str]) -> Place:
    """Return a place whose null topic id is replaced by the only id of the topic's name, if there is only one."""
    topic, topic_id, partition = place
    return topic, own_id.get(topic) if topic_id is None else topic_id, partition


Stretches = npt.NDArray[np.int64]
"""First key, last key and number of rows of each stretch: consecutive rows of one log, sorted by key."""


@dataclass(frozen=True, slots=True)
class Batches:
    """The record batches of a file."""

    file: Path
    ends: tuple[tuple[int, int, int, int], ...]
    """Per batch: log and key of its first row, log and key of its last row."""
    logs: npt.NDArray[np.int64]
    """The log of each stretch."""
    stretches: Stretches


class RunWriter:
    """The runs of one task, a file for each table."""

    def __init__(self, folder: Path, number: int) -> None:
        self._folder, self._number = folder, number
        self._attempt = uuid.uuid4().hex
        """Spark may run a task twice at the same time, and each attempt needs its own files."""
        self._numbers: dict[Place, int] = {}
        self._writers: dict[str, pa.ipc.RecordBatchFileWriter] = {}
        self._ends: dict[str, list[tuple[int, int, int, int]]] = {}
        self._stretches: dict[str, list[tuple[npt.NDArray[np.int64], Stretches]]] = {}

    @property
    def places(self) -> tuple[Place, ...]:
        """The logs of the rows so far, by number."""
        return tuple(self._numbers)

    @property
    def files(self) -> dict[str, Batches]:
        """The written batches, by table."""
        return {
            name: Batches(self._path(name), tuple(ends), *map(np.concatenate, zip(*self._stretches[name], strict=True)))
            for name, ends in self._ends.items()
        }

    def numbers(self, places: Sequence[Place]) -> npt.NDArray[np.int32]:
        """Return the numbers of some logs in this task."""
        return np.array([self._numbers.setdefault(place, len(self._numbers)) for place in places], np.int32)

    def write(
        self,
        name: str,
        table: pa.Table,
        places: Sequence[Place],
        of: Indexes,
        *,
        key: Int64s,
        wanted: Flags | None = None,
    ) -> None:
        """Write all rows or the wanted ones, with a column `log`. `of` has each row's index in `places`."""
        order = _order(_ranks(places)[of], key, wanted)
        if order is not None:
            table, of, key = table.take(pa.array(order)), of[order], key[order]
        if not table.num_rows:
            return
        log = self.numbers(places)[of]
        table = table.add_column(0, pa.field("log", pa.int32(), nullable=False), pa.array(log)).combine_chunks()
        if name not in self._writers:
            self._writers[name] = pa.ipc.new_file(self._path(name), table.schema, options=_OPTIONS)
            self._ends[name], self._stretches[name] = [], []
        self._stretches[name].append(_stretches(log, key))
        begin = 0
        for batch in table.to_batches(BATCH_ROWS):
            self._writers[name].write_batch(batch)
            last = begin + batch.num_rows - 1
            self._ends[name].append((int(log[begin]), int(key[begin]), int(log[last]), int(key[last])))
            begin = last + 1

    def close(self) -> None:
        """Close every file."""
        for writer in self._writers.values():
            writer.close()

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}-{self._number:05d}-{self._attempt}.arrow"


def _stretches(log: npt.NDArray[np.int32], key: Int64s) -> tuple[npt.NDArray[np.int64], Stretches]:
    """Return the log of each stretch, and the stretches. A stretch ends where a record batch or a log ends."""
    begins = np.union1d(np.arange(0, len(log), BATCH_ROWS), 1 + np.flatnonzero(np.diff(log)))
    ends = np.append(begins[1:], len(log))
    return log[begins].astype(np.int64), np.stack([key[begins], key[ends - 1], ends - begins], axis=1)


def _ranks(places: Sequence[Place]) -> npt.NDArray[np.int64]:
    ranks = np.empty(len(places), np.int64)
    ranks[sorted(range(len(places)), key=lambda number: canonical(places[number]))] = np.arange(len(places))
    return ranks


def _order(rank: Int64s, key: Int64s, wanted: Flags | None) -> Indexes | None:
    """Return a stable order of the wanted rows by rank and key; None if all rows are wanted and in this order."""
    if wanted is not None and not wanted.all():
        rows = np.flatnonzero(wanted)
        order = _order(rank[rows], key[rows], None)
        return rows if order is None else rows[order]
    steps = np.diff(rank)
    if np.all((steps > 0) | ((steps == 0) & (np.diff(key) >= 0))):
        return None
    few = len(rank) and rank.max() < 2**15
    order = np.argsort(rank.astype(np.int16) if few else rank, kind="stable")  # radix sort for 16 bits
    if np.any((np.diff(key[order]) < 0) & (np.diff(rank[order]) == 0)):
        order = np.lexsort((key, rank))
    return order


@dataclass(frozen=True, slots=True)
class Source:
    """Some batches of a file, and the wanted logs."""

    file: Path
    batches: tuple[int, ...]
    logs: npt.NDArray[np.int32]
    """The numbers of the logs in the task that wrote the file, ascending."""
    own: npt.NDArray[np.int32]
    """The numbers of the same logs in the layout."""


Dealt = Mapping[str, Sequence[Source]]
"""The sources of some logs, by table."""


class Index:
    """Index of all runs of a history."""

    def __init__(self, runs: Sequence[tuple[Sequence[Place], Mapping[str, Batches]]], places: Sequence[Place]) -> None:
        numbers = {place: number for number, place in enumerate(places)}
        self._runs = []
        self._stretches: list[tuple[npt.NDArray[np.int32], Stretches]] = []
        for theirs, files in runs:
            own = np.array([numbers[place] for place in theirs], np.int32)
            ends = {name: (batches.file, _bounds(own, batches)) for name, batches in files.items()}
            self._runs.append((own, ends))
            self._stretches += [(own[files[name].logs], files[name].stretches) for name in _RECORDS if name in files]

    def stretches(self, log: int) -> Stretches:
        """Return the stretches of a log's records with a known offset."""
        found = [stretches[(own == log) & (stretches[:, 1] >= 0)] for own, stretches in self._stretches]
        return np.concatenate([np.empty((0, 3), np.int64), *found])

    def of(self, logs: Sequence[int], keys: Mapping[str, tuple[int, int]]) -> Dealt:
        """Return, by table, the batches that may have rows of some logs with keys in the table's bounds [low, high)."""
        found: dict[str, list[Source]] = {}
        wanted = np.array(sorted(logs), np.int32)
        for own, files in self._runs:
            theirs = np.flatnonzero(np.isin(own, wanted)).astype(np.int32)
            if not len(theirs):
                continue
            for name, (low, high) in keys.items():
                if name not in files:
                    continue
                file, ends = files[name]
                first, last = own[ends[:, 0]], own[ends[:, 2]]
                begins = (first < wanted[-1]) | ((first == wanted[-1]) & (ends[:, 1] <= high))
                reaches = (last > wanted[0]) | ((last == wanted[0]) & (ends[:, 3] >= low))
                batches = np.flatnonzero(begins & reaches)
                if len(batches):
                    found.setdefault(name, []).append(Source(file, tuple(batches.tolist()), theirs, own[theirs]))
        return found


def _bounds(own: npt.NDArray[np.int32], batches: Batches) -> npt.NDArray[np.int64]:
    """Return `Batches.ends`, without bounds for the keys of a batch of several logs whose first or last log is joined.

    A joined log is a log of the layout that consists of several logs of the task. `own` has the number in the layout of
    each log of the task.
    """
    ends = np.array(batches.ends, np.int64)
    is_joined = (np.bincount(own) > 1)[own]
    joined = (ends[:, 0] != ends[:, 2]) & (is_joined[ends[:, 0]] | is_joined[ends[:, 2]])
    ends[joined, 1], ends[joined, 3] = LOWEST, HIGHEST
    return ends


def gathered(dealt: Dealt, name: str, schema: pa.Schema, low: int = LOWEST, high: int = HIGHEST) -> pa.Table:
    """Return the rows of a table for some logs, with keys in [low, high), run after run."""
    tables = [schema.empty_table()]
    for source in dealt.get(name, ()):
        tables += [table.select(schema.names).cast(schema) for table in _rows(source, KEYS.get(name), low, high)]
    return pa.concat_tables(tables)


def _rows(source: Source, key: str | None, low: int, high: int) -> Iterator[pa.Table]:
    with pa.OSFile(str(source.file)) as file, pa.ipc.open_file(file) as reader:
        for number in source.batches:
            batch = reader.get_batch(number)
            log = batch["log"].to_numpy()
            at = np.minimum(np.searchsorted(source.logs, log), len(source.logs) - 1)
            kept = source.logs[at] == log
            if key is not None:
                keys = batch[key].to_numpy()
                kept &= (keys >= low) & ((keys < high) | (high == HIGHEST))
            table = pa.Table.from_batches([batch]).set_column(0, batch.schema.field("log"), pa.array(source.own[at]))
            yield table if kept.all() else table.filter(pa.array(kept))
