"""What a node of the quorum answers fits its state as it answers: the invariant `answer-of-quorum`.

| question          | what must hold                                                                                  |
|-------------------|-------------------------------------------------------------------------------------------------|
| any of the quorum | only one of another cluster is refused as a whole; the answer says the epoch, the leader and    |
|                   | where that is; an epoch is refused as older or newer only if it is                              |
| Vote              | a vote that is given is remembered; one is refused only to a log that is behind, by who has     |
|                   | voted for another, or by who knows, or is, a leader (KIP-595, KIP-996)                          |
| BeginQuorumEpoch, | the epoch is then the node's own                                                                |
| EndQuorumEpoch    | the same; who followed the leader that goes waits for its turn among the successors, and no     |
|                   | longer than an election's back-off (KIP-595)                                                    |
| Fetch             | by the leader of the epoch: records from the offset on, if there are any, or where the logs     |
|                   | part, or the snapshot to fetch; the high watermark that it knows                                |
| FetchSnapshot     | by the leader of the epoch: the bytes that its disk has there                                   |
| DescribeQuorum    | by the leader: what it knows of each voter, once, and of others; else who leads (KIP-836)       |
"""

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, Final

from reference_broker.core.quorum.messages import NO_LEADER, OffsetAndEpoch
from reference_broker.core.quorum.quorum_log import QUORUM_LOG_DIRECTORY
from reference_broker.core.quorum.quorum_state import Follower, Leader, Prospective, Resigned, State, Unattached
from reference_broker.core.quorum.raft_client import KafkaRaftClient
from reference_broker.core.topic_names import CLUSTER_METADATA_TOPIC
from reference_broker.core.tracer import ResponseSent
from reference_broker.protocol.errors import ErrorCode
from reference_broker.protocol.record_batch import HEADER_SIZE_BYTES, BatchHeader
from reference_broker.simulation.invariants.topic_decisions import Claim
from reference_broker.simulation.invariants.violation import InvariantViolation
from reference_broker.simulation.invariants.watch import Watched

_FETCH, _VOTE, _BEGIN_QUORUM_EPOCH, _END_QUORUM_EPOCH = 1, 52, 53, 54
_DESCRIBE_QUORUM, _FETCH_SNAPSHOT = 55, 59


def check_quorum_answer(watched: Watched, event: ResponseSent) -> None:
    """See the table. Raises `InvariantViolation`."""
    request, response = event.request, event.body
    claims = _CLAIMS.get(request.api_key)
    if claims is None or watched.node is None or not request.connection.is_controller:
        return
    for what, said, is_so in claims(watched, request.body, response):
        if said != is_so:
            detail = (
                f"{type(response).__name__} of node {watched.node_id}: {what} is {said!r}, which should be {is_so!r}"
            )
            raise InvariantViolation("answer-of-quorum", detail)


def _of_cluster(watched: Watched, asked: Any, told: Any) -> Iterator[Claim]:
    assert watched.node is not None
    is_other = asked.cluster_id not in {None, "", watched.node.runtime.identity.cluster_id}
    yield "refused for its cluster", told.error_code is ErrorCode.inconsistent_cluster_id, is_other


def _of_leader(watched: Watched, told: Any, leader_id: int, leader_epoch: int) -> Iterator[Claim]:
    assert watched.node is not None
    state = watched.quorum.state
    yield "leader_id, leader_epoch", (leader_id, leader_epoch), (state.leader_id, state.epoch)
    voter = watched.node.layout.voters.get(leader_id)
    endpoints = [(each.node_id, each.host, each.port) for each in told.node_endpoints]
    yield "node_endpoints", endpoints, [] if voter is None else [(leader_id, voter.host, voter.port)]


def _is_of_before(watched: Watched, told: tuple[int, int], asked_epoch: int) -> bool:
    """Whether it was decided in the state that the node has left since, in the same event."""
    before = watched.quorum_state
    if not isinstance(before, State) or before is watched.quorum.state:
        return False
    return told == (before.leader_id, before.epoch) and asked_epoch <= before.epoch


def _of_epoch(watched: Watched, code: ErrorCode, asked_epoch: int) -> Iterator[Claim]:
    epoch = watched.quorum.state.epoch
    if code is ErrorCode.none:
        yield "epoch", asked_epoch, epoch
    elif code is ErrorCode.fenced_leader_epoch:
        yield "older epoch", asked_epoch < epoch, True
    elif code is ErrorCode.unknown_leader_epoch:
        yield "newer epoch", asked_epoch > epoch, True


# --- elections


