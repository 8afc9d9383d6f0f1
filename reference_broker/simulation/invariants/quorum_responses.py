"""Agreement of a quorum node's responses with its state when it sends them: the invariant `quorum-response`.

| request           | what must hold for the response                                                                 |
|-------------------|-------------------------------------------------------------------------------------------------|
| any of the quorum | INCONSISTENT_CLUSTER_ID is returned if and only if the request is from another cluster. The     |
|                   | response has the node's epoch, leader and the leader's endpoint; an epoch is rejected as older  |
|                   | or newer only if it is older or newer                                                           |
| Vote              | a granted vote is stored. A vote is denied only if the candidate's log is behind, or if the     |
|                   | node has voted for another candidate, knows a leader, or is a Candidate or Resigned. A pre-vote |
|                   | is denied only if the candidate's log is behind, or if the node is a Leader or a Follower whose |
|                   | leader has responded (KIP-595, KIP-996)                                                         |
| BeginQuorumEpoch, | the epoch of an accepted request is the node's own afterwards                                   |
| EndQuorumEpoch    | the same; a follower of the resigned leader waits until its turn among the preferred            |
|                   | successors, at most the maximum election backoff (KIP-595)                                      |
| Fetch             | a response without an error is from the leader of the epoch, and has its high watermark. It has |
|                   | at most one of: records from the fetch offset on, the diverging epoch, the id of the snapshot   |
|                   | to fetch. If it has none of them, the fetch offset is the log end. Only the leader and epoch    |
|                   | are compared if the leader has resigned since                                                   |
| FetchSnapshot     | a response without an error is from the leader of the epoch, which may have resigned since. It  |
|                   | has the bytes that the leader's disk has at the requested position                              |
| DescribeQuorum    | the leader returns its state of each voter and observer, each once; another node returns the    |
|                   | leader that it knows (KIP-836). For unknown partitions leader, epoch and high watermark are 0   |
"""

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, Final

from reference_broker.core.quorum.leader_state import ReplicaState
from reference_broker.core.quorum.messages import NO_LEADER, OffsetAndEpoch
from reference_broker.core.quorum.quorum_log import QUORUM_LOG_DIRECTORY
from reference_broker.core.quorum.quorum_state import Follower, Leader, Prospective, Resigned, State, Unattached
from reference_broker.core.quorum.raft_client import KafkaRaftClient
from reference_broker.core.topic_names import CLUSTER_METADATA_TOPIC
from reference_broker.core.tracer import ResponseSent
from reference_broker.protocol.errors import ErrorCode
from reference_broker.protocol.record_batch import HEADER_SIZE_BYTES, BatchHeader
from reference_broker.simulation.invariants.admin_responses import Comparison
from reference_broker.simulation.invariants.violation import InvariantViolation
from reference_broker.simulation.invariants.watch import Watched

_FETCH, _VOTE, _BEGIN_QUORUM_EPOCH, _END_QUORUM_EPOCH = 1, 52, 53, 54
_DESCRIBE_QUORUM, _FETCH_SNAPSHOT = 55, 59


def check_quorum_response(watched: Watched, event: ResponseSent) -> None:
    """Check a response that a quorum node is about to send.

    :raises InvariantViolation: `quorum-response`.
    """
    request, response = event.request, event.body
    compare = _COMPARISONS.get(request.api_key)
    if compare is None or watched.node is None or not request.connection.is_controller:
        return
    for field, actual, expected in compare(watched, request.body, response):
        if actual != expected:
            detail = f"{type(response).__name__} of node {watched.node_id}: {field} is {actual!r}, not {expected!r}"
            raise InvariantViolation("quorum-response", detail)


def _compare_cluster(watched: Watched, request: Any, response: Any) -> Iterator[Comparison]:
    assert watched.node is not None
    is_other = request.cluster_id not in {None, "", watched.node.runtime.identity.cluster_id}
    yield "rejected for its cluster id", response.error_code is ErrorCode.inconsistent_cluster_id, is_other


def _compare_leader(watched: Watched, response: Any, leader_id: int, leader_epoch: int) -> Iterator[Comparison]:
    assert watched.node is not None
    state = watched.quorum.state
    yield "leader_id, leader_epoch", (leader_id, leader_epoch), (state.leader_id, state.epoch)
    voter = watched.node.layout.voters.get(leader_id)
    endpoints = [(each.node_id, each.host, each.port) for each in response.node_endpoints]
    yield "node_endpoints", endpoints, [] if voter is None else [(leader_id, voter.host, voter.port)]


