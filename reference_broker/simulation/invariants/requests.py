"""Agreement of requests with the state of the node that sends them: the invariant `request-matches-state`.

When a request is sent, each of its fields is compared with the state of the sender. The expected values are computed
here, without the code that builds the message. This module checks the requests between the nodes of the quorum;
`broker_requests` checks all other requests.

| request          | sent by             | what it must contain                                                     |
|------------------|---------------------|--------------------------------------------------------------------------|
| any              |                     | the ids of the cluster, the node and its directory. The destination is   |
|                  |                     | the address of another voter                                             |
| Vote             | Prospective         | its epoch, the end of its log and the epoch of its last record           |
|                  | (pre-vote),         |                                                                          |
|                  | Candidate           |                                                                          |
| BeginQuorumEpoch | Leader              | its epoch and its endpoints                                              |
| EndQuorumEpoch   | Resigned            | the epoch that it led; all other voters as preferred successors, each    |
|                  |                     | once, or none after a restart                                            |
| Fetch            | any but a Leader    | its epoch, the end of its log, the epoch of its last record, its high    |
|                  |                     | watermark. It is not sent while the node fetches a snapshot, or while    |
|                  |                     | another Fetch or FetchSnapshot is in flight                              |
| FetchSnapshot    | Follower with a     | the id of the snapshot. The position is the number of bytes that it has  |
|                  | snapshot to fetch   | fetched. No other Fetch or FetchSnapshot is in flight                    |

Source: KIP-595, KIP-630, KIP-853, KIP-996, KIP-1166.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final

from reference_broker.core.connection import Channel
from reference_broker.core.quorum.messages import FetchRequest, FetchSnapshotRequest
from reference_broker.core.quorum.quorum_state import Candidate, Follower, Leader, Prospective, Resigned
from reference_broker.core.quorum.raft_client import KafkaRaftClient
from reference_broker.core.tracer import RequestSent
from reference_broker.simulation.invariants.broker_requests import COMPARISONS as BROKER_COMPARISONS
from reference_broker.simulation.invariants.broker_requests import Comparison
from reference_broker.simulation.invariants.violation import InvariantViolation
from reference_broker.simulation.invariants.watch import Watched

_FETCH: Final = 1
_VOTE, _BEGIN_QUORUM_EPOCH, _END_QUORUM_EPOCH, _FETCH_SNAPSHOT = 52, 53, 54, 59
_RAFT: Final = "raft"
"""The purpose of the channels between nodes of the quorum."""


def check_request(watched: Watched, event: RequestSent) -> None:
    """Check a request that a node is about to send.

    :raises InvariantViolation: `request-matches-state`.
    """
    channel, request = event.channel, event.body
    compare = (_QUORUM_COMPARISONS if channel.purpose == _RAFT else BROKER_COMPARISONS).get(request.__api_key__)
    if compare is None:
        raise _violated(watched, channel, request, "a node sends no such request")
    for field, actual, expected in compare(watched, channel, request):
        if actual != expected:
            raise _violated(watched, channel, request, f"{field} is {actual!r}, not {expected!r}")


def _violated(watched: Watched, channel: Channel, body: Any, detail: str) -> InvariantViolation:
    request = f"{type(body).__name__} of node {watched.node_id} to node {channel.node_id} ({channel.purpose})"
    return InvariantViolation("request-matches-state", f"{request}: {detail}")


# --- the quorum


def _compare_address(watched: Watched, channel: Channel, request: Any) -> Iterator[Comparison]:
    assert watched.node is not None
    yield "cluster_id", request.cluster_id, watched.node.runtime.identity.cluster_id
    voter = watched.node.layout.voters.get(channel.node_id)
    yield "whether the destination is another voter", voter is not None and channel.node_id != watched.node_id, True
    assert voter is not None
    yield "address", (channel.host, channel.port), (voter.host, voter.port)


def _compare_voter(watched: Watched, channel: Channel, request: Any, partition: Any) -> Iterator[Comparison]:
    assert watched.node is not None
    voter = watched.node.layout.voters.key_of(channel.node_id)
    actual = request.voter_id, partition.voter_directory_id
    yield "voter_id, voter_directory_id", actual, (voter.id, voter.directory_id)


def _compare_vote(watched: Watched, channel: Channel, request: Any) -> Iterator[Comparison]:
    yield from _compare_address(watched, channel, request)
    quorum, partition = watched.quorum, request.topics[0].partitions[0]
    yield from _compare_voter(watched, channel, request, partition)
    yield "pre_vote", partition.pre_vote, isinstance(quorum.state, Prospective)
    yield "whether the sender is Prospective or Candidate", isinstance(quorum.state, Prospective | Candidate), True
    yield "replica_id", partition.replica_id, watched.node_id
    yield "replica_directory_id", partition.replica_directory_id, _directory_id(watched)
    yield "replica_epoch", partition.replica_epoch, quorum.state.epoch
    yield "last_offset", partition.last_offset, _end_offset(quorum)
    yield "last_offset_epoch", partition.last_offset_epoch, _last_epoch(quorum)


def _compare_begin_quorum_epoch(watched: Watched, channel: Channel, request: Any) -> Iterator[Comparison]:
    yield from _compare_address(watched, channel, request)
    quorum, partition = watched.quorum, request.topics[0].partitions[0]
    yield from _compare_voter(watched, channel, request, partition)
    yield "whether the sender is Leader", isinstance(quorum.state, Leader), True
    yield from _compare_own_epoch(watched, request, partition)


def _compare_end_quorum_epoch(watched: Watched, channel: Channel, request: Any) -> Iterator[Comparison]:
    assert watched.node is not None
    yield from _compare_address(watched, channel, request)
    quorum, partition = watched.quorum, request.topics[0].partitions[0]
    yield "whether the sender is Resigned", isinstance(quorum.state, Resigned), True
    yield from _compare_own_epoch(watched, request, partition)
    named = [(each.candidate_id, each.candidate_directory_id) for each in partition.preferred_candidates]
    voters = watched.node.layout.voters
    if named:  # a restarted node does not know the fetch offsets of the other voters
        others = sorted(tuple(voters.key_of(voter_id)) for voter_id in voters.others(watched.node_id))
        yield "preferred_candidates", sorted(named), others


def _compare_own_epoch(watched: Watched, request: Any, partition: Any) -> Iterator[Comparison]:
    assert watched.node is not None
    yield "leader_id", partition.leader_id, watched.node_id
    yield "leader_epoch", partition.leader_epoch, watched.quorum.state.epoch
    own = watched.node.layout.voters.get(watched.node_id)
    assert own is not None
    endpoints = [(endpoint.host, endpoint.port) for endpoint in request.leader_endpoints]
    yield "leader_endpoints", endpoints, [(own.host, own.port)]


def _compare_fetch(watched: Watched, channel: Channel, request: Any) -> Iterator[Comparison]:
    yield from _compare_address(watched, channel, request)
    quorum, partition = watched.quorum, request.topics[0].partitions[0]
    state = quorum.state
    yield "number of fetches in flight", _fetches_under_way(quorum), 1
    yield "whether the sender is Leader", isinstance(state, Leader), False
    if isinstance(state, Follower):
        yield "snapshot to fetch", state.snapshot_id, None
    replica = request.replica_state.replica_id, partition.replica_directory_id
    yield "replica_id, replica_directory_id", replica, (watched.node_id, _directory_id(watched))
    actual = (
        partition.current_leader_epoch,
        partition.fetch_offset,
        partition.last_fetched_epoch,
        partition.high_watermark,
    )
    expected = state.epoch, _end_offset(quorum), _last_epoch(quorum), quorum.high_watermark
    yield "current_leader_epoch, fetch_offset, last_fetched_epoch, high_watermark", actual, expected


def _compare_fetch_snapshot(watched: Watched, channel: Channel, request: Any) -> Iterator[Comparison]:
    yield from _compare_address(watched, channel, request)
    state, partition = watched.quorum.state, request.topics[0].partitions[0]
    yield "number of fetches in flight", _fetches_under_way(watched.quorum), 1
    has_snapshot = isinstance(state, Follower) and state.snapshot_id is not None
    yield "whether there is a snapshot to fetch", has_snapshot, True
    assert isinstance(state, Follower)
    assert state.snapshot_id is not None
    yield "replica_id", request.replica_id, watched.node_id
    yield "replica_directory_id", partition.replica_directory_id, _directory_id(watched)
    yield "current_leader_epoch", partition.current_leader_epoch, state.epoch
    # The destination may be any voter: a follower that has lost contact to its leader looks for the leader this way.
    actual = partition.snapshot_id.end_offset, partition.snapshot_id.epoch
    yield "snapshot_id", actual, (state.snapshot_id.offset, state.snapshot_id.epoch)
    yield "position", partition.position, len(state.snapshot)


def _fetches_under_way(quorum: KafkaRaftClient) -> int:
    """Return the number of fetches in flight that this node has sent in its current state."""
    return sum(
        isinstance(request, FetchRequest | FetchSnapshotRequest) for request in quorum.request_manager.inflight_requests
    )


def _directory_id(watched: Watched) -> Any:
    assert watched.node is not None
    return watched.node.runtime.identity.directory_id


def _end_offset(quorum: KafkaRaftClient) -> int:
    return quorum.log.partition_log.segments[-1].end_offset


def _last_epoch(quorum: KafkaRaftClient) -> int:
    """Return the epoch of the last record, which may be in a snapshot; 0 if there is none."""
    entries, snapshots = quorum.log.partition_log.epochs.entries, quorum.log.snapshots.ids
    return entries[-1][0] if entries else snapshots[-1].epoch if snapshots else 0


_QUORUM_COMPARISONS: Final[dict[int, Callable[[Watched, Channel, Any], Iterator[Comparison]]]] = {
    _FETCH: _compare_fetch,
    _VOTE: _compare_vote,
    _BEGIN_QUORUM_EPOCH: _compare_begin_quorum_epoch,
    _END_QUORUM_EPOCH: _compare_end_quorum_epoch,
    _FETCH_SNAPSHOT: _compare_fetch_snapshot,
}
