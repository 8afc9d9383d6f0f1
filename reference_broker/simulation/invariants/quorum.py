"""Invariants of the quorum and its log: the seven of Kafka's `RaftEventSimulationTest`, and those of the Raft paper.

| name                          | what must hold                                                                      |
|-------------------------------|-------------------------------------------------------------------------------------|
| `quorum-one-leader`           | an epoch has at most one leader                                                     |
| `quorum-epochs-grow`          | a node's epoch never decreases, not even by a crash                                 |
| `quorum-watermark-monotone`   | the high watermark of the newest leader is not below an earlier high watermark      |
| `quorum-majority`             | a majority has all records below the high watermark, also after a crash             |
| `quorum-committed-equal`      | committed records are the same on all nodes, are never removed, and have no gaps    |
| `quorum-leader-no-snapshot`   | a leader never loads a snapshot, and a snapshot has only committed records          |
| `quorum-snapshot-at-start`    | a log starts at 0, or at the end offset of its first snapshot, and does not end     |
|                               | below the end offset of its last snapshot                                           |
| `quorum-durable`              | appended records are flushed before another node can receive them                   |
| `quorum-log-matching`         | see `log_matching`                                                                  |
| `quorum-leader-complete`      | an elected leader has all committed records                                         |
| `quorum-votes`                | a node grants votes and pre-votes only to candidates whose log is not behind its    |
|                               | own. It stores only votes that were requested, and no pre-votes                     |
| `quorum-check-quorum`         | a leader that receives no fetches from a majority resigns within a time limit       |
| `quorum-consistent`           | no response of a voter contradicts the state of the node that receives it           |

A voter whose disk was wiped or damaged may have lost its vote or committed records, which may cause violations. The
first violation after such a loss is not reported: it ends the checks of the quorum, the metadata and the partitions
(`QuorumWatch`).
"""

from collections.abc import Callable, Collection, Sequence

from reference_broker.core.quorum.effects import SendResponse
from reference_broker.core.quorum.election_state import ElectionState
from reference_broker.core.quorum.messages import (
    FetchRequest,
    FetchSnapshotRequest,
    OffsetAndEpoch,
    Request,
    VoteRequest,
    VoteResponse,
)
from reference_broker.core.quorum.quorum_log import QuorumLog
from reference_broker.core.quorum.quorum_state import Leader
from reference_broker.core.quorum.raft_client import KafkaRaftClient
from reference_broker.simulation.invariants.log_matching import LogMatching
from reference_broker.simulation.invariants.log_mirror import Batch, LogMirror
from reference_broker.simulation.invariants.violation import InvariantViolation

_BEGINNING = -1
"""Key of the time at which a leader began to wait for contacts, among the contact times by voter."""


def require(condition: object, name: str, detail: Callable[[], str]) -> None:
    """Raise `InvariantViolation` if the condition is false. `detail` returns the detail of the violation."""
    if not condition:
        raise InvariantViolation(name, detail())


