"""Agreement of responses about a partition with the state of the broker when it sends them.

| name                | what must hold                                                                                |
|---------------------|-----------------------------------------------------------------------------------------------|
| `offset-response`   | ListOffsets returns the latest offset, the log start offset, or, for a timestamp, an offset   |
|                     | in the first batch with a record at or after it. The latest offset is the log end offset for  |
|                     | replicas and the high watermark for consumers. Until a new leader has committed all records   |
|                     | that it had at its election, consumers receive no latest offset (KIP-207)                     |
| `epoch-response`    | the end offset of an epoch is the end of its last batch, in responses to OffsetForLeaderEpoch |
|                     | and in the diverging epoch of a Fetch response (KIP-101, KIP-279, KIP-595)                    |
| `isr-response`      | with acks=all, NOT_ENOUGH_REPLICAS is returned only if the ISR is below                       |
|                     | `min.insync.replicas`. Only the leader acknowledges, and only if its maximal ISR              |
|                     | (`replication.isr`) is not below that number                                                  |
| `backs-off`         | a broker rejects at most five fetches of a follower for a partition and leader epoch within   |
|                     | `replica.fetch.backoff.ms`; OFFSET_OUT_OF_RANGE does not count                                |
| `records-response`  | a Fetch response begins with the batch of the log that contains the requested offset          |
| `delete-response`   | DeleteRecords returns no error only if the low watermark has reached the requested offset     |

Most of these values depend on replicas that lag, on failovers and on logs of several segments. A response is compared
only with the state of the sender. Therefore the invariants also hold for a former leader that does not know its
successor yet. Leader epochs, sequence numbers and the current leader are not compared here: the requirements specify
them (epochs, idempotence, leadership).
"""

from bisect import bisect_left
from collections.abc import Iterator
from operator import attrgetter
from typing import Any, Final

from reference_broker.core.broker import Broker
from reference_broker.core.replication.partition import Partition
from reference_broker.core.request import Request
from reference_broker.core.tracer import ResponseSent
from reference_broker.protocol.errors import ErrorCode
from reference_broker.protocol.record_batch import HEADER_SIZE_BYTES, BatchHeader
from reference_broker.simulation.invariants.log_mirror import LogMirror
from reference_broker.simulation.invariants.violation import InvariantViolation
from reference_broker.simulation.invariants.watch import Replica, Watched

_PRODUCE: Final = 0
_FETCH: Final = 1
_LIST_OFFSETS: Final = 2
_DELETE_RECORDS: Final = 21
_OFFSET_FOR_LEADER_EPOCH: Final = 23
_CONSUMER: Final = -1
_LATEST, _EARLIEST = -1, -2
_ACKS_ALL: Final = -1
_TOO_MANY_REJECTIONS: Final = 6
_TOO_FEW: Final = (ErrorCode.not_enough_replicas, ErrorCode.not_enough_replicas_after_append)
_NOT_AVAILABLE: Final = (ErrorCode.offset_not_available, ErrorCode.leader_not_available)
_base_offset, _last_offset = attrgetter("base_offset"), attrgetter("last_offset")


def check_response(watched: Watched, event: ResponseSent) -> None:
    """Check a response that a broker is about to send.

    :raises InvariantViolation: an invariant of the table is violated.
    """
    request, response = event.request, event.body
    is_for_broker = request.api_key in _TOPICS and not request.connection.is_controller  # otherwise `quorum_responses`
    if not is_for_broker or watched.node is None or watched.node.broker is None:
        return
    for requested, returned, partition in _pairs(watched, request, response):
        replica = watched.by_name.get(partition.key)
        mirror = replica.log if replica is not None and replica.partition is partition else None
        if request.api_key == _PRODUCE:
            _check_isr(watched.node.broker, request.body, returned, partition)
            continue
        if returned.error_code is not ErrorCode.none:
            if request.api_key == _FETCH and replica is not None:
                _check_backoff(watched, request, requested, returned.error_code, replica)
            if request.api_key == _LIST_OFFSETS and returned.error_code in _NOT_AVAILABLE:
                _check_unavailable(request, returned, partition)
            continue
        if request.api_key == _LIST_OFFSETS:
            _check_end(request, requested, returned, partition)
            if requested.timestamp >= 0 and mirror is not None:
                end_offset = _end_offset(request, partition)
                _check_time(requested.timestamp, returned.offset, end_offset, partition, mirror)
        elif request.api_key == _OFFSET_FOR_LEADER_EPOCH and mirror is not None:
            _check_epoch_end(partition, mirror, requested.leader_epoch, returned.leader_epoch, returned.end_offset)
        elif request.api_key == _DELETE_RECORDS:
            _check_low_watermark(requested, returned, partition)
        elif mirror is not None and request.api_key == _FETCH:
            _check_divergence(requested, returned, partition, mirror)
            _check_records(requested, returned, partition, mirror)
            _record_caught_up(request, requested, returned, watched.by_name[partition.key], partition)


