"""What must hold after every event: the seven invariants of Kafka's `RaftEventSimulationTest`, and what Raft adds.

Kafka's: one leader per epoch; epochs rise; the high watermark rises; a majority has reached it; the committed data of
all nodes are equal, and stay; a leader never loads a snapshot; a snapshot lies where a log starts.
Raft's: log matching (equal offset and epoch: equal records, and all before them); leader completeness (who is elected
has all that is committed); votes, pre-votes too, go only to logs that are not behind; a leader that a majority cannot
reach does not stay one (check-quorum).
"""

from collections.abc import Iterator

from reference_broker.core.quorum.effects import HighWatermarkAdvanced, SendResponse, SnapshotInstalled
from reference_broker.core.quorum.election_state import ElectionState
from reference_broker.core.quorum.messages import (
    FetchRequest,
    FetchSnapshotRequest,
    OffsetAndEpoch,
    VoteRequest,
    VoteResponse,
)
from reference_broker.core.quorum.node import QuorumNode
from reference_broker.core.quorum.quorum_log import QuorumLog
from reference_broker.core.quorum.states import Leader
from reference_broker.protocol.record_batch import BatchHeader
from reference_broker.protocol.records import decode_batches

EVERYTHING_BYTES = 1 << 30


class InvariantViolation(Exception):
    pass


def require(condition: object, invariant: str, detail: str) -> None:
    if not condition:
        raise InvariantViolation(f"{invariant}: {detail}")


def batches(log: QuorumLog, start: int, end: int) -> Iterator[BatchHeader]:
    while start < end:
        data = log.read(start, EVERYTHING_BYTES)
        require(data, "logs have no holes", f"nothing is read at {start}, the log ends at {log.end_offset}")
        position = 0
        while position < len(data):
            header = BatchHeader.parse(data, position)
            position += header.size_bytes
            if header.last_offset >= start and header.base_offset < end:
                yield header
            start = header.last_offset + 1