class QuorumInvariants:
    """Invariants of a quorum, checked whenever a node changes.

    :param check_quorum_bound_ms: maximum time for which a leader may lead after its last contact with a majority.
    :ivar high_watermark: all records below it are committed.
    :ivar committed: the committed batches, by base offset.
    """

    def __init__(self, voter_ids: Sequence[int], check_quorum_bound_ms: int) -> None:
        self.high_watermark = 0
        self.committed: dict[int, Batch] = {}
        self._voter_ids = tuple(voter_ids)
        self._majority = len(voter_ids) // 2 + 1
        self._check_quorum_bound_ms = check_quorum_bound_ms
        self._matching = LogMatching("quorum-log-matching")
        self._logs: dict[int, LogMirror] = {}
        self._leaders: dict[int, int] = {}
        """The leader of each epoch."""
        self._epochs: dict[int, int] = {}
        self._ends: dict[int, int] = {}
        """By node: the log end offset at its last check."""
        self._applied: dict[int, int] = {}
        """By node: the offset up to which its committed records were checked."""
        self._commit_by_epoch: dict[int, int] = {}
        """By epoch: the high watermark of its leader; at first, the start offset of the epoch."""
        self._last_contact_ms: dict[int, dict[int, int]] = {}
        """By leader and voter: the time of the last fetch, by the monotonic clock of the leader."""
        self._votes: set[tuple[int, int, int]] = set()
        """Requested votes: voter, epoch and candidate."""

    # Events

    def started(self, node_id: int, node: KafkaRaftClient, now_ms: int) -> None:
        """Check a node that has started from its disk.

        :param now_ms: the time of the node's monotonic clock.
        """
        self._applied[node_id] = node.log.start_offset
        self._last_contact_ms.pop(node_id, None)
        self._take_in(node_id, node)
        self.on_change(node_id, node, now_ms)

    def reset(self, node_id: int) -> None:
        """Drop the recorded state of a node whose disk was replaced or damaged."""
        self._epochs.pop(node_id, None)
        self._ends.pop(node_id, None)
        self._logs.pop(node_id, None)

    def resumed(self, node_id: int, now_ms: int) -> None:
        """Restart the contact times of a leader after a pause: fetches that were sent during the pause arrive later."""
        if node_id in self._last_contact_ms:
            self._last_contact_ms[node_id] = {_BEGINNING: now_ms}

    def on_request(self, node_id: int, node: KafkaRaftClient, source: int, request: Request, now_ms: int) -> None:
        """Record a request that a node has received from another node."""
        if isinstance(request, VoteRequest) and not request.pre_vote:
            self._votes.add((node_id, request.replica_epoch, request.replica.id))
        if (
            isinstance(request, FetchRequest | FetchSnapshotRequest)
            and isinstance(node.state, Leader)
            and request.current_leader_epoch == node.state.epoch
        ):
            self._last_contact_ms.setdefault(node_id, {})[source] = now_ms

    @staticmethod
    def on_response(
        node: KafkaRaftClient,
        request: Request,
        end: OffsetAndEpoch,
        election: ElectionState,
        effects: Collection[object],
    ) -> bool:
        """Check the response to a Vote request. Return whether it grants a vote that is not a pre-vote.

        A vote that the node had granted before may be granted again, even if the node's log has grown since.

        :param end: the end of the node's log before the request.
        :param election: the node's election state before the request.
        """
        if not isinstance(request, VoteRequest):
            return False
        responses = [effect.response for effect in effects if isinstance(effect, SendResponse)]
        votes = [response for response in responses if isinstance(response, VoteResponse)]
        require(len(votes) == 1, "quorum-votes", lambda: f"node {node.local.id} responds to {request} with {responses}")
        is_granted = votes[0].vote_granted
        is_repeated = not request.pre_vote and (election.epoch, election.voted) == (
            request.replica_epoch,
            request.replica,
        )
        require(
            not is_granted or is_repeated or request.last.is_at_least(end),
            "quorum-votes",
            lambda: f"node {node.local.id}, whose log ends at {end}, grants {request}",
        )
        # A pre-vote does not change the election state (KIP-996).
        has_voted = node.election.voted is not None and node.election.epoch == election.epoch
        require(
            not (request.pre_vote and has_voted and election.voted is None),
            "quorum-votes",
            lambda: f"node {node.local.id} stores a vote after a pre-vote request: {request}",
        )
        return is_granted and not request.pre_vote

    def on_change(self, node_id: int, node: KafkaRaftClient, now_ms: int) -> None:
        """Check a node that may have changed."""
        end_before = self._ends.get(node_id, 0)
        require(
            node.rejected_response is None, "quorum-consistent", lambda: f"node {node_id}: {node.rejected_response}"
        )
        self._check_epoch_and_leader(node_id, node)
        self._check_log(node_id, node)
        self._check_snapshot(node_id, node.log)
        if isinstance(node.state, Leader):
            self._check_leader(node_id, node.state, now_ms)
        else:
            self._last_contact_ms.pop(node_id, None)
        if node.log.start_offset > max(self._applied[node_id], end_before):  # the node has loaded a snapshot
            self._check_installed(node_id, node)
        if node.high_watermark > self._applied[node_id]:
            self._check_committed(node_id, node)

    # Epochs and leaders

    def _check_epoch_and_leader(self, node_id: int, node: KafkaRaftClient) -> None:
        epoch, leader_id = node.state.epoch, node.state.leader_id
        require(
            epoch >= self._epochs.get(node_id, 0),
            "quorum-epochs-grow",
            lambda: f"node {node_id} is in epoch {epoch} after {self._epochs.get(node_id)}",
        )
        self._epochs[node_id] = epoch
        voted = node.election.voted
        require(
            voted is None or voted.id == node_id or (node_id, node.election.epoch, voted.id) in self._votes,
            "quorum-votes",
            lambda: f"node {node_id} has voted for {voted} in epoch {epoch} without a request",
        )
        if leader_id >= 0:
            known = self._leaders.setdefault(epoch, leader_id)
            require(
                known == leader_id, "quorum-one-leader", lambda: f"epoch {epoch} is led by {known} and by {leader_id}"
            )

    def _check_leader(self, node_id: int, state: Leader, now_ms: int) -> None:
        start = state.epoch_start_offset
        contacts = self._last_contact_ms.setdefault(node_id, {})
        if state.epoch not in self._commit_by_epoch:
            self._commit_by_epoch[state.epoch] = start
            contacts.clear()
            contacts[_BEGINNING] = now_ms
            require(
                start >= self.high_watermark,
                "quorum-leader-complete",
                lambda: (
                    f"node {node_id} leads epoch {state.epoch} from {start}, below high watermark {self.high_watermark}"
                ),
            )
        began_ms = contacts.setdefault(_BEGINNING, now_ms)
        others = sorted((contacts.get(voter, began_ms) for voter in self._voter_ids if voter != node_id), reverse=True)
        if others:
            alone_ms = now_ms - others[self._majority - 2]
            require(
                alone_ms <= self._check_quorum_bound_ms,
                "quorum-check-quorum",
                lambda: (
                    f"node {node_id} still leads epoch {state.epoch}, {alone_ms} ms after its last contact with a"
                    " majority"
                ),
            )

    # Logs

    def _take_in(self, node_id: int, node: KafkaRaftClient) -> int:
        """Read the changes of a node's log, and return the number of new batches."""
        mirror = self._logs.setdefault(node_id, LogMirror())
        added = mirror.follow(node.log.partition_log).added
        number = len(mirror.batches) - len(added)
        before = mirror.batches[number - 1] if number else None
        for batch in added:
            is_next = before is None or batch.base_offset == before.last_offset + 1
            if not is_next and batch.base_offset > node.log.start_offset:
                raise InvariantViolation("quorum-committed-equal", f"node {node_id} has {batch} after {before}")
            self._matching.check(f"node {node_id}", before, batch)
            before = batch
        return len(added)

    def _check_log(self, node_id: int, node: KafkaRaftClient) -> None:
        if self._take_in(node_id, node):
            lost = self._logs[node_id].not_durable_below(node.log.partition_log, node.log.end_offset)
            require(lost is None, "quorum-durable", lambda: f"node {node_id} has appended and not flushed {lost}")
        is_shorter = node.log.end_offset < self._ends.get(node_id, 0)
        self._ends[node_id] = node.log.end_offset
        if is_shorter:
            self._check_majority()

    def _check_majority(self) -> None:
        reached = [voter for voter in self._voter_ids if self._ends.get(voter, 0) >= self.high_watermark]
        require(
            len(reached) >= self._majority,
            "quorum-majority",
            lambda: f"only the logs of {reached} reach the high watermark {self.high_watermark}",
        )

    @staticmethod
    def _check_snapshot(node_id: int, log: QuorumLog) -> None:
        earliest = log.snapshots.earliest
        is_valid = log.start_offset == 0 if earliest is None else log.start_offset in {0, earliest.offset}
        if is_valid and earliest is not None and log.start_offset == earliest.offset:
            is_valid = log.diverging_epoch(*earliest) is None
        latest = log.snapshots.latest
        is_valid = is_valid and (latest is None or latest.offset <= log.end_offset)
        require(
            is_valid,
            "quorum-snapshot-at-start",
            lambda: f"the log of node {node_id} starts at {log.start_offset}, its snapshots are {earliest} to {latest}",
        )

    # Committed data

    def _check_committed(self, node_id: int, node: KafkaRaftClient) -> None:
        offset, state = node.high_watermark, node.state
        if isinstance(state, Leader):
            if state.epoch == max(self._commit_by_epoch):
                require(
                    offset >= self.high_watermark,
                    "quorum-watermark-monotone",
                    lambda: f"node {node_id} has high watermark {offset} after {self.high_watermark}",
                )
            self._commit_by_epoch[state.epoch] = offset
        require(
            offset <= node.log.end_offset,
            "quorum-committed-equal",
            lambda: f"node {node_id} lacks records below its high watermark {offset}",
        )
        mirror = self._logs[node_id]
        for batch in mirror.between(self._applied[node_id], offset):
            known = self.committed.get(batch.base_offset)
            if known is None:
                known = self.committed[batch.base_offset] = batch
                self.first_committed(node_id, batch)
            if not known.is_same_as(batch):
                detail = f"node {node_id} has {batch}, the committed batch is {known}"
                raise InvariantViolation("quorum-committed-equal", detail)
        self._applied[node_id] = offset
        if isinstance(state, Leader) and offset > self.high_watermark:
            self.high_watermark = offset
            self._check_majority()

    def first_committed(self, node_id: int, batch: Batch) -> None:
        """Handle the first commit of a batch: a hook of subclasses."""

    def _check_installed(self, node_id: int, node: KafkaRaftClient) -> None:
        installed = node.log.snapshots.earliest
        assert installed is not None
        require(
            not isinstance(node.state, Leader),
            "quorum-leader-no-snapshot",
            lambda: f"node {node_id} leads epoch {node.state.epoch}, and has loaded {installed}",
        )
        require(
            installed.offset <= self.high_watermark,
            "quorum-leader-no-snapshot",
            lambda: f"node {node_id} has loaded {installed}, above the high watermark {self.high_watermark}",
        )
        self.check_snapshot_content(node_id, node, installed)
        self._applied[node_id] = installed.offset

    def check_snapshot_content(self, node_id: int, node: KafkaRaftClient, snapshot_id: OffsetAndEpoch) -> None:
        """Check that a loaded snapshot is the result of the committed records below its end: a hook of subclasses."""

    def check_whole_log(self, node_id: int, node: KafkaRaftClient) -> None:
        """Check all records of a node below its high watermark. This is too slow for every event."""
        mirror = LogMirror()
        mirror.follow(node.log.partition_log)
        for batch in mirror.between(node.log.start_offset, node.high_watermark):
            known = self.committed.get(batch.base_offset)
            if known is None or not known.is_same_as(batch):
                detail = f"node {node_id} has {batch}, the committed batch is {known}"
                raise InvariantViolation("quorum-committed-equal", detail)