_TOPICS: Final = {
    _PRODUCE: ("topic_data", "responses"),
    _FETCH: ("topics", "responses"),
    _LIST_OFFSETS: ("topics", "topics"),
    _DELETE_RECORDS: ("topics", "topics"),
    _OFFSET_FOR_LEADER_EPOCH: ("topics", "topics"),
}
"""Names of the fields with the topics of a request, and of its response."""
_PARTITIONS: Final = {_PRODUCE: ("partition_data", "partition_responses", "index")}
_INDEX: Final = {_LIST_OFFSETS: "partition_index", _DELETE_RECORDS: "partition_index"}


def _pairs(watched: Watched, request: Request, response: Any) -> Iterator[tuple[Any, Any, Partition]]:
    """Yield each partition of which this broker has a replica: its element in request and response, and the replica."""
    assert watched.node is not None
    assert watched.node.broker is not None
    replicas, image = watched.node.broker.replicas, watched.node.metadata.image
    request_field, response_field = _TOPICS[request.api_key]
    request_partitions, response_partitions, index_field = _PARTITIONS.get(
        request.api_key, ("partitions", "partitions", _INDEX.get(request.api_key, "partition"))
    )
    for requested_topic, topic in zip(
        getattr(request.body, request_field), getattr(response, response_field), strict=False
    ):
        name = getattr(requested_topic, "name", None) or getattr(requested_topic, "topic", None)
        if name is None:
            found = image.topics_by_id.get(requested_topic.topic_id)
            name = None if found is None else found.name
        for requested, returned in zip(
            getattr(requested_topic, request_partitions), getattr(topic, response_partitions), strict=False
        ):
            partition = None if name is None else replicas.get(name, getattr(requested, index_field))
            if partition is not None:
                yield requested, returned, partition


def _violated(name: str, partition: Partition, detail: str) -> InvariantViolation:
    return InvariantViolation(name, f"{partition.topic}-{partition.index}: {detail}")


def _check_isr(broker: Broker, body: Any, returned: Any, partition: Partition) -> None:
    is_accepted = returned.error_code is ErrorCode.none and body.acks == _ACKS_ALL
    # With several partitions, one of them may have completed while the broker was its leader.
    is_single = sum(len(topic.partition_data) for topic in body.topic_data) == 1
    if is_accepted and is_single and not partition.is_leader:
        raise _violated("isr-response", partition, "acks=all is acknowledged by a broker that is not the leader")
    if not partition.is_leader or not (is_accepted or returned.error_code in _TOO_FEW):
        return
    required = broker.replicas.configuration(partition.topic).integer("min.insync.replicas")
    required = min(required, len(partition.replicas))
    state = partition.isr
    if len(state.maximal) < required if is_accepted else len(state.isr) >= required:
        members = f"ISR {sorted(state.isr)} and maximal ISR {sorted(state.maximal)}, {required} are required"
        raise _violated("isr-response", partition, f"{returned.error_code.name} with {members}")


def _end_offset(request: Request, partition: Partition) -> int:
    """Return the latest offset for a ListOffsets request: the high watermark for a consumer, otherwise the log end."""
    return partition.high_watermark if request.body.replica_id == _CONSUMER else partition.log.log_end_offset


def _check_end(request: Request, requested: Any, returned: Any, partition: Partition) -> None:
    if requested.timestamp == _EARLIEST and returned.offset != partition.log_start_offset:
        detail = f"the log start offset is returned as {returned.offset}, and is {partition.log_start_offset}"
        raise _violated("offset-response", partition, detail)
    if requested.timestamp != _LATEST:
        return
    end_offset = _end_offset(request, partition)
    epoch = getattr(returned, "leader_epoch", partition.leader_epoch)
    if returned.offset != end_offset or epoch != partition.leader_epoch:
        actual, expected = (returned.offset, epoch), (end_offset, partition.leader_epoch)
        raise _violated(
            "offset-response", partition, f"latest offset and epoch are returned as {actual}, and are {expected}"
        )
    if request.body.replica_id == _CONSUMER and returned.offset < partition.epoch_start_offset:
        detail = f"{returned.offset} is returned as latest; the epoch begins at {partition.epoch_start_offset}"
        raise _violated("offset-response", partition, detail)


def _check_unavailable(request: Request, returned: Any, partition: Partition) -> None:
    is_behind = partition.epoch_start_offset > partition.high_watermark
    if request.body.replica_id != _CONSUMER or not is_behind:
        detail = f"{returned.error_code.name} is returned to replica id {request.body.replica_id}"
        ends = f"the high watermark is {partition.high_watermark}, the epoch begins at {partition.epoch_start_offset}"
        raise _violated("offset-response", partition, f"{detail}; {ends}")


