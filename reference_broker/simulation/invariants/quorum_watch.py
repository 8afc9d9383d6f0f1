"""Shows the quorum's nodes inside of a cluster to their invariants: what they become, and how they answer requests.

One thing is judged here, since it takes the node's disk:

| name               | what must hold                                                                   |
|--------------------|----------------------------------------------------------------------------------|
| `quorum-remembers` | a node's epoch, its leader and its vote are in its file before anybody is told   |
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

    :param became_void: called when the quorum has failed by the fault of disks that forgot.
    """

    def __init__(self, invariants: QuorumInvariants, became_void: Callable[[], None]) -> None:
        self.invariants = invariants
        self.forgetful: set[int] = set()
        self._became_void = became_void
        self._is_void = False
        self._before: dict[int, tuple[OffsetAndEpoch, ElectionState]] = {}
        """By node, log end and election before the request that it handles."""

    def subscribe(self, watch: Watch) -> None:
        """Observe each request of the quorum, too: between a request and its response nothing else changes a node."""
        watch.subscribe(QuorumRequestReceived, self._received)
        watch.subscribe(QuorumRequestHandled, self._handled)

    def forget(self, node_id: int) -> None:
        """A node's disk was wiped or damaged."""
        self.forgetful.add(node_id)
        self.invariants.forget(node_id)

    def started(self, watched: Watched) -> None:
        """A node has started."""
        quorum = watched.quorum
        if watched.has_new_disk:
            self.forget(watched.node_id)
        now_ms = watched.machine.now.monotonic_ms
        self._judge(lambda: self.invariants.started(watched.node_id, quorum, now_ms))

    def quorum_changed(self, watched: Watched) -> None:
        """A node's state, log end or high watermark is another."""
        now_ms = watched.machine.now.monotonic_ms
        if watched.resumed_ms == watched.event_ms:
            self.invariants.resumed(watched.node_id, now_ms)
        self._judge(lambda: self.invariants.touched(watched.node_id, watched.quorum, now_ms))
        self._judge(lambda: _check_remembered(watched, watched.quorum))

    def check_everything(self, watched: Watched) -> None:
        """Once, at the end."""
        self._judge(lambda: self.invariants.check_whole_log(watched.node_id, watched.quorum))

    def _received(self, watched: Watched, event: QuorumRequestReceived) -> None:
        quorum, request = watched.quorum, event.request
        self._before[watched.node_id] = quorum.log.end, quorum.election
        if isinstance(request, FetchRequest | FetchSnapshotRequest | VoteRequest):
            now_ms = event.now.monotonic_ms
            self.invariants.about_to_answer(watched.node_id, quorum, request.replica.id, request, now_ms)

    def _handled(self, watched: Watched, event: QuorumRequestHandled) -> None:
        quorum, (end, election) = watched.quorum, self._before.pop(watched.node_id)
        if quorum.election != election:
            self._judge(lambda: _check_remembered(watched, quorum))
        self._judge(lambda: self.invariants.answered(quorum, event.request, end, election, quorum.effects))

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
    """See the table."""
    election, path = quorum.election, f"{QUORUM_LOG_DIRECTORY}/{QUORUM_STATE_FILE}"
    said = json.loads(bytes(watched.disk.files[path])) if watched.disk.exists(path) else {}
    told = tuple(said.get(name) for name in ("leaderEpoch", "leaderId", "votedId"))
    is_so = election.epoch, election.leader_id, -1 if election.voted is None else election.voted.id
    if told != is_so:
        detail = f"node {watched.node_id} has epoch, leader and vote {is_so}, and remembers {told}"
        raise InvariantViolation("quorum-remembers", detail)
