"""What a response about a partition must contain, by what the broker that sends it has at that moment.

| name                | what must hold                                                                                |
|---------------------|-----------------------------------------------------------------------------------------------|
| `answer-of-end`     | ListOffsets returns the high watermark, the log start, or the first record of a time; no end  |
|                     | before a new leader has committed all that it found (KIP-207)                                 |
| `answer-of-epoch`   | an epoch ends where its last batch does, for OffsetForLeaderEpoch as for a follower's Fetch   |
|                     | (KIP-101, KIP-279, KIP-595)                                                                   |
| `answer-of-isr`     | NOT_ENOUGH_REPLICAS under acks=all if the ISR is below `min.insync.replicas`, and an          |
|                     | acknowledgement if it is not, or will not be, by the leader of that moment                    |
| `backs-off`         | a follower that was rejected does not send the same fetch again and again within              |
|                     | `replica.fetch.backoff.ms`                                                                    |
| `answer-of-records` | a Fetch returns the batches that the log has at these offsets, from the requested one on      |

These depend on replicas that lag, on failovers and on logs of several segments. Only what a node has itself is
compared, so that this holds also for a leader that is deposed and has not learnt of it. Leader epochs, sequence numbers
and the current leader in a response are specified by requirements (epochs, idempotence, leadership).
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
_OFFSET_FOR_LEADER_EPOCH: Final = 23
_CONSUMER: Final = -1
_LATEST, _EARLIEST = -1, -2
_ACKS_ALL: Final = -1
_REFUSALS_MAX: Final = 6
_TOO_FEW: Final = (ErrorCode.not_enough_replicas, ErrorCode.not_enough_replicas_after_append)
_base_offset, _last_offset = attrgetter("base_offset"), attrgetter("last_offset")


def check_answer(watched: Watched, event: ResponseSent) -> None:
    """See the table. Raises `InvariantViolation`."""
    request, response = event.request, event.body
    if request.api_key not in _TOPICS or watched.node is None or watched.node.broker is None:
        return
    if request.connection.is_controller:
        return  # of the quorum's log, which is judged elsewhere
    for asked, answered, partition in _pairs(watched, request, response):
        replica = watched.by_name.get(partition.key)
        mirror = replica.log if replica is not None and replica.partition is partition else None
        if request.api_key == _PRODUCE:
            _check_isr(watched.node.broker, request.body, answered, partition)
            continue
        if answered.error_code is not ErrorCode.none:
            if request.api_key == _FETCH and replica is not None:
                _check_backoff(watched, request, asked, answered.error_code, replica)
            continue
        if request.api_key == _LIST_OFFSETS:
            _check_end(request, asked, answered, partition)
            if asked.timestamp >= 0 and mirror is not None:
                _check_time(asked.timestamp, answered.offset, partition, mirror)
        elif request.api_key == _OFFSET_FOR_LEADER_EPOCH and mirror is not None:
            _check_epoch_end(partition, mirror, asked.leader_epoch, answered.leader_epoch, answered.end_offset)
        elif mirror is not None and request.api_key == _FETCH:
            _check_divergence(asked, answered, partition, mirror)
            _check_records(asked, answered, partition, mirror)
            _note_caught_up(request, asked, answered, watched.by_name[partition.key], partition)


_TOPICS: Final = {
    _PRODUCE: ("topic_data", "responses"),
    _FETCH: ("topics", "responses"),
    _LIST_OFFSETS: ("topics", "topics"),
    _OFFSET_FOR_LEADER_EPOCH: ("topics", "topics"),
}
"""What holds the topics of a request, and those of its answer."""
_PARTITIONS: Final = {_PRODUCE: ("partition_data", "partition_responses", "index")}
_INDEX: Final = {_LIST_OFFSETS: "partition_index"}


def _pairs(watched: Watched, request: Request, response: Any) -> Iterator[tuple[Any, Any, Partition]]:
    """Of partitions that this broker has: asked, answered."""
    assert watched.node is not None
    assert watched.node.broker is not None
    replicas, image = watched.node.broker.replicas, watched.node.metadata.image
    asked_in, answered_in = _TOPICS[request.api_key]
    asked_parts, answered_parts, index_in = _PARTITIONS.get(
        request.api_key, ("partitions", "partitions", _INDEX.get(request.api_key, "partition"))
    )
    for asked_topic, topic in zip(getattr(request.body, asked_in), getattr(response, answered_in), strict=False):
        name = getattr(asked_topic, "name", None) or getattr(asked_topic, "topic", None)
        if name is None:
            found = image.topics_by_id.get(asked_topic.topic_id)
            name = None if found is None else found.name
        for asked, answered in zip(getattr(asked_topic, asked_parts), getattr(topic, answered_parts), strict=False):
            partition = None if name is None else replicas.get(name, getattr(asked, index_in))
            if partition is not None:
                yield asked, answered, partition


def _violated(name: str, partition: Partition, detail: str) -> InvariantViolation:
    return InvariantViolation(name, f"{partition.topic}-{partition.index}: {detail}")


def _check_isr(broker: Broker, body: Any, answered: Any, partition: Partition) -> None:
    is_taken = answered.error_code is ErrorCode.none and body.acks == _ACKS_ALL
    is_alone = sum(len(topic.partition_data) for topic in body.topic_data) == 1  # others may have settled before
    if is_taken and is_alone and not partition.is_leader:
        raise _violated("answer-of-isr", partition, "acknowledged under acks=all by a broker that does not lead")
    if not partition.is_leader or not (is_taken or answered.error_code in _TOO_FEW):
        return
    demanded = broker.replicas.configuration(partition.topic).integer("min.insync.replicas")
    demanded = min(demanded, len(partition.replicas))
    state = partition.isr
    if len(state.maximal) < demanded if is_taken else len(state.isr) >= demanded:
        members = f"{sorted(state.isr)}, at most {sorted(state.maximal)}"
        raise _violated(
            "answer-of-isr", partition, f"{answered.error_code.name} with the ISR {members}, for {demanded}"
        )


def _check_end(request: Request, asked: Any, answered: Any, partition: Partition) -> None:
    if asked.timestamp == _EARLIEST and answered.offset != partition.log_start_offset:
        detail = f"the start is told as {answered.offset}, and is {partition.log_start_offset}"
        raise _violated("answer-of-end", partition, detail)
    if asked.timestamp != _LATEST or request.body.replica_id != _CONSUMER:
        return
    epoch = getattr(answered, "leader_epoch", partition.leader_epoch)
    if answered.offset != partition.high_watermark or epoch != partition.leader_epoch:
        told, is_so = (answered.offset, epoch), (partition.high_watermark, partition.leader_epoch)
        raise _violated("answer-of-end", partition, f"end and epoch are told as {told}, and are {is_so}")
    if answered.offset < partition.epoch_start_offset:
        detail = f"the end is told as {answered.offset}, before the epoch begins at {partition.epoch_start_offset}"
        raise _violated("answer-of-end", partition, detail)


def _check_time(timestamp_ms: int, told: int, partition: Partition, mirror: LogMirror) -> None:
    """The first committed batch that has a record so late; one that the log starts within may have lost it."""
    first = None
    for header in mirror.headers_backwards(partition.log):
        if header.last_offset < partition.log_start_offset:
            break
        if header.max_timestamp_ms >= timestamp_ms:
            first = header
    if first is None or first.base_offset >= partition.high_watermark:
        is_so = told < 0
    else:
        is_so = first.base_offset <= told <= first.last_offset or first.base_offset < partition.log_start_offset
    if not is_so:
        raise _violated("answer-of-end", partition, f"{timestamp_ms} ms is told to be at {told}, and is in {first}")


def _note_caught_up(request: Request, asked: Any, answered: Any, replica: Replica, partition: Partition) -> None:
    """A fetch from the end says so; one whose log parts from the leader's says nothing."""
    state = getattr(request.body, "replica_state", None)
    if state is None or asked.fetch_offset != partition.log.log_end_offset or answered.diverging_epoch.epoch >= 0:
        return
    if state.replica_id in partition.followers:
        follower = partition.followers[state.replica_id]
        if follower.end_offset == asked.fetch_offset:
            replica.caught_up_ms[state.replica_id] = follower.last_fetch_ms