def _check_time(timestamp_ms: int, offset: int, end_offset: int, partition: Partition, mirror: LogMirror) -> None:
    """Check that the offset of a timestamp is in the first batch with a record at or after this time.

    If there is no such batch below `end_offset`, no offset is returned. If the log start offset is inside the batch,
    the record may be below the log start, and any result is permitted.
    """
    first = None
    for header in mirror.headers_backwards(partition.log):
        if header.last_offset < partition.log_start_offset:
            break
        if header.max_timestamp_ms >= timestamp_ms:
            first = header
    if first is None or first.base_offset >= end_offset:
        is_valid = offset < 0
    else:
        is_valid = first.base_offset <= offset <= first.last_offset or first.base_offset < partition.log_start_offset
    if not is_valid:
        raise _violated(
            "offset-response", partition, f"offset {offset} is returned for {timestamp_ms} ms, and the batch is {first}"
        )


def _record_caught_up(request: Request, requested: Any, returned: Any, replica: Replica, partition: Partition) -> None:
    """Record the time of the fetch if the follower is caught up: it fetches from the log end without divergence."""
    state = getattr(request.body, "replica_state", None)
    if state is None or requested.fetch_offset != partition.log.log_end_offset or returned.diverging_epoch.epoch >= 0:
        return
    if state.replica_id in partition.followers:
        follower = partition.followers[state.replica_id]
        if follower.end_offset == requested.fetch_offset:
            replica.caught_up_ms[state.replica_id] = follower.last_fetch_ms


def _check_backoff(watched: Watched, request: Request, requested: Any, error: ErrorCode, replica: Replica) -> None:
    """Check the time in which the last fetches were rejected. A few may follow each other when the metadata changes."""
    state = getattr(request.body, "replica_state", None)
    if state is None or state.replica_id < 0 or error is ErrorCode.offset_out_of_range:
        return
    assert watched.node is not None
    times = replica.rejected_ms.setdefault((state.replica_id, state.replica_epoch, requested.current_leader_epoch), [])
    times.append(watched.machine.now.monotonic_ms)
    del times[:-_TOO_MANY_REJECTIONS]
    backoff_ms = watched.node.runtime.configuration.integer("replica.fetch.backoff.ms")
    if len(times) == _TOO_MANY_REJECTIONS and times[-1] - times[0] < backoff_ms:
        detail = f"{replica}: fetches of {state.replica_id} are rejected at {times} ms, the last with {error.name}"
        raise InvariantViolation("backs-off", detail)


def _check_epoch_end(partition: Partition, mirror: LogMirror, requested: int, epoch: int, end_offset: int) -> None:
    """Check the returned epoch, the largest up to the requested one, and its end offset.

    The broker knows no epochs below its log start offset.
    """
    batches = mirror.batches[bisect_left(mirror.batches, partition.log_start_offset, key=_last_offset) :]
    if end_offset < 0:
        if batches and batches[0].epoch <= requested <= batches[-1].epoch:
            raise _violated(
                "epoch-response", partition, f"no end offset is returned for epoch {requested}, which the log has"
            )
        return
    number = bisect_left(batches, end_offset, key=_base_offset)
    before, after = batches[number - 1] if number else None, batches[number] if number < len(batches) else None
    is_wrong = (before is not None and not before.epoch <= epoch <= requested) or (
        after is not None and after.epoch <= requested
    )
    if is_wrong:
        detail = f"epoch {epoch} up to {requested} is returned with end {end_offset}, between {before} and {after}"
        raise _violated("epoch-response", partition, detail)


def _check_divergence(requested: Any, returned: Any, partition: Partition, mirror: LogMirror) -> None:
    """Check the diverging epoch of a response. If there is none, the epochs around the fetch offset must agree."""
    epoch = getattr(requested, "last_fetched_epoch", -1)
    if epoch < 0:
        return
    if returned.diverging_epoch.epoch >= 0:
        diverging = returned.diverging_epoch
        _check_epoch_end(partition, mirror, epoch, diverging.epoch, diverging.end_offset)
        return
    before, after = mirror.before(requested.fetch_offset), mirror.holding(requested.fetch_offset)
    if before is not None and before.last_offset < partition.log_start_offset:
        before = None
    if (before is not None and before.epoch > epoch) or (after is not None and after.epoch < epoch):
        detail = f"no divergence of epoch {epoch} at {requested.fetch_offset}, between {before} and {after}"
        raise _violated("epoch-response", partition, detail)


def _check_low_watermark(requested: Any, returned: Any, partition: Partition) -> None:
    if returned.low_watermark < max(requested.offset, 0):
        detail = f"no error for offset {requested.offset}, with the low watermark {returned.low_watermark}"
        raise _violated("delete-response", partition, detail)


def _check_records(requested: Any, returned: Any, partition: Partition, mirror: LogMirror) -> None:
    records = returned.records
    if not records or len(records) < HEADER_SIZE_BYTES:
        return
    header, known = BatchHeader.parse(records), mirror.holding(requested.fetch_offset)
    if known is not None and (header.base_offset, header.crc) != (known.base_offset, known.crc):
        detail = (
            f"offset {header.base_offset} (crc {header.crc:08x}) is returned at {requested.fetch_offset}, not {known}"
        )
        raise _violated("records-response", partition, detail)
