"""A node of the quorum: inputs in, effects out.

The node is told of everything: a request or a response that arrived, the loss of one, records to append, that it is
later now. It answers with effects, which the caller takes (`take_effects`), and with the moment at which it wants to be
called again (`deadline_ms`). Its log and its vote it keeps on its disk by itself.

Rules of this file:
- Time and randomness are arguments. Equal inputs on equal disks give equal effects.
- What an effect says is on disk before it is given out: the vote before the answer that grants it, a leader's records
  before they count towards the high watermark, a follower's before the fetch that tells of them.
- Here are the inputs and the transitions. Requests are answered in `answers`, responses judged in `outcomes`, and after
  every input the node does what its state asks for, in `duties`. How long it waits, says `patience`.
- A node that contradicts itself must not continue (`QuorumStateError`). A message that contradicts the node is rejected
  (`InconsistentMessageError`): no peer can end a node. Both are exceptions in Kafka.
"""

from collections.abc import Callable, Sequence
from typing import Any

from reference_broker.core.clock import Now
from reference_broker.core.disk import Disk
from reference_broker.core.quorum.answers import Answers
from reference_broker.core.quorum.configuration import QuorumConfig
from reference_broker.core.quorum.control_records import leader_change_batch
from reference_broker.core.quorum.duties import Duties
from reference_broker.core.quorum.effects import (
    Effect,
    HighWatermarkAdvanced,
    LeaderChanged,
    ResponseRejected,
    SendRequest,
    SendResponse,
    SnapshotInstalled,
)
from reference_broker.core.quorum.election_state import ElectionState, ElectionStateStore
from reference_broker.core.quorum.first_state import first_state
from reference_broker.core.quorum.leadership import Leadership
from reference_broker.core.quorum.messages import (
    MAX_EPOCH,
    NO_LEADER,
    UNKNOWN_HIGH_WATERMARK,
    InconsistentMessageError,
    OffsetAndEpoch,
    QuorumDescription,
    Request,
    Response,
)
from reference_broker.core.quorum.outcomes import Outcomes
from reference_broker.core.quorum.patience import Patience
from reference_broker.core.quorum.quorum_log import QUORUM_LOG_DIRECTORY, QuorumLog
from reference_broker.core.quorum.states import (
    NEVER_MS,
    Ballot,
    Candidate,
    Follower,
    Leader,
    Prospective,
    Resigned,
    Role,
    State,
    Trigger,
    Unattached,
    next_role,
)
from reference_broker.core.quorum.voters import ReplicaKey, VoterSet
from reference_broker.core.tracer import QuorumRequestHandled, QuorumRequestReceived, Tracer, no_tracer

_EPOCH_JUMP_MAX = 2**30
_EPOCH_STEP_MAX = 2**10
"""How far a peer's message may advance the epoch: freely in the first half of all epochs, by the number of elections
that a node may have missed in the second."""


class NotLeaderError(Exception):
    """Records can only be appended to the leader, in the epoch it leads."""


