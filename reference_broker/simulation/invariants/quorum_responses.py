"""Responses of quorum nodes: the invariant `quorum-response`.

A response is compared with the state of the node when the node sends it. If the node has changed its state in the same
event, after it had handled the request, the response is not compared.

| request           | what must hold for the response                                                                 |
|-------------------|-------------------------------------------------------------------------------------------------|
| all except        | the error is INCONSISTENT_CLUSTER_ID if and only if the request is from another cluster. The    |
| DescribeQuorum    | response has the node's epoch and leader, and the leader's endpoint. An epoch is rejected as    |
|                   | older only if it is older, and as newer only if it is newer                                     |
| Vote              | a granted vote is stored. A vote is denied only if the candidate's log is behind, or if the     |
|                   | node has voted for another candidate, knows a leader, or is a Candidate or Resigned. A pre-vote |
|                   | is denied only if the candidate's log is behind, or if the node is a Leader or a Follower whose |
|                   | leader has responded (KIP-595, KIP-996). The error is INVALID_VOTER_KEY if and only if the      |
|                   | request has the key of another voter (KIP-853)                                                  |
| BeginQuorumEpoch  | if the request is accepted, its epoch is the node's own. INVALID_VOTER_KEY as for Vote          |
| EndQuorumEpoch    | if the request is accepted, its epoch is the node's own. A follower of the resigned leader      |
|                   | starts its election after a backoff, which depends on the position of the follower among the    |
|                   | preferred candidates and is at most `election_backoff_max_ms` (KIP-595)                         |
| Fetch             | a response without an error is from the leader, and has its high watermark. It has at most one  |
|                   | of three: records from the fetch offset on, a diverging epoch, or the id of a snapshot to       |
|                   | fetch. If it has none of them, the fetch offset is the log end. If the leader has resigned      |
|                   | since, these rules do not apply                                                                 |
| FetchSnapshot     | a response without an error is from the leader, which may have resigned since. It has the bytes |
|                   | of the snapshot at the requested position                                                       |
| DescribeQuorum    | the leader returns its state of each voter and observer, each once. Another node returns the    |
|                   | leader that it knows. For unknown partitions leader, epoch and high watermark are 0             |
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
    is_foreign = request.cluster_id not in {None, "", watched.node.runtime.identity.cluster_id}
    is_rejected = response.error_code is ErrorCode.inconsistent_cluster_id
    yield "whether the request is rejected for its cluster id", is_rejected, is_foreign


def _compare_leader(watched: Watched, response: Any, leader_id: int, leader_epoch: int) -> Iterator[Comparison]:
    assert watched.node is not None
    state = watched.quorum.state
    yield "leader_id, leader_epoch", (leader_id, leader_epoch), (state.leader_id, state.epoch)
    voter = watched.node.layout.voters.get(leader_id)
    endpoints = [(each.node_id, each.host, each.port) for each in response.node_endpoints]
    yield "node_endpoints", endpoints, [] if voter is None else [(leader_id, voter.host, voter.port)]


def _is_from_previous_state(watched: Watched, leader_and_epoch: tuple[int, int], request_epoch: int) -> bool:
    """Whether a response is from the state that the node had before this event, and has left during the event."""
    previous = watched.quorum_state
    if not isinstance(previous, State) or previous is watched.quorum.state:
        return False
    return leader_and_epoch == (previous.leader_id, previous.epoch) and request_epoch <= previous.epoch


def _compare_epoch(watched: Watched, code: ErrorCode, request_epoch: int) -> Iterator[Comparison]:
    epoch = watched.quorum.state.epoch
    if code is ErrorCode.none:
        yield "epoch of the accepted request", request_epoch, epoch
    elif code is ErrorCode.fenced_leader_epoch:
        yield "whether the rejected epoch is older", request_epoch < epoch, True
    elif code is ErrorCode.unknown_leader_epoch:
        yield "whether the rejected epoch is newer", request_epoch > epoch, True


# --- Vote, BeginQuorumEpoch and EndQuorumEpoch


def _compare_vote(watched: Watched, request: Any, response: Any) -> Iterator[Comparison]:
    yield from _compare_cluster(watched, request, response)
    if response.error_code is not ErrorCode.none:
        return
    requested, returned = request.topics[0].partitions[0], response.topics[0].partitions[0]
    if _is_from_previous_state(watched, (returned.leader_id, returned.leader_epoch), requested.replica_epoch):
        return
    yield from _compare_leader(watched, response, returned.leader_id, returned.leader_epoch)
    yield from _compare_voter_key(watched, request, requested, returned.error_code)
    if returned.error_code is ErrorCode.fenced_leader_epoch:
        yield from _compare_epoch(watched, returned.error_code, requested.replica_epoch)
    if returned.error_code is not ErrorCode.none:
        yield "vote_granted with an error", returned.vote_granted, False
        return
    state = watched.quorum.state
    if returned.vote_granted:
        if not requested.pre_vote:
            yield "epoch of the granted vote", requested.replica_epoch, state.epoch
            yield "stored vote", None if state.voted is None else state.voted.id, requested.replica_id
    else:
        yield "whether the vote may be denied", _may_deny_vote(watched.quorum, requested), True


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
        yield from _compare_voter_key(watched, request, requested, returned.error_code)
    elif returned.error_code is ErrorCode.none:  # EndQuorumEpoch has no voter key
        yield from _compare_election_backoff(watched.quorum, requested, watched.machine.now.monotonic_ms)


def _compare_election_backoff(quorum: KafkaRaftClient, requested: Any, now_ms: int) -> Iterator[Comparison]:
    """Compare the time until the follower's election with Kafka's `strictExponentialElectionBackoffMs`.

    A node that is no preferred candidate waits at most `election_backoff_max_ms`. The last preferred candidate waits at
    most half of that, and each earlier candidate at most half as long as the next one. The first does not wait.
    """
    state = quorum.state
    if isinstance(state, Follower) and (state.leader_id, state.epoch) == (requested.leader_id, requested.leader_epoch):
        candidates = [each.candidate_id for each in getattr(requested, "preferred_candidates", ())]
        own_id = quorum.local.id
        halvings = len(candidates) - candidates.index(own_id) if own_id in candidates else 0
        longest_ms = quorum.config.election_backoff_max_ms >> halvings
        backoff_ms = state.fetch_deadline_ms - now_ms
        yield f"whether the election backoff is at most {longest_ms} ms", backoff_ms <= longest_ms, True
        yield "whether there is no election backoff", backoff_ms <= 0, own_id in candidates[:1]


def _compare_voter_key(watched: Watched, request: Any, requested: Any, code: ErrorCode) -> Iterator[Comparison]:
    """Check that the error is INVALID_VOTER_KEY if and only if the request has the key of another voter (KIP-853)."""
    local = watched.quorum.local
    key = request.voter_id, requested.voter_directory_id
    is_other = request.voter_id >= 0 and key not in {(local.id, local.directory_id), (local.id, None)}
    if code in {ErrorCode.none, ErrorCode.invalid_voter_key}:
        yield "whether the request is rejected for its voter key", code is ErrorCode.invalid_voter_key, is_other


# --- Fetch and FetchSnapshot


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
        return  # the node was the leader when it handled the request
    yield "whether the node is the leader", isinstance(state, Leader), True
    assert isinstance(state, Leader)
    yield "high_watermark", returned.high_watermark, state.high_watermark
    diverging, snapshot, records = returned.diverging_epoch, returned.snapshot_id, returned.records or b""
    contents = (diverging.epoch >= 0) + (snapshot.end_offset >= 0) + bool(records)
    yield "whether there is at most one of records, diverging_epoch and snapshot_id", contents <= 1, True
    if records:
        header = BatchHeader.parse(records) if len(records) >= HEADER_SIZE_BYTES else None
        has_offset = header is not None and header.base_offset <= requested.fetch_offset <= header.last_offset
        yield f"whether the first batch contains offset {requested.fetch_offset}", has_offset, True
    elif not contents:
        log_end_offset = quorum.log.partition_log.segments[-1].end_offset
        yield "fetch offset of an empty response", requested.fetch_offset, log_end_offset
    if snapshot.end_offset >= 0:
        exists = OffsetAndEpoch(snapshot.end_offset, snapshot.epoch) in quorum.log.snapshots.ids
        yield "whether the snapshot exists", exists, True
    elif not quorum.log.snapshots.ids:
        actual = None if diverging.epoch < 0 else (diverging.epoch, diverging.end_offset)
        yield "diverging_epoch", actual, _divergence(quorum, requested.fetch_offset, requested.last_fetched_epoch)


def _divergence(quorum: KafkaRaftClient, fetch_offset: int, epoch: int) -> tuple[int, int] | None:
    """Return the diverging epoch and its end offset; None if the follower's log does not diverge.

    As in `validateOffsetAndEpoch`, an empty log does not diverge, whatever the epoch is.

    :param quorum: the leader; its log must begin at offset 0.
    :param fetch_offset: end offset of the follower's log.
    :param epoch: last epoch of the follower's log.
    """
    if fetch_offset == 0:
        return None
    log = quorum.log.partition_log
    starts = [*log.epochs.entries, (1 << 62, log.segments[-1].end_offset)]
    found, end_offset = 0, 0
    for (own_epoch, _), (_, next_start) in pairwise(starts):
        if own_epoch <= epoch:
            found, end_offset = own_epoch, next_start
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
        yield "whether the snapshot exists", disk.exists(path), False
    if returned.error_code is not ErrorCode.none:
        return
    yield "whether the node is or was the leader", isinstance(watched.quorum.state, Leader | Resigned), True
    actual = (returned.snapshot_id.end_offset, returned.snapshot_id.epoch), returned.position
    yield "snapshot_id, position", actual, ((snapshot_id.end_offset, snapshot_id.epoch), requested.position)
    size = disk.size(path)
    yield "size", returned.size, size
    content = disk.read(path, requested.position, min(request.max_bytes, size - requested.position))
    yield "unaligned_records", bytes(returned.unaligned_records or b""), bytes(content)


# --- DescribeQuorum


def _compare_describe_quorum(watched: Watched, request: Any, response: Any) -> Iterator[Comparison]:
    requested = [(topic.topic_name, part.partition_index) for topic in request.topics for part in topic.partitions]
    returned = [(topic.topic_name, part) for topic in response.topics for part in topic.partitions]
    yield "partitions", [(name, part.partition_index) for name, part in returned], requested
    state, is_valid = watched.quorum.state, requested == [(CLUSTER_METADATA_TOPIC, 0)]  # `hasValidTopicPartition`
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
    """Compare the times of the last fetch and of being caught up, which responses have since version 1 (KIP-836)."""
    if hasattr(returned, "last_fetch_timestamp"):
        fetched_ms = -1 if state.last_fetch is None else state.last_fetch.wall_ms
        actual = returned.last_fetch_timestamp, returned.last_caught_up_timestamp
        yield (
            f"replica {returned.replica_id}: last_fetch_timestamp, last_caught_up_timestamp",
            actual,
            (fetched_ms, state.last_caught_up_wall_ms),
        )


_COMPARISONS: Final[dict[int, Callable[[Watched, Any, Any], Iterator[Comparison]]]] = {
    _FETCH: _compare_fetch,
    _VOTE: _compare_vote,
    _BEGIN_QUORUM_EPOCH: _compare_epoch_change,
    _END_QUORUM_EPOCH: _compare_epoch_change,
    _DESCRIBE_QUORUM: _compare_describe_quorum,
    _FETCH_SNAPSHOT: _compare_fetch_snapshot,
}
