"""What a leader knows of the others: how far they have come, and when they last fetched.

Rules of this file:
- The high watermark is the offset that a majority of the voters has reached, the leader among them, and only once it
  lies above the start of the leader's epoch: a record of an older epoch counts as committed by one of this epoch
  (Raft §5.4.2). A leader begins without a high watermark, and its high watermark never falls.
- A voter is known by id and directory id. Everybody else who fetches is an observer, and forgotten after a time.
- If for the check-quorum timeout no majority has fetched, the leader has to resign: it may long have been replaced.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from reference_broker.core.clock import Now
from reference_broker.core.quorum.configuration import QuorumConfig
from reference_broker.core.quorum.messages import (
    UNKNOWN_HIGH_WATERMARK,
    QuorumDescription,
    ReplicaDescription,
)
from reference_broker.core.quorum.voters import ReplicaKey, VoterSet

_UNKNOWN = -1
_OBSERVERS_MAX = 1_000


@dataclass(slots=True)
class Progress:
    """One replica, as its fetches show it."""

    key: ReplicaKey
    end_offset: int = _UNKNOWN
    last_fetch: Now | None = None
    last_fetch_leader_end_offset: int = _UNKNOWN
    last_caught_up_wall_ms: int = _UNKNOWN

    def note_fetch(self, fetch_offset: int, leader_end_offset: int, now: Now) -> None:
        """It has everything below `fetch_offset`. It was caught up when the leader's log last ended there."""
        if fetch_offset >= leader_end_offset:
            self.last_caught_up_wall_ms = max(self.last_caught_up_wall_ms, now.wall_ms)
        elif self.last_fetch and fetch_offset >= self.last_fetch_leader_end_offset > 0:
            self.last_caught_up_wall_ms = max(self.last_caught_up_wall_ms, self.last_fetch.wall_ms)
        self.last_fetch_leader_end_offset = leader_end_offset
        self.last_fetch = now
        self.end_offset = fetch_offset

    def describe(self) -> ReplicaDescription:
        """For DescribeQuorum."""
        last_fetch_ms = self.last_fetch.wall_ms if self.last_fetch else _UNKNOWN
        return ReplicaDescription(self.key, self.end_offset, last_fetch_ms, self.last_caught_up_wall_ms)


class Leadership:
    """One epoch of one leader."""

    def __init__(
        self,
        local: ReplicaKey,
        *,
        epoch: int,
        epoch_start_offset: int,
        voters: VoterSet,
        config: QuorumConfig,
        now: Now,
    ) -> None:
        self.epoch_start_offset = epoch_start_offset
        self.high_watermark = UNKNOWN_HIGH_WATERMARK
        self.begin_quorum_epoch_deadline_ms = now.monotonic_ms
        self.heard_ms = now.monotonic_ms
        self._local = local
        self._epoch = epoch
        self._voters = voters
        self._config = config
        self._progress = {voter_id: Progress(voters.key_of(voter_id)) for voter_id in voters.ids}
        self._observers: dict[ReplicaKey, Progress] = {}
        self._fetched: set[int] = set()

    @property
    def progress(self) -> Mapping[int, Progress]:
        """The voters, by id."""
        return self._progress

    @property
    def observers(self) -> Mapping[ReplicaKey, Progress]:
        """The observers, in the order of their last fetches."""
        return self._observers

    # Progress

    def note_local_end(self, end_offset: int) -> bool:
        """The leader's own log, durable, ends here. True if the high watermark has moved."""
        self._progress[self._local.id].end_offset = end_offset
        return self._advance_high_watermark()

    def note_fetch(self, replica: ReplicaKey, fetch_offset: int, now: Now) -> bool:
        """A replica fetches. True if the high watermark has moved."""
        leader_end_offset = self._progress[self._local.id].end_offset
        self.note_contact(replica, now)
        if self._voters.contains(replica):
            self._progress[replica.id].note_fetch(fetch_offset, leader_end_offset, now)
            return self._advance_high_watermark()
        if replica.id >= 0:
            self._note_observer(replica, fetch_offset, leader_end_offset, now)
        return False

    def _note_observer(self, replica: ReplicaKey, fetch_offset: int, leader_end_offset: int, now: Now) -> None:
        """Observers are kept in the order of their last fetches: any node may fetch under any number of ids."""
        progress = self._observers.pop(replica, None) or Progress(replica)
        progress.note_fetch(fetch_offset, leader_end_offset, now)
        self._observers[replica] = progress
        if len(self._observers) > _OBSERVERS_MAX:
            del self._observers[next(iter(self._observers))]

    def note_contact(self, replica: ReplicaKey, now: Now) -> None:
        """A replica fetches records or a piece of a snapshot: a majority of such contacts renews the leadership."""
        if self._voters.contains(replica) and replica.id != self._local.id:
            self._fetched.add(replica.id)
        if len(self._fetched) >= self._voters.majority - 1:
            self._fetched.clear()
            self.heard_ms = now.monotonic_ms

    @property
    def check_quorum_deadline_ms(self) -> int:
        """When the leader has to resign, unless a majority fetches before."""
        return self.heard_ms + self._config.check_quorum_timeout_ms

    def _advance_high_watermark(self) -> bool:
        reached = self._reached_by_majority()
        if not self._may_commit(reached) or reached <= self.high_watermark:
            return False
        self.high_watermark = reached
        return True

    def _reached_by_majority(self) -> int:
        end_offsets = sorted((progress.end_offset for progress in self._progress.values()), reverse=True)
        return end_offsets[self._voters.majority - 1]

    def _may_commit(self, offset: int) -> bool:
        return offset > self.epoch_start_offset

    # What follows from it

    def has_lost_quorum(self, now: Now) -> bool:
        """Whether check-quorum asks the leader to resign. An only voter is its own majority."""
        return len(self._voters.ids) > 1 and now.monotonic_ms >= self.check_quorum_deadline_ms

    @property
    def deadline_ms(self) -> int:
        """When there is something to do next."""
        if len(self._voters.ids) == 1:
            return self.begin_quorum_epoch_deadline_ms
        return min(self.begin_quorum_epoch_deadline_ms, self.check_quorum_deadline_ms)

    def silent_voters(self, now: Now) -> tuple[int, ...]:
        """Who may not know that this node leads, as it does not fetch."""
        latest_ms = now.monotonic_ms - self._config.begin_quorum_epoch_timeout_ms
        return tuple(
            voter_id
            for voter_id in self._voters.others(self._local.id)
            if (last_fetch := self._progress[voter_id].last_fetch) is None or last_fetch.monotonic_ms <= latest_ms
        )

    def successors(self) -> tuple[ReplicaKey, ...]:
        """The other voters, the one with the longest log first."""
        others = [self._progress[voter_id] for voter_id in self._voters.others(self._local.id)]
        return tuple(progress.key for progress in sorted(others, key=lambda progress: -progress.end_offset))

    def describe(self, now: Now) -> QuorumDescription:
        """The quorum, for DescribeQuorum. The leader itself is always caught up."""
        oldest_ms = now.monotonic_ms - self._config.observer_session_timeout_ms
        for key, progress in list(self._observers.items()):
            if progress.last_fetch and progress.last_fetch.monotonic_ms <= oldest_ms:
                del self._observers[key]
        local = self._progress[self._local.id]
        local.last_caught_up_wall_ms = now.wall_ms
        return QuorumDescription(
            self._local.id,
            self._epoch,
            self.high_watermark,
            tuple(progress.describe() for progress in self._progress.values()),
            tuple(progress.describe() for _, progress in sorted(self._observers.items())),
        )