def _is_from_previous_state(watched: Watched, leader_and_epoch: tuple[int, int], request_epoch: int) -> bool:
    """Whether the response was made in the previous state, which the node has left in the same event."""
    before = watched.quorum_state
    if not isinstance(before, State) or before is watched.quorum.state:
        return False
    return leader_and_epoch == (before.leader_id, before.epoch) and request_epoch <= before.epoch


def _compare_epoch(watched: Watched, code: ErrorCode, request_epoch: int) -> Iterator[Comparison]:
    epoch = watched.quorum.state.epoch
    if code is ErrorCode.none:
        yield "epoch", request_epoch, epoch
    elif code is ErrorCode.fenced_leader_epoch:
        yield "older epoch", request_epoch < epoch, True
    elif code is ErrorCode.unknown_leader_epoch:
        yield "newer epoch", request_epoch > epoch, True


# --- elections


def _compare_vote(watched: Watched, request: Any, response: Any) -> Iterator[Comparison]:
    yield from _compare_cluster(watched, request, response)
    if response.error_code is not ErrorCode.none:
        return
    requested, returned = request.topics[0].partitions[0], response.topics[0].partitions[0]
    if _is_from_previous_state(watched, (returned.leader_id, returned.leader_epoch), requested.replica_epoch):
        return
    yield from _compare_leader(watched, response, returned.leader_id, returned.leader_epoch)
    yield from _compare_voter(watched, request, requested, returned.error_code)
    if returned.error_code is ErrorCode.fenced_leader_epoch:
        yield from _compare_epoch(watched, returned.error_code, requested.replica_epoch)
    if returned.error_code is not ErrorCode.none:
        yield "vote_granted with an error", returned.vote_granted, False
        return
    state = watched.quorum.state
    if returned.vote_granted:
        if not requested.pre_vote:
            yield "epoch", requested.replica_epoch, state.epoch
            yield "voted", None if state.voted is None else state.voted.id, requested.replica_id
    else:
        yield "denied without a reason", _may_deny_vote(watched.quorum, requested), True


def _may_deny_vote(quorum: KafkaRaftClient, requested: Any) -> bool:
    state = quorum.state
    if (requested.last_offset_epoch, requested.last_offset) < (quorum.log.last_epoch, quorum.log.end_offset):
        return True
    if requested.pre_vote:
        return isinstance(state, Leader) or (isinstance(state, Follower) and state.has_fetched)
    if not isinstance(state, Unattached | Prospective) or state.leader_id != NO_LEADER:
        return True
    return state.voted is not None and state.voted.id != requested.replica_id


def _compare_epoch_change(watched: Watched, request: Any, response: Any) -> Iterator[Comparison]:
    yield from _compare_cluster(watched, request, response)
    if response.error_code is not ErrorCode.none:
        return
    requested, returned = request.topics[0].partitions[0], response.topics[0].partitions[0]
    if _is_from_previous_state(watched, (returned.leader_id, returned.leader_epoch), requested.leader_epoch):
        return
    yield from _compare_leader(watched, response, returned.leader_id, returned.leader_epoch)
    yield from _compare_epoch(watched, returned.error_code, requested.leader_epoch)
    if hasattr(requested, "voter_directory_id"):
        yield from _compare_voter(watched, request, requested, returned.error_code)
    elif returned.error_code is ErrorCode.none:  # EndQuorumEpoch, which names no voter
        yield from _compare_successor(watched.quorum, requested, watched.machine.now.monotonic_ms)


def _compare_successor(quorum: KafkaRaftClient, requested: Any, now_ms: int) -> Iterator[Comparison]:
    """Compare the time until the follower's election with Kafka's `strictExponentialElectionBackoffMs`.

    The first successor does not wait. The maximum wait of every other successor is twice that of the previous one. The
    last one waits at most half of `election_backoff_max_ms`, and a node that is no successor at most all of it.
    """
    state = quorum.state
    if isinstance(state, Follower) and (state.leader_id, state.epoch) == (requested.leader_id, requested.leader_epoch):
        candidates = [each.candidate_id for each in getattr(requested, "preferred_candidates", ())]
        own = quorum.local.id
        behind = len(candidates) - candidates.index(own) if own in candidates else 0
        waits_ms = state.fetch_deadline_ms - now_ms
        yield "waits no longer than its turn", waits_ms <= quorum.config.election_backoff_max_ms >> behind, True
        yield "goes first", waits_ms <= 0, own in candidates[:1]


