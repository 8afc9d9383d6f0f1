"""Model of retention and compaction of logs (`UnifiedLog.deleteOldSegments`, `LogSegment.shouldRoll`, `Cleaner`).

The model has no segments: they follow from the timestamps and sizes of the batches, since the scripts that await a
cleanup set `segment.ms`, and each batch has one timestamp. A batch begins a new segment if its timestamp is more than
`segment.ms` after that of the segment's first batch, or if the segment would be larger than `segment.bytes` with it.
The last segment is the active one.
"""

from collections.abc import Callable
from dataclasses import replace
from itertools import takewhile
from typing import Final

from conformance.sequential.model.cluster import ModelCluster, Partition, StoredBatch, Topic
from conformance.sequential.steps import Cleanup

_PRESENT_MS: Final = 1_690_000_000_000
"""A time in 2023, which is in the past also in a simulation. Timestamps of these scripts are years earlier, or decades
later."""
_WEEK_MS: Final = 7 * 24 * 60 * 60 * 1000
"""Kafka's default of `segment.ms` and `retention.ms`."""
_GIBIBYTE: Final = 1024**3
"""Kafka's default of `segment.bytes`."""
_NO_TIMESTAMP: Final = -1
_UNLIMITED: Final = -1

_Segment = list[StoredBatch]


def clean_up(cluster: ModelCluster, by: Cleanup) -> None:
    """Apply one kind of cleanup to every log."""
    for topic in cluster.topics.values():
        for partition in topic.partitions:
            _CLEANUPS[by](topic, partition)


def _delete_old_segments(topic: Topic, partition: Partition) -> None:
    """Advance the log start past the oldest segments that retention deletes by size or time.

    The new log start is the base offset of the first segment that stays, or the log end.
    """
    if "delete" not in topic.properties.get("cleanup.policy", "delete"):
        return
    kept = [each for each in segments(topic, partition) if each[-1].last_offset >= partition.log_start_offset]
    retention_bytes = _number(topic, "retention.bytes", _UNLIMITED)
    excess = sum(map(_size, kept)) - retention_bytes
    while kept and retention_bytes != _UNLIMITED and _size(kept[0]) <= excess:
        excess -= _size(kept.pop(0))
    retention_ms = _number(topic, "retention.ms", _WEEK_MS)
    expired = takewhile(lambda segment: _is_expired(segment, retention_ms), kept)
    kept = kept[len(list(expired)) :]
    start = kept[0][0].base_offset if kept else partition.log_end_offset
    partition.log_start_offset = max(partition.log_start_offset, start)


def _is_expired(segment: _Segment, retention_ms: int) -> bool:
    newest = max(record.timestamp_ms or 0 for batch in segment for record in batch.records)
    return retention_ms != _UNLIMITED and _PRESENT_MS - newest > retention_ms


def segments(topic: Topic, partition: Partition) -> list[_Segment]:
    """Return the batches of a log by segment.

    If the first batch of a segment has no timestamp (-1), Kafka compares `segment.ms` with the time since the creation
    of the segment. In every script with such a batch, this time is shorter than `segment.ms`.
    """
    roll_ms = _number(topic, "segment.ms", _WEEK_MS)
    roll_bytes = _number(topic, "segment.bytes", _GIBIBYTE)
    found: list[_Segment] = []
    for batch in partition.batches:
        first_ms = _timestamp(found[-1][0]) if found else _NO_TIMESTAMP
        is_old = first_ms != _NO_TIMESTAMP and _timestamp(batch) - first_ms > roll_ms
        if not found or is_old or _size(found[-1]) + batch.size > roll_bytes:
            found.append([])
        found[-1].append(batch)
    return found


def _compact(topic: Topic, partition: Partition) -> None:
    """Remove each record before the active segment if a newer record before that segment has the same key.

    Tombstones stay, unless `delete.retention.ms` is 0. Batches without records are removed; Kafka may keep them.
    """
    if "compact" not in topic.properties.get("cleanup.policy", "") or not partition.batches:
        return
    *cleaned, _ = segments(topic, partition)
    batches = [batch for segment in cleaned for batch in segment]
    newest = {record.key: record.offset for batch in batches for record in batch.records}
    keeps_tombstones = topic.properties.get("delete.retention.ms") != "0"
    for batch in batches:
        kept = (record for record in batch.records if newest[record.key] == record.offset)
        left = tuple(record for record in kept if keeps_tombstones or record.value is not None)
        partition.batches[partition.batches.index(batch)] = replace(batch, records=left, last=batch.last_offset)
    partition.batches = [batch for batch in partition.batches if batch.records]


def _timestamp(batch: StoredBatch) -> int:
    return max(record.timestamp_ms or 0 for record in batch.records)


def _size(segment: _Segment) -> int:
    return sum(batch.size for batch in segment)


def _number(topic: Topic, name: str, default: int) -> int:
    return int(topic.properties.get(name, default))


_CLEANUPS: Final[dict[Cleanup, Callable[[Topic, Partition], None]]] = {
    Cleanup.RETENTION: _delete_old_segments,
    Cleanup.COMPACTION: _compact,
}