def _of_vote(watched: Watched, asked: Any, told: Any) -> Iterator[Claim]:
    yield from _of_cluster(watched, asked, told)
    if told.error_code is not ErrorCode.none:
        return
    wish, answer = asked.topics[0].partitions[0], told.topics[0].partitions[0]
    if _is_of_before(watched, (answer.leader_id, answer.leader_epoch), wish.replica_epoch):
        return
    yield from _of_leader(watched, told, answer.leader_id, answer.leader_epoch)
    yield from _of_voter(watched, asked, wish, answer.error_code)
    if answer.error_code is ErrorCode.fenced_leader_epoch:
        yield from _of_epoch(watched, answer.error_code, wish.replica_epoch)
    if answer.error_code is not ErrorCode.none:
        yield "vote_granted with an error", answer.vote_granted, False
        return
    state = watched.quorum.state
    if answer.vote_granted:
        if not wish.pre_vote:
            yield "epoch", wish.replica_epoch, state.epoch
            yield "voted", None if state.voted is None else state.voted.id, wish.replica_id
    else:
        yield "refused for no reason", _may_refuse(watched.quorum, wish), True


def _may_refuse(quorum: KafkaRaftClient, wish: Any) -> bool:
    state = quorum.state
    if (wish.last_offset_epoch, wish.last_offset) < (quorum.log.last_epoch, quorum.log.end_offset):
        return True
    if wish.pre_vote:
        return isinstance(state, Leader) or (isinstance(state, Follower) and state.has_fetched)
    if not isinstance(state, Unattached | Prospective) or state.leader_id != NO_LEADER:
        return True
    return state.voted is not None and state.voted.id != wish.replica_id


def _of_epoch_change(watched: Watched, asked: Any, told: Any) -> Iterator[Claim]:
    yield from _of_cluster(watched, asked, told)
    if told.error_code is not ErrorCode.none:
        return
    wish, answer = asked.topics[0].partitions[0], told.topics[0].partitions[0]
    if _is_of_before(watched, (answer.leader_id, answer.leader_epoch), wish.leader_epoch):
        return
    yield from _of_leader(watched, told, answer.leader_id, answer.leader_epoch)
    yield from _of_epoch(watched, answer.error_code, wish.leader_epoch)
    if hasattr(wish, "voter_directory_id"):
        yield from _of_voter(watched, asked, wish, answer.error_code)
    elif answer.error_code is ErrorCode.none:  # EndQuorumEpoch, which names no voter
        yield from _of_successor(watched.quorum, wish, watched.machine.now.monotonic_ms)


def _of_successor(quorum: KafkaRaftClient, wish: Any, now_ms: int) -> Iterator[Claim]:
    """The first successor stands at once, each other one waits twice as long as the one before it.

    Kafka's `strictExponentialElectionBackoffMs`.
    """
    state = quorum.state
    if isinstance(state, Follower) and (state.leader_id, state.epoch) == (wish.leader_id, wish.leader_epoch):
        candidates = [each.candidate_id for each in getattr(wish, "preferred_candidates", ())]
        own = quorum.local.id
        behind = len(candidates) - candidates.index(own) if own in candidates else 0
        waits_ms = state.fetch_deadline_ms - now_ms
        yield "waits for its turn at most", waits_ms <= quorum.config.election_backoff_max_ms >> behind, True
        yield "goes first", waits_ms <= 0, own in candidates[:1]


def _of_voter(watched: Watched, asked: Any, wish: Any, code: ErrorCode) -> Iterator[Claim]:
    """Who is asked as somebody else says so (KIP-853)."""
    local = watched.quorum.local
    named = asked.voter_id, wish.voter_directory_id
    is_other = asked.voter_id >= 0 and named not in {(local.id, local.directory_id), (local.id, None)}
    if code in {ErrorCode.none, ErrorCode.invalid_voter_key}:
        yield "asked as another voter", code is ErrorCode.invalid_voter_key, is_other


# --- replication


def _of_fetch(watched: Watched, asked: Any, told: Any) -> Iterator[Claim]:
    yield from _of_cluster(watched, asked, told)
    if told.error_code is not ErrorCode.none:
        return
    wish, answer = asked.topics[0].partitions[0], told.responses[0].partitions[0]
    leader = answer.current_leader
    if _is_of_before(watched, (leader.leader_id, leader.leader_epoch), wish.current_leader_epoch):
        return
    yield from _of_leader(watched, told, leader.leader_id, leader.leader_epoch)
    yield from _of_epoch(watched, answer.error_code, wish.current_leader_epoch)
    if answer.error_code is not ErrorCode.none:
        return
    quorum, state = watched.quorum, watched.quorum.state
    if isinstance(state, Resigned):
        return  # it led as it decided this, and does so no more as it sends it
    yield "a leader", isinstance(state, Leader), True
    assert isinstance(state, Leader)
    yield "high_watermark", answer.high_watermark, state.high_watermark
    parted, named, records = answer.diverging_epoch, answer.snapshot_id, answer.records or b""
    yield "kinds of answers", (parted.epoch >= 0) + (named.end_offset >= 0) + bool(records) <= 1, True
    if records:
        header = BatchHeader.parse(records) if len(records) >= HEADER_SIZE_BYTES else None
        holds = header is not None and header.base_offset <= wish.fetch_offset <= header.last_offset
        yield f"records from {wish.fetch_offset} on", holds, True
    elif parted.epoch < 0 and named.end_offset < 0:
        yield "nothing behind", wish.fetch_offset, quorum.log.partition_log.segments[-1].end_offset
    if named.end_offset >= 0:
        is_there = OffsetAndEpoch(named.end_offset, named.epoch) in quorum.log.snapshots.ids
        yield "a snapshot that is there", is_there, True
    elif not quorum.log.snapshots.ids and wish.fetch_offset:
        said = None if parted.epoch < 0 else (parted.epoch, parted.end_offset)
        yield "diverging_epoch", said, _divergence(quorum, wish.fetch_offset, wish.last_fetched_epoch)


