"""Defects of request handlers: wrong errors, offsets and leaders in responses; acks and offsets are not checked."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from chaos.defects.defect import Area
from reference_broker.core import envelope
from reference_broker.core.clock import Now
from reference_broker.core.configuration.configuration import ConfigEntry
from reference_broker.core.handlers import (
    delete_records,
    describe_configs,
    fetch,
    find_coordinator,
    list_offsets,
    metadata,
    offset_for_leader_epoch,
    produce,
)
from reference_broker.core.handlers.cluster_view import ClusterView
from reference_broker.core.handlers.lookup import find_partition, find_topic
from reference_broker.core.log.append_validation import validate
from reference_broker.core.replication.delayed_produce import DelayedProduce
from reference_broker.core.replication.partition import Partition
from reference_broker.core.replication.partition_reader import PartitionReader
from reference_broker.core.request import Request
from reference_broker.protocol.errors import ErrorCode

_seeds = Area.PROTOCOL.seeds
_append = produce._append
_validate_all = produce._validate_all
_broker_entry = describe_configs._broker_entry
_check = PartitionReader.check
_find = list_offsets._find
_found = list_offsets._found
_check_partition = fetch._check_partition
_validate = delete_records._validate
_metadata_partition = metadata._partition


@_seeds(
    DelayedProduce, "try_complete", "acknowledged-is-committed", "watermark-on-isr", "lost-write", "stale-end-offset"
)
def acknowledge_after_the_timeout(self: DelayedProduce, now: Now, changed_key: object) -> bool:
    """Produce with acks=all returns no error when its timeout expires, instead of REQUEST_TIMED_OUT.

    A leader that is isolated acknowledges records that no follower has. They are lost when another leader is elected.
    """
    if not self.check() and changed_key is not None:
        return False
    self.errors.update(dict.fromkeys(self._required, ErrorCode.none))
    self._settled(self.errors, now)
    return True


@_seeds(produce, "_append", "offset-mismatch", "divergent-offset")
def return_the_last_offset(broker: Any, request: Request, result: Any, now: Now) -> None:
    """A Produce response has the offset of the batch's last record, not of its first one.

    Producers get wrong offsets for their records.
    """
    _append(broker, request, result, now)
    if result.base_offset >= 0 and result.end_offset > result.base_offset:
        result.base_offset = result.end_offset - 1


@_seeds(list_offsets, "_find", "not-converged", "watermark-regress", "offsets/earliest-and-latest-are-the-logs-ends")
def return_zero_for_the_start(request: Request, partition: Partition, requested: Any, found: Any) -> Any:
    """ListOffsets returns 0 as the start of every log.

    If the first records have been deleted, a consumer that begins at the start gets OFFSET_OUT_OF_RANGE.
    """
    if requested.timestamp == -2:
        return _found(request, requested, -1, 0, partition.leader_epoch)
    return _find(request, partition, requested, found)


@_seeds(list_offsets, "_partition", "two-leaders", "stale-end-offset", "leadership/only-the-leader-serves")
def return_offsets_of_a_follower(broker: Any, request: Request, topic: Any, requested: Any, found: Any) -> Any:
    """A follower responds to ListOffsets as if it were the leader.

    Its high watermark lags, so consumers get an end offset below that of acknowledged records.
    """
    partition = find_partition(broker, find_topic(broker, topic), requested.partition_index)
    if isinstance(partition, ErrorCode):
        return list_offsets._error(request, requested, partition)
    return list_offsets._find(request, partition, requested, found)


@_seeds(offset_for_leader_epoch, "_partition", "epochs/past-epochs-ended-where-the-next-began")
def return_the_log_end_for_every_epoch(broker: Any, request: Request, topic: Any, requested: Any) -> Any:
    """OffsetForLeaderEpoch returns the log end for every epoch.

    A consumer never detects a truncation, and continues in a log with other records.
    """
    found = find_topic(broker, topic)
    partition = find_partition(broker, found, requested.partition)
    error = offset_for_leader_epoch._check(partition, requested)
    if isinstance(partition, ErrorCode) or error is not ErrorCode.none:
        return request.replies.EpochEndOffset(error_code=error, partition=requested.partition)
    return request.replies.EpochEndOffset(
        error_code=ErrorCode.none,
        partition=requested.partition,
        leader_epoch=requested.leader_epoch,
        end_offset=partition.log.log_end_offset,
    )


@_seeds(PartitionReader, "check", "fetch/out-of-range-offset-is-rejected", "not-converged", "exception")
def wait_above_the_log_end(self: PartitionReader, partition: Partition, request: Any) -> ErrorCode:
    """A fetch above the log end does not fail with OFFSET_OUT_OF_RANGE, but waits until the log reaches its offset.

    After an unclean election the log end may be below a consumer's position. The consumer then skips all records up to
    its position.
    """
    error = _check(self, partition, request)
    is_above = request.fetch_offset > partition.log.log_end_offset
    return ErrorCode.none if error is ErrorCode.offset_out_of_range and is_above else error


@_seeds(fetch, "_check_partition", "acknowledged-is-committed", "fetch/never-above-high-watermark", "watermark-regress")
def return_the_log_end_in_fetch(partition: Partition, requested: Any, reader: PartitionReader, now: Now) -> Any:
    """Fetch returns the log end as the high watermark.

    Followers and consumers treat uncommitted records as committed.
    """
    status = _check_partition(partition, requested, reader, now)
    return status if status.high_watermark < 0 else status._replace(high_watermark=partition.log.log_end_offset)


@_seeds(produce, "_check", "produce/invalid-acks-are-rejected")
def accept_any_acks(request: Request, partition: Any) -> Any:
    """acks=2 is accepted, and treated as acks=1.

    A producer assumes that two replicas have its records.
    """
    return partition


@_seeds(produce, "_validate_all", "produce/rejected-request-leaves-no-record")
def append_before_the_acks_are_checked(broker: Any, request: Request, now: Now) -> Any:
    """A Produce request with acks=2 is rejected with INVALID_REQUIRED_ACKS only after its batches are appended.

    Consumers read records whose send failed. A producer that sends them again writes them twice.
    """
    results = yield from _validate_all(broker, request, now)
    for result in (each for each in results if each.error is ErrorCode.invalid_required_acks):
        partition = broker.replicas.find(result.key)
        if isinstance(partition, Partition):
            sent = next(data.records for data in result.topic.partition_data if data.index == result.index)
            batch = yield from validate(sent, partition.log.config, now.wall_ms)
            partition.append(batch, acks=1, now=now)
    return results


@_seeds(
    delete_records,
    "_validate",
    "watermark-within-log",
    "watermark-regress",
    "exception",
    "offsets/delete-records-stops-at-high-watermark",
)
def delete_above_the_high_watermark(partition: Partition, before_offset: int) -> ErrorCode:
    """DeleteRecords advances the log start offset up to the log end, above the high watermark.

    Uncommitted records are deleted, and the log starts above its high watermark.
    """
    error = _validate(partition, before_offset)
    is_in_log = before_offset <= partition.log.log_end_offset
    return ErrorCode.none if error is ErrorCode.offset_out_of_range and is_in_log and before_offset >= 0 else error


@_seeds(
    find_coordinator,
    "_coordinator",
    "not-converged",
    "commit-lost",
    "unavailable",
    "groups/only-the-coordinator-serves",
    "metadata-response",
)
def name_the_first_replica_as_coordinator(broker: Any, brokers: Any, group: str) -> Any:
    """FindCoordinator returns the first replica of the group's partition, even if another replica is the leader.

    After a failover, clients send their requests to a broker that always rejects them.
    """
    record = broker.image.partition("__consumer_offsets", broker.groups.partition_of(group))
    return None if record is None else brokers.get(record.replicas[0])


@_seeds(
    metadata,
    "_partition",
    "not-converged",
    "unavailable",
    "leadership/preferred-leader-is-elected",
    "metadata-response",
)
def name_the_first_replica_as_leader(request: Request, view: ClusterView, record: Any) -> Any:
    """Metadata returns the first replica as the leader if its broker is alive, even if another replica leads.

    After a failover, producers send their requests to a broker that always rejects them.
    """
    returned = _metadata_partition(request, view, record)
    preferred = record.replicas[0]
    if not view.is_alive(preferred):
        return returned
    return replace(returned, leader_id=preferred)


@_seeds(list_offsets, "_find", "offset-response", "watermark-regress", "offsets/earliest-and-latest-are-the-logs-ends")
def return_the_log_end(request: Request, partition: Partition, requested: Any, found: Any) -> Any:
    """ListOffsets returns the log end to consumers, not the high watermark.

    A consumer that reads up to this offset waits for records that may never be committed.
    """
    if requested.timestamp == -1:
        return _found(request, requested, -1, partition.log.log_end_offset, partition.leader_epoch)
    return _find(request, partition, requested, found)


@_seeds(describe_configs, "_broker_entry", "groups/oversize-metadata-is-rejected")
def describe_a_longer_limit(request: Request, entry: ConfigEntry, synonyms: list[ConfigEntry]) -> Any:
    """DescribeConfigs returns twice the `offset.metadata.max.bytes` that the coordinator applies.

    A client that uses the described limit cannot commit offsets.
    """
    described = [_doubled(each) if each.name == "offset.metadata.max.bytes" else each for each in (entry, *synonyms)]
    return _broker_entry(request, described[0], described[1:])


def _doubled(entry: ConfigEntry) -> ConfigEntry:
    return replace(entry, value=str(2 * int(entry.value or 0)))


@_seeds(envelope, "_error_codes", "forwarded-error", source="KIP-590")
def look_only_at_the_top_level_error(entity: Any) -> Iterator[ErrorCode]:
    """An Envelope response has the error NOT_CONTROLLER only if the top level of the embedded response has it.

    If only elements of the embedded response have this error, the broker that forwarded the request relays the
    response instead of retrying. The client gets NOT_CONTROLLER, although it sent its request to a broker.
    """
    if hasattr(entity, "error_code"):
        yield entity.error_code
