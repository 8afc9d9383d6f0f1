"""Connection of `QuorumInvariants` to the nodes of a cluster: their state changes, requests and responses.

Three invariants are checked here:

| name                  | what must hold                                                                              |
|-----------------------|---------------------------------------------------------------------------------------------|
| `quorum-remembers`    | a node's epoch, leader and vote are in its `quorum-state` file before the node sends them   |
| `quorum-starts-known` | a voter starts as Resigned if it led its last epoch, as Follower if it knows another        |
|                       | leader, as Candidate if it had voted for itself, and otherwise as Unattached                |
|                       | (`QuorumState.initialize`). If its election timeout expires at once, it is Prospective. A   |
|                       | single voter is not checked                                                                 |
| `quorum-has-fetched`  | when the high watermark of a follower has advanced, the follower knows that its leader has  |
|                       | responded to a fetch. It then grants no pre-votes (KIP-996)                                 |
"""

import json
from collections.abc import Callable
from uuid import UUID

from reference_broker.core.quorum.election_state import QUORUM_STATE_FILE, ElectionState
from reference_broker.core.quorum.messages import FetchRequest, FetchSnapshotRequest, OffsetAndEpoch, VoteRequest
from reference_broker.core.quorum.quorum_log import QUORUM_LOG_DIRECTORY
from reference_broker.core.quorum.quorum_state import Follower, QuorumRole
from reference_broker.core.quorum.raft_client import KafkaRaftClient
from reference_broker.core.quorum.voters import ReplicaKey
from reference_broker.core.tracer import QuorumFetchRecorded, QuorumRequestHandled, QuorumRequestReceived
from reference_broker.protocol.uuids import format_uuid
from reference_broker.simulation.invariants.quorum import QuorumInvariants
from reference_broker.simulation.invariants.quorum_progress import QuorumProgress
from reference_broker.simulation.invariants.violation import InvariantViolation
from reference_broker.simulation.invariants.watch import Observer, Watch, Watched


class QuorumWatch(Observer):
    """Observer that passes the changes and requests of each node to `QuorumInvariants`.

    :param became_void: called instead of an error at the first violation after a disk has lost content.
    :ivar with_lost_content: nodes whose disk has lost content.
    """

    def __init__(self, invariants: QuorumInvariants, became_void: Callable[[], None]) -> None:
        self.invariants = invariants
        self.with_lost_content: set[int] = set()
        self._became_void = became_void
        self._is_void = False
        self._progress = QuorumProgress()
        self._before: dict[int, tuple[OffsetAndEpoch, ElectionState]] = {}
        """By node: its log end and election state before the request that it is handling."""

    def subscribe(self, watch: Watch) -> None:
        """Observe the requests that quorum nodes receive and handle, and the fetches that leaders record."""
        watch.subscribe(QuorumRequestReceived, self._received)
        watch.subscribe(QuorumRequestHandled, self._handled)
        watch.subscribe(QuorumFetchRecorded, self._fetch_recorded)

    def on_content_lost(self, node_id: int) -> None:
        """Record that the disk of a node was wiped or damaged."""
        self.with_lost_content.add(node_id)
        self.invariants.reset(node_id)

    def started(self, watched: Watched) -> None:
        """Check a node that has started."""
        quorum = watched.quorum
        if watched.has_new_disk:
            self.on_content_lost(watched.node_id)
        self._progress.reset(watched.node_id)
        now_ms = watched.machine.now.monotonic_ms
        self._judge(lambda: _check_first_state(watched, quorum))
        self._judge(lambda: self.invariants.started(watched.node_id, quorum, now_ms))

    def quorum_changed(self, watched: Watched) -> None:
        """Check a node whose state, log end or high watermark has changed, or that was not checked for a second."""
        now_ms = watched.machine.now.monotonic_ms
        if watched.resumed_ms == watched.event_ms:
            self.invariants.resumed(watched.node_id, now_ms)
        self._judge(lambda: self.invariants.on_change(watched.node_id, watched.quorum, now_ms))
        self._judge(lambda: _check_remembered(watched, watched.quorum))
        _check_has_fetched(watched, watched.quorum)

    def check_everything(self, watched: Watched) -> None:
        """Check the whole log of a node. This is too slow for every event."""
        self._judge(lambda: self.invariants.check_whole_log(watched.node_id, watched.quorum))

    def _received(self, watched: Watched, event: QuorumRequestReceived) -> None:
        quorum, request = watched.quorum, event.request
        self._before[watched.node_id] = quorum.log.end, quorum.election
        if isinstance(request, FetchRequest | FetchSnapshotRequest | VoteRequest):
            now_ms = event.now.monotonic_ms
            self.invariants.on_request(watched.node_id, quorum, request.replica.id, request, now_ms)

    def _handled(self, watched: Watched, event: QuorumRequestHandled) -> None:
        quorum, (end, election) = watched.quorum, self._before.pop(watched.node_id)
        if quorum.election != election:
            self._judge(lambda: _check_remembered(watched, quorum))
        self._judge(lambda: self.invariants.on_response(quorum, event.request, end, election, quorum.effects))

    def _fetch_recorded(self, watched: Watched, event: QuorumFetchRecorded) -> None:
        self._judge(lambda: self._progress.on_fetch(watched, event))

    def _judge(self, check: Callable[[], object]) -> None:
        """Run a check. After a loss of content, its violation ends all checks, and is not raised."""
        if self._is_void:
            return
        try:
            check()
        except InvariantViolation:
            if not self.with_lost_content:
                raise
            self._is_void = True
            self._became_void()


