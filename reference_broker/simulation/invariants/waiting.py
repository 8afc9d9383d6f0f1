"""Delayed requests: a Fetch waits for records, a Produce with acks=all and an OffsetFetch wait for commits.

| name                | what must hold                                                                                |
|---------------------|-----------------------------------------------------------------------------------------------|
| `fetch-waits`       | a node returns at most three empty Fetch responses to one connection within `max_wait_ms`     |
| `stable-offsets`    | an OffsetFetch with `require_stable` returns offsets only after all commits that were in the  |
|                     | log at its arrival are committed (KIP-447)                                                    |
| `fetch-completes`   | after a change of a replica, no request whose condition is met is still delayed. A Fetch must |
|                     | complete if there are records to read (checked for `min_bytes` up to 1), or if the leader or  |
|                     | its epoch has changed. A Produce must complete if the high watermark has reached the end of   |
|                     | its records, or if the broker is no longer the leader                                         |
| `diverging-at-once` | a leader returns a diverging epoch to a follower at once: the Fetch does not wait (KIP-595)   |

A Fetch of the quorum also waits if `min_bytes` is 0. A few early responses are permitted, because a peer may have
abandoned earlier requests. A response with an error, a diverging epoch, a snapshot or a new high watermark of the
quorum is not empty. As in Kafka, a consumer whose fetch offset is above the high watermark does not wait. A Fetch that
waits continues to wait when the log start offset advances past its fetch offset.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from reference_broker.core.connection import Connection
from reference_broker.core.group_offsets import GroupOffsets
from reference_broker.core.handlers.fetch import DelayedFetch
from reference_broker.core.replication.delayed_produce import DelayedProduce
from reference_broker.core.replication.partition import Partition
from reference_broker.core.request import Request
from reference_broker.core.tracer import RequestReceived, ResponseSent
from reference_broker.protocol.durations import milliseconds
from reference_broker.protocol.errors import ErrorCode
from reference_broker.simulation.invariants.violation import InvariantViolation
from reference_broker.simulation.invariants.watch import Before, Observer, Replica, Watched

_FETCH, _OFFSET_FETCH = 1, 9
_TIMES: Final = 4
"""Number of empty responses whose times are kept for each connection."""


@dataclass(frozen=True, slots=True)
class _Pending:
    """The log end of a partition of `__consumer_offsets` when an OffsetFetch arrived at its leader."""

    partition: Partition
    leader_epoch: int
    end_offset: int


class WaitingInvariants(Observer):
    """Checks of delayed requests, and of their responses."""

    def __init__(self) -> None:
        self._empty: dict[Connection, list[int]] = {}
        """By connection: the times of the last empty responses, by the monotonic clock of the sending node."""
        self._arrived: dict[int, tuple[Request, int]] = {}
        """By `id` of a follower's Fetch: the request, and the time of its arrival by the clock of the node."""
        self._pending: dict[int, tuple[Request, list[_Pending | None]]] = {}
        """By `id` of an OffsetFetch with `require_stable`: the request, and by group the log end at its arrival."""

    def on_request(self, watched: Watched, event: RequestReceived) -> None:
        """Record when a follower's Fetch arrives, and the log ends that an OffsetFetch waits for."""
        request = event.request
        if request.api_key == _FETCH and not request.connection.is_controller and _follower(request.body) >= 0:
            self._arrived[id(request)] = request, watched.machine.now.monotonic_ms
        if request.api_key != _OFFSET_FETCH or not getattr(request.body, "require_stable", False):
            return
        assert watched.node is not None
        assert watched.node.broker is not None
        groups = watched.node.broker.groups
        led = [groups.find(group.group_id) for group in getattr(request.body, "groups", (request.body,))]
        self._pending[id(request)] = request, [_pending(offsets) for offsets in led]

    def on_response(self, watched: Watched, event: ResponseSent) -> None:
        """Check `fetch-waits`, `diverging-at-once` and `stable-offsets`."""
        request, response = event.request, event.body
        if request.api_key == _OFFSET_FETCH:
            _, pending = self._pending.pop(id(request), (None, []))
            _check_stable(watched, response, pending)
        if request.api_key != _FETCH:
            return
        self._check_divergence(watched, request, response)
        connection, max_wait_ms = request.connection, milliseconds(request.body.max_wait)
        waits = max_wait_ms > 0 and (request.body.min_bytes > 0 or connection.is_controller)
        if not waits or _has_news(request.body, response):
            self._empty.pop(connection, None)
            return
        times = self._empty.setdefault(connection, [])
        times.append(watched.machine.now.monotonic_ms)
        del times[:-_TIMES]
        if len(times) == _TIMES and times[-1] - times[0] < max_wait_ms:
            detail = f"node {watched.node_id} sends empty responses at {times} ms; the maximum wait is {max_wait_ms} ms"
            raise InvariantViolation("fetch-waits", detail)

    def _check_divergence(self, watched: Watched, request: Request, response: Any) -> None:
        """Check `diverging-at-once`. A follower's log cannot begin to diverge while its request waits."""
        now_ms = watched.machine.now.monotonic_ms
        _, arrived_ms = self._arrived.pop(id(request), (None, now_ms))
        if arrived_ms != now_ms and any(_diverges(part) for topic in response.responses for part in topic.partitions):
            detail = f"a follower waits {now_ms - arrived_ms} ms for a diverging epoch"
            raise InvariantViolation("diverging-at-once", f"node {watched.node_id}: {detail}")

    def changed(self, watched: Watched, replica: Replica, before: Before) -> None:
        """Check `fetch-completes`."""
        partition = replica.partition
        assert watched.node is not None
        assert partition is not None
        for operation in watched.node.runtime.purgatory.operations(replica.name):
            if _is_complete(operation, partition):
                detail = f"{replica}: {type(operation).__name__.strip('_')} waits in epoch {partition.leader_epoch}"
                ends = f"high watermark {partition.high_watermark} and log end {partition.log.log_end_offset}"
                raise InvariantViolation("fetch-completes", f"{detail}, with {ends}")


