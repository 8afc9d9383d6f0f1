"""What a node asks of others says truly who asks and what it has: the invariant `honest-request`.

Each field of a request is held against the state of the node that sends it, at that moment, and not against the code
that makes the message. This module has what the nodes of the quorum ask each other, `broker_requests` the rest.

| request          | who may ask         | what it must say                                                         |
|------------------|---------------------|--------------------------------------------------------------------------|
| any              |                     | the cluster, the node and its directory; to another voter, where it is   |
| Vote             | Prospective (pre-   | its epoch, the end of its log and the epoch of its last record           |
|                  | vote), Candidate    |                                                                          |
| BeginQuorumEpoch | Leader              | its epoch, and where it is                                               |
| EndQuorumEpoch   | Resigned            | the epoch that it led, all other voters as candidates, once each         |
| Fetch            | all but a Leader    | its epoch, the end of its log, the epoch of its last record, its high    |
|                  |                     | watermark; nothing of records while a snapshot is fetched; no fetch is   |
|                  |                     | under way, of records or of a snapshot                                   |
| FetchSnapshot    | Follower that was   | the snapshot, and what is there of it; no fetch is under way             |
|                  | told of a snapshot  |                                                                          |

Source: KIP-595, KIP-630, KIP-853, KIP-996, KIP-1166.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final

from reference_broker.core.connection import Channel
from reference_broker.core.quorum.messages import FetchRequest, FetchSnapshotRequest
from reference_broker.core.quorum.quorum_state import Candidate, Follower, Leader, Prospective, Resigned
from reference_broker.core.quorum.raft_client import KafkaRaftClient
from reference_broker.core.tracer import RequestSent
from reference_broker.simulation.invariants.broker_requests import CLAIMS as BROKER_CLAIMS
from reference_broker.simulation.invariants.broker_requests import Claim
from reference_broker.simulation.invariants.violation import InvariantViolation
from reference_broker.simulation.invariants.watch import Watched

_FETCH: Final = 1
_VOTE, _BEGIN_QUORUM_EPOCH, _END_QUORUM_EPOCH, _FETCH_SNAPSHOT = 52, 53, 54, 59
_RAFT: Final = "raft"
"""The purpose of the channels between nodes of the quorum."""


def check_request(watched: Watched, event: RequestSent) -> None:
    """See the table. Raises `InvariantViolation`."""
    channel, asked = event.channel, event.body
    claims = (_QUORUM_CLAIMS if channel.purpose == _RAFT else BROKER_CLAIMS).get(asked.__api_key__)
    if claims is None:
        raise _violated(watched, channel, asked, "a node asks this of nobody")
    for field, said, is_so in claims(watched, channel, asked):
        if said != is_so:
            raise _violated(watched, channel, asked, f"{field} is {said!r}, where the node has {is_so!r}")


def _violated(watched: Watched, channel: Channel, asked: Any, detail: str) -> InvariantViolation:
    who = f"{type(asked).__name__} of node {watched.node_id} to node {channel.node_id} ({channel.purpose})"
    return InvariantViolation("honest-request", f"{who}: {detail}")


# --- the quorum


def _addressed(watched: Watched, channel: Channel, asked: Any) -> Iterator[Claim]:
    assert watched.node is not None
    yield "cluster_id", asked.cluster_id, watched.node.runtime.identity.cluster_id
    voter = watched.node.layout.voters.get(channel.node_id)
    yield "another voter", voter is not None and channel.node_id != watched.node_id, True
    assert voter is not None
    yield "address", (channel.host, channel.port), (voter.host, voter.port)


def _of_voter(watched: Watched, channel: Channel, asked: Any, partition: Any) -> Iterator[Claim]:
    assert watched.node is not None
    voter = watched.node.layout.voters.key_of(channel.node_id)
    yield "voter_id", (asked.voter_id, partition.voter_directory_id), (voter.id, voter.directory_id)


def _of_vote(watched: Watched, channel: Channel, asked: Any) -> Iterator[Claim]:
    yield from _addressed(watched, channel, asked)
    quorum, partition = watched.quorum, asked.topics[0].partitions[0]
    yield from _of_voter(watched, channel, asked, partition)
    yield "pre_vote", partition.pre_vote, isinstance(quorum.state, Prospective)
    yield "a nominee", isinstance(quorum.state, Prospective | Candidate), True
    yield "replica_id", partition.replica_id, watched.node_id
    yield "replica_directory_id", partition.replica_directory_id, _directory_id(watched)
    yield "replica_epoch", partition.replica_epoch, quorum.state.epoch
    yield "last_offset", partition.last_offset, _end_offset(quorum)
    yield "last_offset_epoch", partition.last_offset_epoch, _last_epoch(quorum)


def _of_begin(watched: Watched, channel: Channel, asked: Any) -> Iterator[Claim]:
    yield from _addressed(watched, channel, asked)
    quorum, partition = watched.quorum, asked.topics[0].partitions[0]
    yield from _of_voter(watched, channel, asked, partition)
    yield "a leader", isinstance(quorum.state, Leader), True
    yield from _of_own_epoch(watched, asked, partition)


def _of_end(watched: Watched, channel: Channel, asked: Any) -> Iterator[Claim]:
    assert watched.node is not None
    yield from _addressed(watched, channel, asked)
    quorum, partition = watched.quorum, asked.topics[0].partitions[0]
    yield "resigned", isinstance(quorum.state, Resigned), True
    yield from _of_own_epoch(watched, asked, partition)
    named = [(each.candidate_id, each.candidate_directory_id) for each in partition.preferred_candidates]
    voters = watched.node.layout.voters
    if named:  # a node that was started again does not know who was how far
        others = sorted(tuple(voters.key_of(voter_id)) for voter_id in voters.others(watched.node_id))
        yield "preferred_candidates", sorted(named), others


def _of_own_epoch(watched: Watched, asked: Any, partition: Any) -> Iterator[Claim]:
    assert watched.node is not None
    yield "leader_id", partition.leader_id, watched.node_id
    yield "leader_epoch", partition.leader_epoch, watched.quorum.state.epoch
    own = watched.node.layout.voters.get(watched.node_id)
    assert own is not None
    endpoints = [(endpoint.host, endpoint.port) for endpoint in asked.leader_endpoints]
    yield "leader_endpoints", endpoints, [(own.host, own.port)]


def _of_fetch(watched: Watched, channel: Channel, asked: Any) -> Iterator[Claim]:
    yield from _addressed(watched, channel, asked)
    quorum, partition = watched.quorum, asked.topics[0].partitions[0]
    state = quorum.state
    yield "fetches under way", _fetches_under_way(quorum), 1
    yield "a leader's own fetch", isinstance(state, Leader), False
    if isinstance(state, Follower):
        yield "records while a snapshot is fetched", state.snapshot_id, None
    said_id = asked.replica_state.replica_id, partition.replica_directory_id
    yield "replica_id, replica_directory_id", said_id, (watched.node_id, _directory_id(watched))
    said = (
        partition.current_leader_epoch,
        partition.fetch_offset,
        partition.last_fetched_epoch,
        partition.high_watermark,
    )
    is_so = state.epoch, _end_offset(quorum), _last_epoch(quorum), quorum.high_watermark
    yield "current_leader_epoch, fetch_offset, last_fetched_epoch, high_watermark", said, is_so


def _of_fetch_snapshot(watched: Watched, channel: Channel, asked: Any) -> Iterator[Claim]:
    yield from _addressed(watched, channel, asked)
    state, partition = watched.quorum.state, asked.topics[0].partitions[0]
    yield "fetches under way", _fetches_under_way(watched.quorum), 1
    is_told = isinstance(state, Follower) and state.snapshot_id is not None
    yield "told of a snapshot", is_told, True
    assert isinstance(state, Follower)
    assert state.snapshot_id is not None
    yield "replica_id", asked.replica_id, watched.node_id
    yield "replica_directory_id", partition.replica_directory_id, _directory_id(watched)
    yield "current_leader_epoch", partition.current_leader_epoch, state.epoch
    # Whom it asks is not said here: one whose leader is silent asks any voter, to hear who leads.
    said = partition.snapshot_id.end_offset, partition.snapshot_id.epoch
    yield "snapshot_id", said, (state.snapshot_id.offset, state.snapshot_id.epoch)
    yield "position", partition.position, len(state.snapshot)


def _fetches_under_way(quorum: KafkaRaftClient) -> int:
    """The number of voters from which this node, in its present state, waits for a response to a fetch."""
    return sum(
        isinstance(request, FetchRequest | FetchSnapshotRequest) for request in quorum.request_manager.inflight_requests
    )


def _directory_id(watched: Watched) -> Any:
    assert watched.node is not None
    return watched.node.runtime.identity.directory_id


def _end_offset(quorum: KafkaRaftClient) -> int:
    return quorum.log.partition_log.segments[-1].end_offset


def _last_epoch(quorum: KafkaRaftClient) -> int:
    """Of the last record, be it in a snapshot; 0 where there is none."""
    entries, snapshots = quorum.log.partition_log.epochs.entries, quorum.log.snapshots.ids
    return entries[-1][0] if entries else snapshots[-1].epoch if snapshots else 0


_QUORUM_CLAIMS: Final[dict[int, Callable[[Watched, Channel, Any], Iterator[Claim]]]] = {
    _FETCH: _of_fetch,
    _VOTE: _of_vote,
    _BEGIN_QUORUM_EPOCH: _of_begin,
    _END_QUORUM_EPOCH: _of_end,
    _FETCH_SNAPSHOT: _of_fetch_snapshot,
}