def _compare_voter(watched: Watched, request: Any, requested: Any, code: ErrorCode) -> Iterator[Comparison]:
    """Check that the error is INVALID_VOTER_KEY if, and only if, the request names another voter (KIP-853)."""
    local = watched.quorum.local
    named = request.voter_id, requested.voter_directory_id
    is_other = request.voter_id >= 0 and named not in {(local.id, local.directory_id), (local.id, None)}
    if code in {ErrorCode.none, ErrorCode.invalid_voter_key}:
        yield "addressed to another voter", code is ErrorCode.invalid_voter_key, is_other


# --- replication


def _compare_fetch(watched: Watched, request: Any, response: Any) -> Iterator[Comparison]:
    yield from _compare_cluster(watched, request, response)
    if response.error_code is not ErrorCode.none:
        return
    requested, returned = request.topics[0].partitions[0], response.responses[0].partitions[0]
    leader = returned.current_leader
    if _is_from_previous_state(watched, (leader.leader_id, leader.leader_epoch), requested.current_leader_epoch):
        return
    yield from _compare_leader(watched, response, leader.leader_id, leader.leader_epoch)
    yield from _compare_epoch(watched, returned.error_code, requested.current_leader_epoch)
    if returned.error_code is not ErrorCode.none:
        return
    quorum, state = watched.quorum, watched.quorum.state
    if isinstance(state, Resigned):
        return  # the node was the leader when it processed the request, and has resigned since
    yield "a leader", isinstance(state, Leader), True
    assert isinstance(state, Leader)
    yield "high_watermark", returned.high_watermark, state.high_watermark
    diverging, snapshot, records = returned.diverging_epoch, returned.snapshot_id, returned.records or b""
    yield "kinds of responses", (diverging.epoch >= 0) + (snapshot.end_offset >= 0) + bool(records) <= 1, True
    if records:
        header = BatchHeader.parse(records) if len(records) >= HEADER_SIZE_BYTES else None
        has_offset = header is not None and header.base_offset <= requested.fetch_offset <= header.last_offset
        yield f"records from {requested.fetch_offset} on", has_offset, True
    elif diverging.epoch < 0 and snapshot.end_offset < 0:
        yield "nothing behind", requested.fetch_offset, quorum.log.partition_log.segments[-1].end_offset
    if snapshot.end_offset >= 0:
        is_there = OffsetAndEpoch(snapshot.end_offset, snapshot.epoch) in quorum.log.snapshots.ids
        yield "a snapshot that exists", is_there, True
    elif not quorum.log.snapshots.ids:
        actual = None if diverging.epoch < 0 else (diverging.epoch, diverging.end_offset)
        yield "diverging_epoch", actual, _divergence(quorum, requested.fetch_offset, requested.last_fetched_epoch)


def _divergence(quorum: KafkaRaftClient, fetch_offset: int, epoch: int) -> tuple[int, int] | None:
    """Return the diverging epoch and its end offset; None if the follower's log does not diverge.

    The follower's log ends at this offset and epoch. An empty log diverges from no other, whatever its epoch
    (`validateOffsetAndEpoch`). The log of this node must begin at offset 0.
    """
    if fetch_offset == 0:
        return None
    log = quorum.log.partition_log
    starts = [*log.epochs.entries, (1 << 62, log.segments[-1].end_offset)]
    found, end_offset = 0, 0
    for (own, _), (_, next_start) in pairwise(starts):
        if own <= epoch:
            found, end_offset = own, next_start
    return None if found == epoch and fetch_offset <= end_offset else (found, end_offset)