def _check_backoff(watched: Watched, request: Request, asked: Any, error: ErrorCode, replica: Replica) -> None:
    """Twice may be, where it has heard of something meanwhile."""
    state = getattr(request.body, "replica_state", None)
    if state is None or state.replica_id < 0 or error is ErrorCode.offset_out_of_range:
        return
    assert watched.node is not None
    times = replica.refused_ms.setdefault((state.replica_id, state.replica_epoch, asked.current_leader_epoch), [])
    times.append(watched.machine.now.monotonic_ms)
    del times[:-_REFUSALS_MAX]
    backoff_ms = watched.node.runtime.configuration.integer("replica.fetch.backoff.ms")
    if len(times) == _REFUSALS_MAX and times[-1] - times[0] < backoff_ms:
        detail = f"{replica}: {state.replica_id} is refused with {error.name} at {times}"
        raise InvariantViolation("backs-off", detail)


def _check_epoch_end(partition: Partition, mirror: LogMirror, asked: int, epoch: int, end_offset: int) -> None:
    """What lies below the log start does not count: of it the broker has forgotten the epochs."""
    batches = mirror.batches[bisect_left(mirror.batches, partition.log_start_offset, key=_last_offset) :]
    if end_offset < 0:
        if batches and batches[0].epoch <= asked <= batches[-1].epoch:
            raise _violated("answer-of-epoch", partition, f"no end of epoch {asked}, which the log has")
        return
    number = bisect_left(batches, end_offset, key=_base_offset)
    before, behind = batches[number - 1] if number else None, batches[number] if number < len(batches) else None
    is_wrong = (before is not None and not before.epoch <= epoch <= asked) or (
        behind is not None and behind.epoch <= asked
    )
    if is_wrong:
        detail = f"up to epoch {asked} epoch {epoch} ends at {end_offset}, where {before} and {behind} meet"
        raise _violated("answer-of-epoch", partition, detail)


