"""Order of the requests that a node sends: backoff, repeated proposals, and fetches of busy partitions.

| name                  | what must hold                                                                              |
|-----------------------|---------------------------------------------------------------------------------------------|
| `backs-off-from-peer` | after the loss of a request to a voter, a node sends no request to this voter for           |
|                       | `controller.quorum.retry.backoff.ms`, unless the node's state has changed                   |
|                       | (`RequestManager`)                                                                          |
| `proposal-is-new`     | after the final result of a proposal of an ISR, a broker sends no proposal with the same    |
|                       | leader epoch and partition epoch, except one that has replaced the first proposal before    |
|                       | the result                                                                                  |
| `fetches-again`       | when a follower has received records of a partition, it sends the next fetch in the same    |
|                       | event. The busy fetcher sends it, unless that fetcher has a request in flight               |
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from reference_broker.core.quorum.quorum_state import State
from reference_broker.core.replication.fetch_state import FetchPhase
from reference_broker.core.replication.replica_fetcher import FetchResponseProcessed
from reference_broker.core.replication.replica_fetcher_manager import FetcherKind
from reference_broker.core.tracer import RequestCompleted, RequestSent
from reference_broker.protocol.errors import ErrorCode
from reference_broker.simulation.invariants.violation import InvariantViolation
from reference_broker.simulation.invariants.watch import Before, Observer, Replica, Watched

_FETCH, _ALTER_PARTITION = 1, 56
_RAFT = "raft"
_DECIDED = (ErrorCode.none, ErrorCode.invalid_update_version)
"""Final results of a proposal. After another error, such as INELIGIBLE_REPLICA, it may be sent again."""
_RESULTS_MAX = 2
"""Maximum number of final results: that of a proposal, and that of the proposal that has replaced it."""
_Key = tuple[UUID, int]
"""Topic id and partition index."""
_Epochs = tuple[int, int]
"""Leader epoch and partition epoch."""


@dataclass(slots=True)
class _Sent:
    """Requests of one node since its start.

    :ivar in_flight: by correlation id of a request to a voter: the state and the time in which it was sent.
    :ivar lost: by voter: the state and the time in which the last request was lost.
    :ivar proposed: by partition: the epochs of the last proposal.
    :ivar results: by partition and epochs of proposals: the number of final results.
    :ivar received: by partition that has received records, until its next fetch: the time, and whether the busy fetcher
        must send this fetch.
    """

    in_flight: dict[int, tuple[State, int]] = field(default_factory=dict)
    lost: dict[int, tuple[State, int]] = field(default_factory=dict)
    proposed: dict[_Key, _Epochs] = field(default_factory=dict)
    results: Counter[tuple[_Key, _Epochs | None]] = field(default_factory=Counter)
    received: dict[_Key, tuple[int, bool]] = field(default_factory=dict)


class SentRequestInvariants(Observer):
    """Observer of requests and their completion. All times are those of the sender's monotonic clock."""

    def __init__(self) -> None:
        self._nodes: dict[int, _Sent] = {}

    def started(self, watched: Watched) -> None:
        """Drop the requests of the previous run of a node."""
        self._nodes[watched.node_id] = _Sent()

    def on_request(self, watched: Watched, event: RequestSent) -> None:
        """Check a request that a node is about to send."""
        sent, now_ms = self._nodes[watched.node_id], watched.machine.now.monotonic_ms
        if event.channel.purpose == _RAFT:
            state, lost_ms = sent.lost.get(event.channel.node_id, (None, 0))
            if state is watched.quorum.state and now_ms - lost_ms < watched.quorum.config.retry_backoff_ms:
                detail = f"node {watched.node_id} sends a request to node {event.channel.node_id}"
                raise InvariantViolation("backs-off-from-peer", f"{detail} {now_ms - lost_ms} ms after a lost request")
            sent.in_flight[event.correlation_id] = watched.quorum.state, now_ms
        elif event.body.__api_key__ == _ALTER_PARTITION:
            _check_proposals(watched, sent, event.body)
        elif event.body.__api_key__ == _FETCH:
            _check_fetcher(watched, sent, event)

    def on_completion(self, watched: Watched, event: RequestCompleted) -> None:
        """Record a lost request to a voter, and the final results of proposals."""
        sent, now_ms, response = self._nodes[watched.node_id], watched.machine.now.monotonic_ms, event.response
        state, sent_ms = sent.in_flight.pop(event.correlation_id, (None, 0))
        is_timeout = now_ms - sent_ms >= watched.quorum.config.request_timeout_ms
        if state is watched.quorum.state and response is None and not is_timeout:
            sent.lost[event.channel.node_id] = state, now_ms
        if getattr(response, "__api_key__", None) == _ALTER_PARTITION and response.error_code is ErrorCode.none:
            for topic in response.topics:
                decided = [result for result in topic.partitions if result.error_code in _DECIDED]
                keys = [(topic.topic_id, result.partition_index) for result in decided]
                sent.results.update((key, sent.proposed.get(key)) for key in keys)

    def on_records(self, watched: Watched, event: FetchResponseProcessed) -> None:
        """Record the partitions whose records a follower has appended."""
        assert watched.node is not None
        received, now_ms = self._nodes[watched.node_id].received, watched.machine.now.monotonic_ms
        in_flight = {(to.node_id, to.purpose) for to, _, _ in watched.node.runtime.channels.deadlines()}
        for state, _ in event.requested:
            if state.had_records_ms == now_ms and state.phase is FetchPhase.FETCHING:
                partition = state.partition
                is_free = (partition.leader, FetcherKind.BUSY.value) not in in_flight
                received[partition.topic_id, partition.index] = now_ms, is_free

    def changed(self, watched: Watched, replica: Replica, before: Before) -> None:
        """Check that a follower that has received records in this event has sent its next fetch."""
        received_ms, _ = self._nodes[watched.node_id].received.pop(replica.key, (-1, False))
        if received_ms == watched.machine.now.monotonic_ms:
            raise InvariantViolation(
                "fetches-again", f"{replica}: no fetch follows the records that were received at {received_ms} ms"
            )


def _check_proposals(watched: Watched, sent: _Sent, request: Any) -> None:
    for topic in request.topics:
        for partition in topic.partitions:
            key = topic.topic_id, partition.partition_index
            epochs = partition.leader_epoch, partition.partition_epoch
            sent.proposed[key] = epochs
            if sent.results[key, epochs] >= _RESULTS_MAX:
                detail = f"node {watched.node_id} proposes an ISR for partition epoch {partition.partition_epoch} again"
                raise InvariantViolation("proposal-is-new", f"{detail}, after {sent.results[key, epochs]} results")


def _check_fetcher(watched: Watched, sent: _Sent, event: RequestSent) -> None:
    for topic in event.body.topics:
        for partition in topic.partitions:
            _, is_free = sent.received.pop((topic.topic_id, partition.partition), (0, False))
            if is_free and event.channel.purpose != FetcherKind.BUSY.value:
                detail = f"node {watched.node_id} has received records of {topic.topic_id}-{partition.partition}"
                raise InvariantViolation("fetches-again", f"{detail}, and fetches with {event.channel.purpose}")