class Invariants:
    def __init__(self, voter_ids: tuple[int, ...], check_quorum_bound_ms: int) -> None:
        self._check_quorum_bound_ms = check_quorum_bound_ms
        self.high_watermark = 0
        self.newest_commit_epoch = 0
        self.committed: dict[int, tuple[int, int, int]] = {}  # base offset: epoch, checksum, last offset
        self.digests: dict[int, int] = {0: 0}  # end offset: digest of all committed below
        self._voter_ids = voter_ids
        self._majority = len(voter_ids) // 2 + 1
        self._leaders: dict[int, int] = {}
        self._epochs: dict[int, int] = {}
        self._ends: dict[int, int] = {}
        self._applied: dict[int, int] = {}
        self._written: dict[tuple[int, int], tuple[int, int]] = {}
        self._commit_by_epoch: dict[int, int] = {}
        self._last_contact_ms: dict[int, dict[int, int]] = {}

    # Events

    def started(self, node_id: int, node: QuorumNode, now_ms: int) -> None:
        """From its disk, after a stop or a crash."""
        self._applied[node_id] = node.log.start_offset
        self._ends[node_id] = node.log.start_offset
        require(
            node.state.epoch >= self._epochs.get(node_id, 0),
            "monotonic epoch",
            f"node {node_id} starts in epoch {node.state.epoch} after {self._epochs.get(node_id)}",
        )
        self.touched(node_id, node, now_ms)

    def crashed(self, node_id: int, log: QuorumLog) -> None:
        """What a disk has kept."""
        self._ends[node_id] = log.end_offset
        self._last_contact_ms.pop(node_id, None)
        self._check_majority()

    def about_to_answer(self, node_id: int, node: QuorumNode, source: int, request: object, now_ms: int) -> None:
        is_fetch = isinstance(request, FetchRequest | FetchSnapshotRequest)
        if is_fetch and isinstance(node.state, Leader) and request.current_leader_epoch == node.state.epoch:
            self._last_contact_ms.setdefault(node_id, {})[source] = now_ms

    def answered(
        self,
        node: QuorumNode,
        request: object,
        end: OffsetAndEpoch,
        election: ElectionState,
        effects: list[object],
    ) -> bool:
        """A node whose log ended there, in an election that stood so, has answered; whether it gave its vote.

        A vote that it had given may be asked for again, however far its log has come since.
        """
        if not isinstance(request, VoteRequest):
            return False
        responses = [effect.response for effect in effects if isinstance(effect, SendResponse)]
        is_granted = any(isinstance(response, VoteResponse) and response.vote_granted for response in responses)
        is_repeated = not request.pre_vote and (election.epoch, election.voted) == (
            request.replica_epoch,
            request.replica,
        )
        require(
            not is_granted or is_repeated or request.last.is_at_least(end),
            "votes go to logs that are not behind",
            f"node {node.local.id}, at {end}, votes for {request}",
        )
        return is_granted and not request.pre_vote

    def touched(self, node_id: int, node: QuorumNode, now_ms: int) -> None:
        """Something happened to a node."""
        self._check_epoch_and_leader(node_id, node)
        old_end, end = self._ends.get(node_id, 0), node.log.end_offset
        if end != old_end:
            self._check_matching(node_id, node.log, min(old_end, end), end)
            self._ends[node_id] = end
            if end < old_end:
                self._check_majority()
        self._check_snapshot(node_id, node.log)
        if isinstance(node.state, Leader):
            self._check_leader(node_id, node.state, now_ms)
        else:
            self._last_contact_ms.pop(node_id, None)

    def effects(self, node_id: int, node: QuorumNode, effects: list[object]) -> None:
        for effect in effects:
            match effect:
                case SnapshotInstalled():
                    require(not isinstance(node.state, Leader), "a leader loads no snapshot", f"node {node_id}")
                    self._check_installed(node_id, node, effect.snapshot_id)
                case HighWatermarkAdvanced():
                    self._check_committed(node_id, node, effect.offset)

    # One leader, rising epochs

    def _check_epoch_and_leader(self, node_id: int, node: QuorumNode) -> None:
        epoch, leader_id = node.state.epoch, node.state.leader_id
        require(
            epoch >= self._epochs.get(node_id, 0),
            "monotonic epoch",
            f"node {node_id} is in epoch {epoch} after {self._epochs.get(node_id)}",
        )
        self._epochs[node_id] = epoch
        if leader_id >= 0:
            known = self._leaders.setdefault(epoch, leader_id)
            require(known == leader_id, "single leader", f"epoch {epoch} is led by {known} and by {leader_id}")

    def _check_leader(self, node_id: int, state: Leader, now_ms: int) -> None:
        start = state.leadership.epoch_start_offset
        contacts = self._last_contact_ms.setdefault(node_id, {})
        if state.epoch not in self._commit_by_epoch:
            self._commit_by_epoch[state.epoch] = start
            contacts.clear()
            contacts[-1] = now_ms
            require(
                start >= self.high_watermark,
                "leader completeness",
                f"node {node_id} leads epoch {state.epoch} from {start}, and {self.high_watermark} are committed",
            )
        others = sorted(
            (contacts.get(voter, contacts[-1]) for voter in self._voter_ids if voter != node_id), reverse=True
        )
        if others:
            reached_ms = others[self._majority - 2]
            require(
                now_ms - reached_ms <= self._check_quorum_bound_ms,
                "check-quorum",
                f"node {node_id} still leads epoch {state.epoch}, {now_ms - reached_ms} ms after its majority",
            )

    # Logs

    def _check_matching(self, node_id: int, log: QuorumLog, start: int, end: int) -> None:
        previous_epoch = log.epoch_of(start - 1) if start > log.start_offset else None
        for header in batches(log, max(start, log.start_offset), end):
            key = header.base_offset, header.leader_epoch
            before = previous_epoch if previous_epoch is not None else -1
            known_crc, known_before = self._written.setdefault(key, (header.crc, before))
            require(known_crc == header.crc, "log matching", f"node {node_id} has another batch at {key}")
            if -1 not in {known_before, before}:
                require(known_before == before, "log matching", f"node {node_id}: before {key} is epoch {before}")
            previous_epoch = header.leader_epoch

    def _check_majority(self) -> None:
        reached = [voter for voter in self._voter_ids if self._ends.get(voter, 0) >= self.high_watermark]
        require(
            len(reached) >= self._majority,
            "a majority has reached the high watermark",
            f"{self.high_watermark} is reached by {reached} only",
        )

    def _check_snapshot(self, node_id: int, log: QuorumLog) -> None:
        earliest = log.snapshots.earliest
        if earliest is None:
            require(log.start_offset == 0, "snapshot at log start", f"node {node_id} has none at {log.start_offset}")
            return
        require(
            log.start_offset in {0, earliest.offset},
            "snapshot at log start",
            f"node {node_id} starts at {log.start_offset}, its first snapshot is {earliest}",
        )
        if log.start_offset == earliest.offset:
            at_start = log.divergence_of(*earliest)
            require(
                at_start is None,
                "snapshot at log start",
                f"node {node_id}: {earliest} parts from the log at {at_start}",
            )

    # Committed data

    def _check_committed(self, node_id: int, node: QuorumNode, offset: int) -> None:
        state = node.state
        if isinstance(state, Leader):
            newest = max(self._commit_by_epoch)
            if state.epoch == newest:
                require(
                    offset >= self.high_watermark, "monotonic high watermark", f"{offset} after {self.high_watermark}"
                )
            self._commit_by_epoch[state.epoch] = offset
        require(offset <= node.log.end_offset, "committed data are there", f"node {node_id} lacks some below {offset}")
        for header in batches(node.log, self._applied[node_id], offset):
            found = header.leader_epoch, header.crc, header.last_offset
            if header.base_offset not in self.committed:
                self.committed[header.base_offset] = found
                before = self.digests.get(header.base_offset)
                require(
                    before is not None, "committed data have no gap", f"node {node_id} applies {header.base_offset}"
                )
                self.digests[header.last_offset + 1] = hash((before, found))
            known = self.committed[header.base_offset]
            require(
                known == found, "committed data are equal", f"at {header.base_offset}: {known}; node {node_id}: {found}"
            )
        self._applied[node_id] = max(offset, self._applied[node_id])
        if isinstance(state, Leader) and offset > self.high_watermark:
            self.high_watermark = offset
            self._ends[node_id] = node.log.end_offset
            self._check_majority()

    def _check_installed(self, node_id: int, node: QuorumNode, snapshot_id: OffsetAndEpoch) -> None:
        require(
            snapshot_id.offset <= self.high_watermark,
            "a snapshot is of committed data",
            f"node {node_id} installs {snapshot_id}, committed are {self.high_watermark}",
        )
        digest = snapshot_digest(node.log, snapshot_id)
        require(
            digest == self.digests.get(snapshot_id.offset),
            "committed data are equal",
            f"node {node_id} has another snapshot {snapshot_id}",
        )
        self._applied[node_id] = snapshot_id.offset

    def check_whole_log(self, node_id: int, node: QuorumNode) -> None:
        """Everything a node has below the high watermark it knows is what was committed: once, at the end."""
        for header in batches(node.log, node.log.start_offset, node.high_watermark):
            found = header.leader_epoch, header.crc, header.last_offset
            known = self.committed.get(header.base_offset)
            require(known == found, "committed data stay", f"at {header.base_offset}: {known}; node {node_id}: {found}")


def snapshot_digest(log: QuorumLog, snapshot_id: OffsetAndEpoch) -> int:
    data = log.snapshots.read(snapshot_id, 0, log.snapshots.size(snapshot_id))
    return int(next(record.value for _, record in decode_batches(data)))
