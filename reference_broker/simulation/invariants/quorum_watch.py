"""Connection of the quorum's invariants to a cluster: state changes of its nodes, their requests and responses.

One invariant is checked here, since it needs the node's disk:

| name               | what must hold                                                                   |
|--------------------|----------------------------------------------------------------------------------|
| `quorum-remembers` | a node's epoch, leader and vote are in its file before it sends them             |
"""

import json
from collections.abc import Callable

from reference_broker.core.quorum.election_state import QUORUM_STATE_FILE, ElectionState
from reference_broker.core.quorum.messages import FetchRequest, FetchSnapshotRequest, OffsetAndEpoch, VoteRequest
from reference_broker.core.quorum.quorum_log import QUORUM_LOG_DIRECTORY
from reference_broker.core.quorum.raft_client import KafkaRaftClient
from reference_broker.core.tracer import QuorumRequestHandled, QuorumRequestReceived
from reference_broker.simulation.invariants.quorum import QuorumInvariants
from reference_broker.simulation.invariants.violation import InvariantViolation
from reference_broker.simulation.invariants.watch import Observer, Watch, Watched


class QuorumWatch(Observer):
    """An observer of a watch.

    :param became_void: called when the quorum was lost because disks have lost content.
    """

    def __init__(self, invariants: QuorumInvariants, became_void: Callable[[], None]) -> None:
        self.invariants = invariants
        self.forgetful: set[int] = set()
        self._became_void = became_void
        self._is_void = False
        self._before: dict[int, tuple[OffsetAndEpoch, ElectionState]] = {}
        """By node, log end and election before the request that it handles."""

    def subscribe(self, watch: Watch) -> None:
        """Observe each request of the quorum too: only the request changes a node until its response."""
        watch.subscribe(QuorumRequestReceived, self._received)
        watch.subscribe(QuorumRequestHandled, self._handled)

    def forget(self, node_id: int) -> None:
        """Note that a node's disk was wiped or damaged."""
        self.forgetful.add(node_id)
        self.invariants.forget(node_id)

    def started(self, watched: Watched) -> None:
        """Check a node that has started."""
        quorum = watched.quorum
        if watched.has_new_disk:
            self.forget(watched.node_id)
        now_ms = watched.machine.now.monotonic_ms
        self._judge(lambda: self.invariants.started(watched.node_id, quorum, now_ms))

    def quorum_changed(self, watched: Watched) -> None:
        """Check a node whose state, log end or high watermark has changed."""
        now_ms = watched.machine.now.monotonic_ms
        if watched.resumed_ms == watched.event_ms:
            self.invariants.resumed(watched.node_id, now_ms)
        self._judge(lambda: self.invariants.on_change(watched.node_id, watched.quorum, now_ms))
        self._judge(lambda: _check_remembered(watched, watched.quorum))

    def check_everything(self, watched: Watched) -> None:
        """Check the whole log of a node: once, at the end."""
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

    def _judge(self, check: Callable[[], object]) -> None:
        if self._is_void:
            return
        try:
            check()
        except InvariantViolation:
            if not self.forgetful:
                raise
            self._is_void = True
            self._became_void()


def _check_remembered(watched: Watched, quorum: KafkaRaftClient) -> None:
    """Compare the quorum-state file with the node's election state."""
    election, path = quorum.election, f"{QUORUM_LOG_DIRECTORY}/{QUORUM_STATE_FILE}"
    stored = json.loads(bytes(watched.disk.files[path])) if watched.disk.exists(path) else {}
    actual = tuple(stored.get(name) for name in ("leaderEpoch", "leaderId", "votedId"))
    expected = election.epoch, election.leader_id, -1 if election.voted is None else election.voted.id
    if actual != expected:
        detail = f"node {watched.node_id} has epoch, leader and vote {expected}, and its file has {actual}"
        raise InvariantViolation("quorum-remembers", detail)
