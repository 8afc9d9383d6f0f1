"""Model of Fetch, ListOffsets, OffsetForLeaderEpoch and DeleteRecords (`UnifiedLog`, `LeaderEpochFileCache`)."""

from typing import Final

from conformance.sequential.expectation import Expectation, OneOf, Satisfies
from conformance.sequential.model.cluster import ModelCluster, Partition, StoredBatch
from conformance.sequential.model.unknown import unknown_partition
from conformance.sequential.response import ReadRecord
from conformance.sequential.steps import (
    EARLIEST,
    EARLIEST_LOCAL,
    LATEST,
    LATEST_TIERED,
    MAX_TIMESTAMP,
    DeleteRecords,
    Fetch,
    ListOffsets,
    OffsetForLeaderEpoch,
)

_NONE: Final = -1
"""Kafka's value for no offset, no timestamp, no epoch and no leader."""
_NO_LEADER: Final[Expectation] = {"current_leader": (_NONE, _NONE)}


def _epoch_error(partition: Partition, client_epoch: int) -> str | None:
    """Return the error of a request whose leader epoch is not the leader's (KIP-320)."""
    if client_epoch in {_NONE, partition.leader_epoch}:
        return None
    return "UNKNOWN_LEADER_EPOCH" if client_epoch > partition.leader_epoch else "FENCED_LEADER_EPOCH"


def fetch(cluster: ModelCluster, step: Fetch) -> Expectation:
    """Return whole batches, beginning with the one that contains the offset; or an error and no records."""
    partition = cluster.partition(step.topic, step.partition, step.topic_id)
    error = unknown_partition(cluster, step) if partition is None else _epoch_error(partition, step.leader_epoch)
    if partition is None or error is not None:
        return {"error": error, "records": (), **({} if error == "FENCED_LEADER_EPOCH" else _NO_LEADER)}
    end = partition.log_end_offset
    if not partition.log_start_offset <= step.offset <= end:
        nothing = {"high_watermark": _NONE, "last_stable_offset": _NONE, "log_start_offset": _NONE}
        return {"error": "OFFSET_OUT_OF_RANGE", "records": (), **nothing, **_NO_LEADER}
    batches = [batch for batch in partition.batches if batch.last_offset >= step.offset]
    limit = min(step.partition_max_bytes, step.max_bytes)
    return {
        "error": "NONE",
        "records": _whole_batches(batches, limit, is_segmented="segment.ms" in cluster.topics[step.topic].properties),
        "leader_epochs": _first_of(tuple(batch.leader_epoch for batch in batches)),
        "producers": _first_of(tuple(batch.producer for batch in batches)),
        "append_times": "as returned",
        "max_timestamps": "of the newest records",
        "codecs": _first_of(tuple(batch.codec for batch in batches)),
        "high_watermark": end,
        "last_stable_offset": end,
        "log_start_offset": partition.log_start_offset,
    }


def _first_of(all_batches: tuple[object, ...]) -> Satisfies:
    """Expect one item per returned batch. Any number of batches may be returned, beginning with the first."""
    return Satisfies(f"{all_batches}, or fewer", lambda found: found == all_batches[: len(found)])


def _whole_batches(batches: list[StoredBatch], limit: int, *, is_segmented: bool) -> tuple[ReadRecord, ...] | OneOf:
    """Return the records within the soft size limit (KIP-74): the first batch of any size, others while they fit.

    A response may also end at the end of any segment.
    """
    prefixes: list[tuple[ReadRecord, ...]] = []
    records: tuple[ReadRecord, ...] = ()
    size = 0
    for batch in batches:
        size += batch.size
        if prefixes and size > limit:
            break
        records += batch.records
        prefixes.append(records)
    if size <= limit and not (is_segmented and batches):
        return records
    return OneOf(tuple(prefixes), "the first batch, and more while they fit")


def list_offsets(cluster: ModelCluster, step: ListOffsets) -> Expectation:
    """Return an offset by timestamp, or by one of the special timestamps."""
    partition = cluster.partition(step.topic, step.partition)
    error = unknown_partition(cluster, step) if partition is None else _epoch_error(partition, step.leader_epoch)
    if partition is None or error is not None:
        return {"error": error, "timestamp": _NONE, "offset": _NONE}
    return {"error": "NONE", **_found(partition, step.timestamp)}


def _found(partition: Partition, timestamp: int) -> Expectation:
    match timestamp:
        case _ if timestamp == LATEST:
            epoch = partition.leader_epoch
            return {"timestamp": _NONE, "offset": partition.log_end_offset, "leader_epoch": epoch}
        case _ if timestamp == EARLIEST and partition.log_start_offset < partition.log_end_offset:
            epoch = partition.epoch_at(partition.log_start_offset)
            return {"timestamp": _NONE, "offset": partition.log_start_offset, "leader_epoch": epoch}
        case _ if timestamp in {EARLIEST, EARLIEST_LOCAL}:
            return {"timestamp": _NONE, "offset": partition.log_start_offset}
        case _ if timestamp == LATEST_TIERED:
            return {"timestamp": _NONE, "offset": _NONE, "leader_epoch": _NONE}
        case _ if timestamp == MAX_TIMESTAMP:
            return _newest(partition)
    first = next((record for record in partition.readable if (record.timestamp_ms or 0) >= timestamp), None)
    if first is None:
        return {"timestamp": _NONE, "offset": _NONE, "leader_epoch": _NONE}
    epoch = partition.epoch_at(first.offset)
    return {"timestamp": first.timestamp_ms, "offset": first.offset, "leader_epoch": epoch}


def _newest(partition: Partition) -> Expectation:
    readable = partition.readable
    if not readable:
        return {"timestamp": _NONE, "offset": _NONE, "leader_epoch": _NONE}
    newest = max(record.timestamp_ms or 0 for record in readable)
    offsets = tuple(record.offset for record in readable if record.timestamp_ms == newest)
    return {
        "timestamp": newest,
        "offset": OneOf(offsets, "any record with the newest timestamp") if len(offsets) > 1 else offsets[0],
        "leader_epoch": Satisfies("its epoch", {partition.epoch_at(offset) for offset in offsets}.__contains__),
    }


def offset_for_leader_epoch(cluster: ModelCluster, step: OffsetForLeaderEpoch) -> Expectation:
    """Return the end offset of the newest epoch up to the requested one."""
    partition = cluster.partition(step.topic, step.partition)
    error = unknown_partition(cluster, step) if partition is None else _epoch_error(partition, step.leader_epoch)
    if partition is None or error is not None:
        return {"error": error, "leader_epoch": _NONE, "end_offset": _NONE}
    epoch, end = partition.end_of_epoch(step.epoch)
    return {"error": "NONE", "leader_epoch": epoch, "end_offset": end}


def delete_records(cluster: ModelCluster, step: DeleteRecords) -> Expectation:
    """Advance the log start offset. It never decreases, and an offset above the high watermark is rejected."""
    partition = cluster.partition(step.topic, step.partition)
    if partition is None:
        return {"error": unknown_partition(cluster, step), "low_watermark": _NONE}
    if "delete" not in cluster.topics[step.topic].properties.get("cleanup.policy", "delete"):
        return {"error": "POLICY_VIOLATION", "low_watermark": _NONE}
    before = partition.log_end_offset if step.offset == _NONE else step.offset
    if not 0 <= before <= partition.log_end_offset:
        return {"error": "OFFSET_OUT_OF_RANGE", "low_watermark": _NONE}
    partition.log_start_offset = max(partition.log_start_offset, before)
    return {"error": "NONE", "low_watermark": partition.log_start_offset}