def _pending(offsets: GroupOffsets | ErrorCode) -> _Pending | None:
    if isinstance(offsets, ErrorCode):
        return None
    partition = offsets.partition
    return _Pending(partition, partition.leader_epoch, partition.log.log_end_offset)


def _check_stable(watched: Watched, response: Any, pending: Sequence[_Pending | None]) -> None:
    for group, waited in zip(getattr(response, "groups", (response,)), pending, strict=False):
        if waited is None or getattr(group, "error_code", ErrorCode.none) is not ErrorCode.none:
            continue
        partition = waited.partition
        if partition.leader_epoch == waited.leader_epoch and partition.high_watermark < waited.end_offset:
            detail = f"offsets are returned, although the log ended at {waited.end_offset} when the request arrived"
            place = f"{partition.topic}-{partition.index} on node {watched.node_id}"
            watermark = f"the high watermark is {partition.high_watermark}"
            raise InvariantViolation("stable-offsets", f"{place}: {detail}, and {watermark}")


def _is_complete(operation: Any, partition: Partition) -> bool:
    if isinstance(operation, DelayedProduce):
        required = operation.required.get(partition.key)
        return required is not None and (not partition.is_leader or required <= partition.high_watermark)
    if not isinstance(operation, DelayedFetch):
        return False
    requested, reader = operation.requested[partition.key], operation.reader
    epoch = getattr(requested, "current_leader_epoch", -1)
    is_elsewhere = (reader.leader_only and not partition.is_leader) or 0 <= epoch != partition.leader_epoch
    end_offset = partition.high_watermark if reader.follower is None else partition.log.log_end_offset
    has_records = partition.log_start_offset <= requested.fetch_offset < end_offset
    return is_elsewhere or (has_records and operation.request.body.min_bytes <= 1)


def _has_news(request: Any, response: Any) -> bool:
    """Whether a Fetch response is not empty, or is sent at once because the consumer is ahead."""
    if getattr(response, "error_code", ErrorCode.none) is not ErrorCode.none:
        return True
    is_consumer = _follower(request) < 0
    requested = [part for topic in request.topics for part in topic.partitions]
    found = [part for topic in response.responses for part in topic.partitions]
    return not found or any(
        part.records
        or part.error_code is not ErrorCode.none
        or _diverges(part)
        or _is_newer(part, getattr(partition, "high_watermark", None))
        or (is_consumer and partition.fetch_offset > part.high_watermark)
        for part, partition in zip(found, requested, strict=False)
    )


def _follower(request: Any) -> int:
    """Return the id of the replica that sends a Fetch; -1 for a consumer."""
    state = getattr(request, "replica_state", None)
    return int(request.replica_id if state is None else state.replica_id)


def _diverges(part: Any) -> bool:
    diverging, snapshot = getattr(part, "diverging_epoch", None), getattr(part, "snapshot_id", None)
    return (diverging is not None and diverging.epoch >= 0) or (snapshot is not None and snapshot.epoch >= 0)


def _is_newer(part: Any, known: int | None) -> bool:
    """Whether the high watermark of a response is higher than that of the request, if the request has one."""
    return known is not None and part.high_watermark > known