def _compare_fetch_snapshot(watched: Watched, request: Any, response: Any) -> Iterator[Comparison]:
    assert watched.node is not None
    yield from _compare_cluster(watched, request, response)
    if response.error_code is not ErrorCode.none:
        return
    requested, returned = request.topics[0].partitions[0], response.topics[0].partitions[0]
    leader = returned.current_leader
    if _is_from_previous_state(watched, (leader.leader_id, leader.leader_epoch), requested.current_leader_epoch):
        return
    yield from _compare_leader(watched, response, leader.leader_id, leader.leader_epoch)
    yield from _compare_epoch(watched, returned.error_code, requested.current_leader_epoch)
    disk = watched.node.runtime.disk
    snapshot_id = requested.snapshot_id
    path = f"{QUORUM_LOG_DIRECTORY}/{snapshot_id.end_offset:020d}-{snapshot_id.epoch:010d}.checkpoint"
    if returned.error_code is ErrorCode.snapshot_not_found:
        yield "exists", disk.exists(path), False
    if returned.error_code is not ErrorCode.none:
        return
    yield "a leader", isinstance(watched.quorum.state, Leader | Resigned), True
    actual = (returned.snapshot_id.end_offset, returned.snapshot_id.epoch), returned.position
    yield "snapshot_id, position", actual, ((snapshot_id.end_offset, snapshot_id.epoch), requested.position)
    size = disk.size(path)
    yield "size", returned.size, size
    piece = disk.read(path, requested.position, min(request.max_bytes, size - requested.position))
    yield "unaligned_records", bytes(returned.unaligned_records or b""), bytes(piece)


# --- to administrators


def _compare_describe_quorum(watched: Watched, request: Any, response: Any) -> Iterator[Comparison]:
    places = [(topic.topic_name, part.partition_index) for topic in request.topics for part in topic.partitions]
    returned = [(topic.topic_name, part) for topic in response.topics for part in topic.partitions]
    yield "partitions", [(name, part.partition_index) for name, part in returned], places
    state, is_valid = watched.quorum.state, places == [(CLUSTER_METADATA_TOPIC, 0)]  # `hasValidTopicPartition`
    for name, part in returned:
        if not is_valid:
            actual = part.error_code, part.leader_id, part.leader_epoch, part.high_watermark
            expected = ErrorCode.unknown_topic_or_partition, 0, 0, 0
            yield f"{name}: error, leader_id, leader_epoch, high_watermark", actual, expected
            continue
        yield "leader_id, leader_epoch", (part.leader_id, part.leader_epoch), (state.leader_id, state.epoch)
        if isinstance(state, Leader):
            yield "error", part.error_code, ErrorCode.none
            yield from _compare_described_partition(watched, state, part)
        else:
            yield "error", part.error_code, ErrorCode.not_leader_or_follower


def _compare_described_partition(watched: Watched, state: Leader, part: Any) -> Iterator[Comparison]:
    assert watched.node is not None
    voters = watched.node.layout.voters
    yield "high_watermark", part.high_watermark, state.high_watermark
    yield "current_voters", [voter.replica_id for voter in part.current_voters], list(voters.ids)
    for voter in part.current_voters:
        key = voters.key_of(voter.replica_id)
        if hasattr(voter, "replica_directory_id"):
            yield f"voter {voter.replica_id}: directory", voter.replica_directory_id, key.directory_id
        own_end = watched.quorum.log.partition_log.segments[-1].end_offset
        is_own = voter.replica_id == watched.node_id
        end_offset = own_end if is_own else state.voter_states[voter.replica_id].end_offset
        yield f"voter {voter.replica_id}: log_end_offset", voter.log_end_offset, end_offset
        if not is_own:
            yield from _compare_replica(voter, state.voter_states[voter.replica_id])
    described = sorted(state.observer_states.items())
    for observer, (_, known) in zip(part.observers, described, strict=False):
        yield from _compare_replica(observer, known)
    observers = sorted(key.id for key in state.observer_states)
    yield "observers", [each.replica_id for each in part.observers], observers
    yield "observers that are voters", [key for key in state.observer_states if voters.contains(key)], []


def _compare_replica(returned: Any, state: ReplicaState) -> Iterator[Comparison]:
    """Compare the times, which responses have from version 1 on (KIP-836)."""
    if hasattr(returned, "last_fetch_timestamp"):
        fetched_ms = -1 if state.last_fetch is None else state.last_fetch.wall_ms
        actual = returned.last_fetch_timestamp, returned.last_caught_up_timestamp
        yield f"replica {returned.replica_id}: times", actual, (fetched_ms, state.last_caught_up_wall_ms)


_COMPARISONS: Final[dict[int, Callable[[Watched, Any, Any], Iterator[Comparison]]]] = {
    _FETCH: _compare_fetch,
    _VOTE: _compare_vote,
    _BEGIN_QUORUM_EPOCH: _compare_epoch_change,
    _END_QUORUM_EPOCH: _compare_epoch_change,
    _DESCRIBE_QUORUM: _compare_describe_quorum,
    _FETCH_SNAPSHOT: _compare_fetch_snapshot,
}