def _check_divergence(asked: Any, answered: Any, partition: Partition, mirror: LogMirror) -> None:
    """A follower that is told of none has, behind its last record, what the leader has there."""
    epoch = getattr(asked, "last_fetched_epoch", -1)
    if epoch < 0:
        return
    if answered.diverging_epoch.epoch >= 0:
        diverging = answered.diverging_epoch
        _check_epoch_end(partition, mirror, epoch, diverging.epoch, diverging.end_offset)
        return
    before, at = mirror.before(asked.fetch_offset), mirror.holding(asked.fetch_offset)
    if before is not None and before.last_offset < partition.log_start_offset:
        before = None
    if (before is not None and before.epoch > epoch) or (at is not None and at.epoch < epoch):
        detail = f"a follower with epoch {epoch} below {asked.fetch_offset} reads on, where {before} and {at} meet"
        raise _violated("answer-of-epoch", partition, detail)


def _check_records(asked: Any, answered: Any, partition: Partition, mirror: LogMirror) -> None:
    records = answered.records
    if not records or len(records) < HEADER_SIZE_BYTES:
        return
    header, known = BatchHeader.parse(records), mirror.holding(asked.fetch_offset)
    if known is not None and (header.base_offset, header.crc) != (known.base_offset, known.crc):
        detail = (
            f"offset {header.base_offset} (crc {header.crc:08x}) is given at {asked.fetch_offset}, there is {known}"
        )
        raise _violated("answer-of-records", partition, detail)