def _divergence(quorum: KafkaRaftClient, fetch_offset: int, epoch: int) -> tuple[int, int] | None:
    """Where a log that ends so parts from this one, which begins at 0."""
    log = quorum.log.partition_log
    starts = [*log.epochs.entries, (1 << 62, log.segments[-1].end_offset)]
    found, end_offset = 0, 0
    for (own, _), (_, next_start) in pairwise(starts):
        if own <= epoch:
            found, end_offset = own, next_start
    return None if found == epoch and fetch_offset <= end_offset else (found, end_offset)


def _of_fetch_snapshot(watched: Watched, asked: Any, told: Any) -> Iterator[Claim]:
    assert watched.node is not None
    yield from _of_cluster(watched, asked, told)
    if told.error_code is not ErrorCode.none:
        return
    wish, answer = asked.topics[0].partitions[0], told.topics[0].partitions[0]
    leader = answer.current_leader
    if _is_of_before(watched, (leader.leader_id, leader.leader_epoch), wish.current_leader_epoch):
        return
    yield from _of_leader(watched, told, leader.leader_id, leader.leader_epoch)
    yield from _of_epoch(watched, answer.error_code, wish.current_leader_epoch)
    disk = watched.node.runtime.disk
    path = f"{QUORUM_LOG_DIRECTORY}/{wish.snapshot_id.end_offset:020d}-{wish.snapshot_id.epoch:010d}.checkpoint"
    if answer.error_code is ErrorCode.snapshot_not_found:
        yield "there", disk.exists(path), False
    if answer.error_code is not ErrorCode.none:
        return
    yield "a leader", isinstance(watched.quorum.state, Leader | Resigned), True
    said = (answer.snapshot_id.end_offset, answer.snapshot_id.epoch), answer.position
    yield "snapshot_id, position", said, ((wish.snapshot_id.end_offset, wish.snapshot_id.epoch), wish.position)
    size = disk.size(path)
    yield "size", answer.size, size
    piece = disk.read(path, wish.position, min(asked.max_bytes, size - wish.position))
    yield "unaligned_records", bytes(answer.unaligned_records or b""), bytes(piece)


# --- to administrators


def _of_description(watched: Watched, asked: Any, told: Any) -> Iterator[Claim]:
    places = [(topic.topic_name, part.partition_index) for topic in asked.topics for part in topic.partitions]
    answers = [(topic.topic_name, part) for topic in told.topics for part in topic.partitions]
    yield "partitions", [(name, part.partition_index) for name, part in answers], places
    state, is_valid = watched.quorum.state, places == [(CLUSTER_METADATA_TOPIC, 0)]  # `hasValidTopicPartition`
    for name, part in answers:
        if not is_valid:
            yield f"{name}: error", part.error_code, ErrorCode.unknown_topic_or_partition
            continue
        yield "leader_id, leader_epoch", (part.leader_id, part.leader_epoch), (state.leader_id, state.epoch)
        if isinstance(state, Leader):
            yield "error", part.error_code, ErrorCode.none
            yield from _of_described(watched, state, part)
        else:
            yield "error", part.error_code, ErrorCode.not_leader_or_follower


def _of_described(watched: Watched, state: Leader, part: Any) -> Iterator[Claim]:
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
    observers = sorted(key.id for key in state.observer_states)
    yield "observers", [each.replica_id for each in part.observers], observers
    yield "observers that are voters", [key for key in state.observer_states if voters.contains(key)], []


_CLAIMS: Final[dict[int, Callable[[Watched, Any, Any], Iterator[Claim]]]] = {
    _FETCH: _of_fetch,
    _VOTE: _of_vote,
    _BEGIN_QUORUM_EPOCH: _of_epoch_change,
    _END_QUORUM_EPOCH: _of_epoch_change,
    _DESCRIBE_QUORUM: _of_description,
    _FETCH_SNAPSHOT: _of_fetch_snapshot,
}