class QuorumNode:
    """One node, a voter or an observer, as its disk has it after the last stop or crash.

    :param local: its id and the id of its directory.
    :param random_below: a random number below its argument, for the jitter of elections.
    :param clean: the last run closed its log.

    `deadline_ms` is when `advance` is to be called, by the monotonic clock; null if only others can bring this node on.
    """

    def __init__(
        self,
        *,
        local: ReplicaKey,
        voters: VoterSet,
        cluster_id: str,
        config: QuorumConfig,
        disk: Disk,
        random_below: Callable[[int], int],
        now: Now,
        clean: bool = False,
        trace: Tracer = no_tracer,
    ) -> None:
        self.local = local
        self.voters = voters
        self.cluster_id = cluster_id
        self.config = config
        self.high_watermark = UNKNOWN_HIGH_WATERMARK
        self._leader_high_watermark = UNKNOWN_HIGH_WATERMARK
        self.is_voter = voters.contains(local)
        self.log = QuorumLog(disk, config.log, now.wall_ms, clean=clean)
        self._store = ElectionStateStore(disk, QUORUM_LOG_DIRECTORY)
        self._trace = trace
        self._effects: list[Effect] = []
        self.is_stopping = False
        self.rejected_response: ResponseRejected | None = None
        self.deadline_ms: int | None = None
        self.random_below = random_below
        self.patience = Patience(config, random_below, is_voter=self.is_voter)
        self._answers = Answers(self)
        self._outcomes = Outcomes(self)
        self._duties = Duties(self)
        self.state: State = self._initial_state(now)
        self._persisted: ElectionState | None = None
        self._after_transition()
        self._start(now)
        self._settle(now)

    # Inputs

    def receive_request(self, caller: Any, request: Request, now: Now) -> None:
        """Somebody asks. `caller` goes with the answer, which may come later."""
        self._trace(QuorumRequestReceived(request, now))
        response = self._answers.answer(caller, request, now)
        if response is not None:
            self.respond(caller, response)
        self._settle(now)
        self._trace(QuorumRequestHandled(request))

    def receive_response(self, request_id: int, response: Response, now: Now) -> None:
        """An answer arrives."""
        asked = self._duties.connections.end(request_id)
        if asked is not None:
            voter_id, request = asked
            try:
                may_continue = self._outcomes.judge(voter_id, request, response, now)
            except InconsistentMessageError as error:
                self.rejected_response = ResponseRejected(voter_id, str(error))
                self._effects.append(self.rejected_response)
                may_continue = False
            if not may_continue:
                self._duties.connections.back_off(voter_id, now.monotonic_ms)
        self._settle(now)

    def fail_request(self, request_id: int, now: Now) -> None:
        """A request could not be sent, or its connection is gone."""
        asked = self._duties.connections.end(request_id)
        if asked is not None:
            self._duties.connections.back_off(asked[0], now.monotonic_ms)
            if isinstance(self.state, Resigned):
                self.state.unreachable.add(asked[0])
        self._settle(now)

    def forget_caller(self, caller: Any) -> None:
        """Nobody waits for an answer there any more."""
        self._answers.forget(caller)

    def advance(self, now: Now) -> None:
        """It is later now; to be called at `deadline_ms`."""
        self._settle(now)

    def append(self, batches: Sequence[bytes], epoch: int, now: Now) -> int:
        """Write batches, as `encode_batch` makes them, to the log of the leader; the offset behind the last record.

        They are committed once the high watermark is there. Raises `NotLeaderError`.
        """
        if not isinstance(self.state, Leader) or self.state.epoch != epoch:
            raise NotLeaderError(f"node {self.local.id} does not lead epoch {epoch}")
        self._append_as_leader(self.state, batches, now)
        self._settle(now)
        return self.log.end_offset

    def resign(self, now: Now) -> None:
        """Give up a leadership, to those whose logs are longest first."""
        if isinstance(self.state, Leader):
            self.become_resigned(now)
        self._settle(now)

    def shut_down(self, now: Now) -> None:
        """Resign, and begin no election any more; `may_stop` says when the others can do without this node."""
        self.is_stopping = True
        self.resign(now)

    def snapshot(self, end_offset: int, data: bytes) -> OffsetAndEpoch:
        """Keep a snapshot of all records below a committed offset, as `encode_snapshot` makes it."""
        assert self.log.start_offset < end_offset <= self.high_watermark
        snapshot_id = OffsetAndEpoch(end_offset, self.log.epoch_of(end_offset - 1))
        self.log.store_snapshot(snapshot_id, data)
        return snapshot_id

    def _settle(self, now: Now) -> None:
        self._answers.expire(now)
        self._duties.do(now)
        duty_ms, answer_ms = self._duties.deadline_ms, self._answers.deadline_ms
        self.deadline_ms = duty_ms if answer_ms is None else answer_ms if duty_ms is None else min(duty_ms, answer_ms)

    # What it is

    @property
    def may_stop(self) -> bool:
        """Whether a node that shuts down has done its duty: another one leads, or too few are left to elect one."""
        if not self.is_voter or self.state.leader_id not in {NO_LEADER, self.local.id}:
            return True
        others = set(self.voters.others(self.local.id))
        if isinstance(self.state, Resigned):
            others -= self.state.unreachable
        return len(others) < self.voters.majority

    @property
    def heard_ms(self) -> int | None:
        """When this node last knew to be part of a majority; null if its state does not tell."""
        match self.state:
            case Leader():
                return self.state.leadership.heard_ms
            case Follower():
                return self.state.fetch_deadline_ms - self.config.fetch_timeout_ms
        return None

    @property
    def election(self) -> ElectionState:
        """What of the state has to outlive a crash."""
        return ElectionState(self.state.epoch, self.state.leader_id, self.state.voted)

    @property
    def is_caught_up(self) -> bool:
        """Whether the log has all that the leader has ever told this node to be committed."""
        return self.high_watermark == self._leader_high_watermark != UNKNOWN_HIGH_WATERMARK

    def describe(self, now: Now) -> QuorumDescription | None:
        """For DescribeQuorum; null if this node does not lead."""
        return self.state.leadership.describe(now) if isinstance(self.state, Leader) else None

    @property
    def has_effects(self) -> bool:
        """Whether there is anything to take."""
        return bool(self._effects)

    @property
    def effects(self) -> tuple[Effect, ...]:
        """What was decided and is not taken yet."""
        return tuple(self._effects)

    def take_effects(self) -> list[Effect]:
        """What was decided since the last time, in order."""
        effects, self._effects = self._effects, []
        return effects

    def respond(self, caller: Any, response: Response) -> None:
        """Answer."""
        self._effects.append(SendResponse(caller, response))

    def send(self, request_id: int, voter_id: int, request: Request) -> None:
        """Ask."""
        self._effects.append(SendRequest(request_id, voter_id, request))

    # Transitions

    def _initial_state(self, now: Now) -> State:
        election = self._store.read()
        if election.epoch < self.log.last_epoch:
            election = ElectionState(self.log.last_epoch)
        return first_state(election, self.local, self.voters, self.patience, now)

    def _start(self, now: Now) -> None:
        if self.voters.ids == (self.local.id,) and self.is_voter:
            if isinstance(self.state, Candidate):
                self.count_votes(now)
            else:
                self.become_prospective(Trigger.ONLY_VOTER, now)

    def _ballot(self) -> Ballot:
        return Ballot(self.voters, self.local.id)

    def see_epoch(self, epoch: int, leader_id: int, now: Now) -> None:
        """Take over an epoch, and its leader where that is known and a voter. Kafka's `maybeTransition`.

        Raises `InconsistentMessageError`, and changes nothing then.
        """
        state = self.state
        if self.voters.get(leader_id) is None:
            leader_id = NO_LEADER
        self._check_epoch_is_reachable(epoch)
        self._check_leader_is_consistent(epoch, leader_id)
        if epoch > state.epoch and leader_id == NO_LEADER:
            self.become_unattached(Trigger.HIGHER_EPOCH, epoch, NO_LEADER, now)
        elif leader_id not in {NO_LEADER, self.local.id} and (epoch > state.epoch or self._lacks_leader_of(epoch)):
            self._become_follower(epoch, leader_id, now)

    def _check_epoch_is_reachable(self, epoch: int) -> None:
        """Keep one message from using up the epochs: an epoch in the last half is reached by elections, not at once."""
        if epoch > min(MAX_EPOCH, max(_EPOCH_JUMP_MAX, self.state.epoch + _EPOCH_STEP_MAX)):
            raise InconsistentMessageError(f"no elections lead from epoch {self.state.epoch} to epoch {epoch}")

    def _check_leader_is_consistent(self, epoch: int, leader_id: int) -> None:
        """Kafka's `hasConsistentLeader`: one leader per epoch, and this node only where it knows that it leads."""
        state = self.state
        if epoch == state.epoch and NO_LEADER not in {leader_id, state.leader_id} and leader_id != state.leader_id:
            raise InconsistentMessageError(f"the leader of epoch {epoch} is {state.leader_id}, not {leader_id}")
        if leader_id == self.local.id and epoch >= state.epoch and state.leader_id != leader_id:
            raise InconsistentMessageError(f"node {leader_id} itself does not lead epoch {epoch}")

    def _lacks_leader_of(self, epoch: int) -> bool:
        """Also an observer that knows its leader's id, but has heard nothing from it for long."""
        is_waiting = isinstance(self.state, Unattached) or self.state.leader_id == NO_LEADER
        return epoch == self.state.epoch and is_waiting

    def become_unattached(self, trigger: Trigger, epoch: int, leader_id: int, now: Now) -> None:
        """Wait, and look for a leader."""
        state = self.state
        voted = state.voted if epoch == state.epoch else None
        deadline_ms = self.patience.remaining_election_deadline_ms(state, now)
        self._transition(trigger, Unattached(epoch, leader_id, voted, deadline_ms))

    def become_prospective(self, trigger: Trigger, now: Now) -> None:
        """Ask if an election could be won."""
        state = self.state
        deadline_ms = self.patience.election_deadline_ms(now)
        prospective = Prospective(state.epoch, state.leader_id, state.voted, deadline_ms, self._ballot())
        self._transition(trigger, prospective)
        self.count_votes(now)

    def _become_candidate(self, now: Now) -> None:
        epoch = self.state.epoch + 1
        assert epoch <= MAX_EPOCH
        candidate = Candidate(epoch, self.local, self.patience.election_deadline_ms(now), self._ballot())
        self._transition(Trigger.MAJORITY_GRANTED, candidate)
        self.count_votes(now)

    def _become_leader(self, state: Candidate, now: Now) -> None:
        start = self.log.end_offset
        leadership = Leadership(
            self.local,
            epoch=state.epoch,
            epoch_start_offset=start,
            voters=self.voters,
            config=self.config,
            now=now,
        )
        leader = Leader(state.epoch, self.local.id, None, leadership)
        self._transition(Trigger.MAJORITY_GRANTED, leader)
        granting = state.ballot.granting
        batch = leader_change_batch(self.local.id, self.voters.ids, granting, now.wall_ms)
        self._append_as_leader(leader, [batch], now)

    def _become_follower(self, epoch: int, leader_id: int, now: Now) -> None:
        voted = self.state.voted if epoch == self.state.epoch else None
        deadline_ms = self.patience.fetch_deadline_ms(now)
        self._transition(Trigger.LEADER_FOUND, Follower(epoch, leader_id, voted, deadline_ms))

    def leave_epoch(self, state: Resigned, now: Now) -> None:
        """Wait for the leader of the next epoch. In the last one a leader that resigned could only vote twice."""
        if state.epoch == MAX_EPOCH:
            state.election_deadline_ms = NEVER_MS
        else:
            self.become_unattached(Trigger.ELECTION_TIMEOUT, state.epoch + 1, NO_LEADER, now)

    def become_resigned(self, now: Now) -> None:
        """Lead no more."""
        state = self.state
        assert isinstance(state, Leader)
        deadline_ms = self.patience.election_deadline_ms(now)
        successors, others = state.leadership.successors(), set(self.voters.others(self.local.id))
        resigned = Resigned(state.epoch, state.leader_id, state.voted, deadline_ms, successors, others)
        self._transition(Trigger.RESIGNATION, resigned)

    def count_votes(self, now: Now) -> None:
        """Go on if the election is won."""
        match self.state:
            case Prospective() if self.state.ballot.is_won and self.state.epoch < MAX_EPOCH:
                self._become_candidate(now)
            case Candidate() if self.state.ballot.is_won:
                self._become_leader(self.state, now)

    def lose_election(self, state: Prospective, now: Now) -> None:
        """No majority would vote for this node: back to the leader it knew, or to waiting."""
        if self.voters.get(state.leader_id) is not None and state.leader_id != self.local.id:
            self._become_follower(state.epoch, state.leader_id, now)
        else:
            self.become_unattached(Trigger.ELECTION_LOST, state.epoch, state.leader_id, now)

    def vote_for(self, candidate: ReplicaKey, now: Now) -> None:
        """Give the vote of this epoch; the candidate gets the time that an election takes."""
        state = self.state
        if isinstance(state, Unattached | Prospective) and state.voted is None:
            state.voted = candidate
            state.election_deadline_ms = self.patience.election_deadline_ms(now)
            if isinstance(state, Prospective):
                state.ballot = self._ballot()
            self._persist()

    def _transition(self, trigger: Trigger, state: State) -> None:
        role = next_role(self.state.role, trigger)
        assert role is state.role
        assert role in {Role.UNATTACHED, Role.FOLLOWER} or self.is_voter
        self.state = state
        self._after_transition()

    def _after_transition(self) -> None:
        before = self._persisted
        self._persist()
        self._duties.connections.reset()
        self._answers.refuse_held()
        state = self.state
        if before is None or (before.epoch, before.leader_id) != (state.epoch, state.leader_id):
            start = state.leadership.epoch_start_offset if isinstance(state, Leader) else None
            self._effects.append(LeaderChanged(state.leader_id, state.epoch, start))

    def _persist(self) -> None:
        election = self.election
        if election != self._persisted:
            self._store.write(election)
            self._persisted = election

    # The log

    def _append_as_leader(self, state: Leader, batches: Sequence[bytes], now: Now) -> None:
        for batch in batches:
            self.log.append_as_leader(batch, state.epoch, now.wall_ms)
        self.log.flush()
        has_moved = state.leadership.note_local_end(self.log.end_offset)
        if has_moved:
            self.advance_high_watermark(state.leadership.high_watermark)
        self._answers.answer_held(now)

    def advance_high_watermark(self, offset: int) -> None:
        """Records are committed as far as this log has them."""
        self._leader_high_watermark = max(offset, self._leader_high_watermark)
        offset = min(offset, self.log.end_offset)
        if offset > self.high_watermark:
            self.high_watermark = offset
            self._effects.append(HighWatermarkAdvanced(offset))

    def install_snapshot(self, snapshot_id: OffsetAndEpoch, data: bytes, now: Now) -> None:
        """Begin the log again at the end of a snapshot that the leader has sent."""
        self.log.install_snapshot(snapshot_id, data, now.wall_ms)
        self._effects.append(SnapshotInstalled(snapshot_id))
        self.advance_high_watermark(snapshot_id.offset)
