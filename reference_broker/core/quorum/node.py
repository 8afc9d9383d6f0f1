"""A node of the quorum: inputs in, effects out.

The node is told of everything: a request or a response that arrived, the loss of one, records to append, that it is
later now. It answers with effects, which the caller takes (`take_effects`), and with the moment at which it wants to be
called again (`deadline_ms`). Its log and its vote it keeps on its disk by itself.

Rules of this file:
- Time and randomness are arguments. Equal inputs on equal disks give equal effects.
- What an effect says is on disk before it is given out: the vote before the answer that grants it, a leader's records
  before they count towards the high watermark, a follower's before the fetch that tells of them.
- Here are the inputs. The transitions are in `quorum_state`. Requests are handled in `answers`, responses in
  `outcomes`, and `duties` has the periodic actions of each state, which follow every input. The timeouts are in
  `patience`.
"""

from collections.abc import Callable, Sequence
from typing import Any

from reference_broker.core.clock import Now
from reference_broker.core.disk import Disk
from reference_broker.core.quorum.answers import Answers
from reference_broker.core.quorum.configuration import QuorumConfig
from reference_broker.core.quorum.duties import Duties
from reference_broker.core.quorum.effects import (
    ResponseRejected,
)
from reference_broker.core.quorum.messages import (
    NO_LEADER,
    InconsistentMessageError,
    OffsetAndEpoch,
    QuorumDescription,
    Request,
    Response,
)
from reference_broker.core.quorum.outcomes import Outcomes
from reference_broker.core.quorum.quorum_state import QuorumState
from reference_broker.core.quorum.states import (
    Candidate,
    Follower,
    Leader,
    Resigned,
    Trigger,
)
from reference_broker.core.quorum.voters import ReplicaKey, VoterSet
from reference_broker.core.tracer import (
    QuorumRequestHandled,
    QuorumRequestReceived,
    SnapshotGenerated,
    Tracer,
    no_tracer,
)


class NotLeaderError(Exception):
    """Records can only be appended to the leader, in the epoch it leads."""


class QuorumNode(QuorumState):
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
        super().__init__(
            local=local,
            voters=voters,
            cluster_id=cluster_id,
            config=config,
            disk=disk,
            random_below=random_below,
            now=now,
            clean=clean,
            trace=trace,
        )
        self.deadline_ms: int | None = None
        self._answers = Answers(self)
        self._outcomes = Outcomes(self)
        self._duties = Duties(self)
        self._after_transition()
        self._start(now)
        self._settle(now)

    def _start(self, now: Now) -> None:
        if self.voters.ids == (self.local.id,) and self.is_voter:
            if isinstance(self.state, Candidate):
                self.count_votes(now)
            else:
                self.become_prospective(Trigger.ONLY_VOTER, now)

    # Inputs

    def receive_request(self, caller: Any, request: Request, now: Now) -> None:
        """Somebody asks. `caller` goes with the answer, which may come later."""
        self.trace(QuorumRequestReceived(request, now))
        response = self._answers.answer(caller, request, now)
        if response is not None:
            self.respond(caller, response)
        self._settle(now)
        self.trace(QuorumRequestHandled(request))

    def receive_response(self, request_id: int, response: Response, now: Now) -> None:
        """An answer arrives."""
        asked = self.connections.end(request_id)
        if asked is not None:
            voter_id, request = asked
            try:
                may_continue = self._outcomes.judge(voter_id, request, response, now)
            except InconsistentMessageError as error:
                self.rejected_response = ResponseRejected(voter_id, str(error))
                self._effects.append(self.rejected_response)
                may_continue = False
            if not may_continue:
                self.connections.back_off(voter_id, now.monotonic_ms)
        self._settle(now)

    def fail_request(self, request_id: int, now: Now) -> None:
        """A request could not be sent, or its connection is gone."""
        asked = self.connections.end(request_id)
        if asked is not None:
            self.connections.back_off(asked[0], now.monotonic_ms)
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
        self.trace(SnapshotGenerated(end_offset))
        return snapshot_id

    def _settle(self, now: Now) -> None:
        self._answers.expire(now)
        self._duties.do(now)
        duty_ms, answer_ms = self._duties.deadline_ms, self._answers.deadline_ms
        self.deadline_ms = duty_ms if answer_ms is None else answer_ms if duty_ms is None else min(duty_ms, answer_ms)

    def on_transition(self) -> None:
        """Reject the fetches that are held: they look for the leader."""
        self._answers.refuse_held()

    def on_append(self, now: Now) -> None:
        """Respond to the fetches that are held."""
        self._answers.answer_held(now)

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

    def describe(self, now: Now) -> QuorumDescription | None:
        """For DescribeQuorum; null if this node does not lead."""
        return self.state.leadership.describe(now) if isinstance(self.state, Leader) else None