def _check_first_state(watched: Watched, quorum: KafkaRaftClient) -> None:
    """Compare the state of a node that has just started with the election that it has restored."""
    election, local_id = quorum.election, watched.node_id
    if len(quorum.voters.ids) == 1 or not quorum.voters.contains(quorum.local):
        return  # a single voter is elected at once; an observer may have left the leader that it knew
    if election.leader_id == local_id:
        expected = QuorumRole.RESIGNED
    elif election.leader_id in quorum.voters.ids:
        expected = QuorumRole.FOLLOWER
    else:
        expected = QuorumRole.CANDIDATE if election.voted == quorum.local else QuorumRole.UNATTACHED
    if quorum.state.role not in {expected, QuorumRole.PROSPECTIVE}:  # the election timeout may have expired at once
        detail = f"node {local_id} starts as {quorum.state.role.value} with {election}, not as {expected.value}"
        raise InvariantViolation("quorum-starts-known", detail)


def _check_has_fetched(watched: Watched, quorum: KafkaRaftClient) -> None:
    """Check a follower whose high watermark has advanced since the last check, if its state is still the same."""
    state, high_watermark = quorum.state, quorum.high_watermark
    has_advanced = state is watched.quorum_state and high_watermark > watched.quorum_high_watermark
    if has_advanced and isinstance(state, Follower) and not state.has_fetched:
        detail = f"node {watched.node_id} has fetched up to {high_watermark}, and has_fetched is false"
        raise InvariantViolation("quorum-has-fetched", detail)


def _check_remembered(watched: Watched, quorum: KafkaRaftClient) -> None:
    """Compare the quorum-state file with the node's election state."""
    election, path = quorum.election, f"{QUORUM_LOG_DIRECTORY}/{QUORUM_STATE_FILE}"
    stored = json.loads(bytes(watched.disk.files[path])) if watched.disk.exists(path) else {}
    actual = tuple(stored.get(name) for name in ("leaderEpoch", "leaderId", "votedId", "votedDirectoryId"))
    voted = election.voted or ReplicaKey(-1)
    expected = election.epoch, election.leader_id, voted.id, format_uuid(voted.directory_id or UUID(int=0))
    if actual != expected:
        detail = f"node {watched.node_id} has epoch, leader and vote {expected}, its quorum-state file {actual}"
        raise InvariantViolation("quorum-remembers", detail)
