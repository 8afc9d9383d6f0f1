"""What must hold for those who wait: for records (`max_wait_ms` of a Fetch), or for a commit (acks=all).

| name                | what must hold                                                                                |
|---------------------|-----------------------------------------------------------------------------------------------|
| `answer-waits`      | a node does not tell one connection again and again, sooner than it asks for, that nothing is |
|                     | new                                                                                           |
| `answer-comes`      | when a replica has changed, nobody is left waiting who has what it waits for: records to read,|
|                     | a watermark behind what it wrote, or the news that this broker, or its epoch, is another      |

Voters wait whatever `min_bytes` is. Once may be, as when somebody lost interest in an earlier request; what is refused,
parted, or has a new high watermark of the quorum is no answer of nothing. A consumer above the high watermark is not
made to wait, and one below a log start that has moved waits on, as with Kafka.
"""

from typing import Any, Final

from reference_broker.core.connection import Connection
from reference_broker.core.handlers.fetch import DelayedFetch
from reference_broker.core.replication.acknowledgement import Acknowledgement
from reference_broker.core.replication.partition import Partition
from reference_broker.core.tracer import ResponseSent
from reference_broker.protocol.durations import milliseconds
from reference_broker.protocol.errors import ErrorCode
from reference_broker.simulation.invariants.violation import InvariantViolation
from reference_broker.simulation.invariants.watch import Before, Observer, Replica, Watched

_FETCH: Final = 1
_TIMES: Final = 4


class WaitingInvariants(Observer):
    """An observer of a watch, which is told of answers, too."""

    def __init__(self) -> None:
        self._empty: dict[Connection, list[int]] = {}
        """When a node last answered nothing to a connection of its own, by its monotonic clock."""

    def answered(self, watched: Watched, event: ResponseSent) -> None:
        """See the table."""
        request, response = event.request, event.body
        if request.api_key != _FETCH:
            return
        connection, max_wait_ms = request.connection, milliseconds(request.body.max_wait)
        waits = max_wait_ms > 0 and (request.body.min_bytes > 0 or connection.is_controller)
        if not waits or _has_news(request.body, response):
            self._empty.pop(connection, None)
            return
        times = self._empty.setdefault(connection, [])
        times.append(watched.machine.now.monotonic_ms)
        del times[:-_TIMES]
        if len(times) == _TIMES and times[-1] - times[0] < max_wait_ms:
            detail = f"node {watched.node_id} answers nothing at {times} ms, and is asked to wait {max_wait_ms} ms"
            raise InvariantViolation("answer-waits", detail)

    def changed(self, watched: Watched, replica: Replica, before: Before) -> None:
        """See the table."""
        partition = replica.partition
        assert watched.node is not None
        assert partition is not None
        for operation in watched.node.runtime.purgatory.operations(replica.name):
            if _has_what_it_wants(operation, partition):
                detail = f"{replica}: {type(operation).__name__.strip('_')} waits, with the watermark at"
                ends = f"{partition.high_watermark}, the end at {partition.log.log_end_offset}"
                raise InvariantViolation("answer-comes", f"{detail} {ends}, in epoch {partition.leader_epoch}")


def _has_what_it_wants(operation: Any, partition: Partition) -> bool:
    if isinstance(operation, Acknowledgement):
        required = operation.required.get(partition.key)
        return required is not None and (not partition.is_leader or required <= partition.high_watermark)
    if not isinstance(operation, DelayedFetch):
        return False
    asked, reader = operation.asked[partition.key], operation.reader
    epoch = getattr(asked, "current_leader_epoch", -1)
    is_elsewhere = (reader.leader_only and not partition.is_leader) or 0 <= epoch != partition.leader_epoch
    end_offset = partition.high_watermark if reader.follower is None else partition.log.log_end_offset
    has_records = partition.log_start_offset <= asked.fetch_offset < end_offset
    return is_elsewhere or (has_records and operation.request.body.min_bytes <= 1)


def _has_news(asked: Any, response: Any) -> bool:
    if getattr(response, "error_code", ErrorCode.none) is not ErrorCode.none:
        return True
    state = getattr(asked, "replica_state", None)
    is_consumer = (asked.replica_id if state is None else state.replica_id) < 0
    wanted = [part for topic in asked.topics for part in topic.partitions]
    found = [part for topic in response.responses for part in topic.partitions]
    return not found or any(
        part.records
        or part.error_code is not ErrorCode.none
        or _parts(part)
        or _is_newer(part, getattr(wish, "high_watermark", None))
        or (is_consumer and wish.fetch_offset > part.high_watermark)
        for part, wish in zip(found, wanted, strict=False)
    )


def _parts(part: Any) -> bool:
    diverging, snapshot = getattr(part, "diverging_epoch", None), getattr(part, "snapshot_id", None)
    return (diverging is not None and diverging.epoch >= 0) or (snapshot is not None and snapshot.epoch >= 0)


def _is_newer(part: Any, known: int | None) -> bool:
    return known is not None and part.high_watermark > known
