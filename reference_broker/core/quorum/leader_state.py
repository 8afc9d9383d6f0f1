"""State of the leader: its view of every replica, the high watermark, and check-quorum.

Follows: org.apache.kafka.raft.LeaderState (KIP-595).

Rules of this file:
- The high watermark is the largest offset that a majority of the voters, including the leader, has reached. It never
  decreases.
- A new leader has no high watermark until a majority has its first record. Records of older epochs are committed only
  together with a record of the leader's epoch (Raft 5.4.2).
- A voter is identified by its id, and by its directory id if the voter set contains directory ids (KIP-853). Any other
  replica that fetches is an observer. `describe` removes observers without a fetch in `observer_session_timeout_ms`.
- Check-quorum (KIP-595): a leader resigns if no majority has fetched from it within the check-quorum timeout, because
  that majority may have elected another leader.
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
class ReplicaState:
    """State of one replica, derived from its fetches. -1 and null: unknown.

    :param end_offset: the replica has all records below this offset.
    :param last_fetch_leader_end_offset: the leader's log end offset at the time of `last_fetch`.
    """

    key: ReplicaKey
    end_offset: int = _UNKNOWN
    last_fetch: Now | None = None
    last_fetch_leader_end_offset: int = _UNKNOWN
    last_caught_up_wall_ms: int = _UNKNOWN

    def update_follower_state(self, fetch_offset: int, leader_end_offset: int, now: Now) -> None:
        """Record a fetch: the replica has every record below `fetch_offset`.

        If the replica now has every record that the leader had at the replica's previous fetch, the replica was caught
        up at the time of that fetch.
        """
        if fetch_offset >= leader_end_offset:
            self.last_caught_up_wall_ms = max(self.last_caught_up_wall_ms, now.wall_ms)
        elif self.last_fetch and fetch_offset >= self.last_fetch_leader_end_offset > 0:
            self.last_caught_up_wall_ms = max(self.last_caught_up_wall_ms, self.last_fetch.wall_ms)
        self.last_fetch_leader_end_offset = leader_end_offset
        self.last_fetch = now
        self.end_offset = fetch_offset

    def describe(self) -> ReplicaDescription:
        """Return the replica's entry in a DescribeQuorum response."""
        last_fetch_ms = self.last_fetch.wall_ms if self.last_fetch else _UNKNOWN
        return ReplicaDescription(self.key, self.end_offset, last_fetch_ms, self.last_caught_up_wall_ms)


class LeaderState:
    """State of the leader of one epoch."""

    voted = None

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
        self.epoch = epoch
        self.leader_id = local.id
        self.epoch_start_offset = epoch_start_offset
        self.high_watermark = UNKNOWN_HIGH_WATERMARK
        self.begin_quorum_epoch_deadline_ms = now.monotonic_ms
        self.last_majority_fetch_ms = now.monotonic_ms
        self._voters = voters
        self._others = voters.others(local.id)
        self._config = config
        self._voter_states = {voter_id: ReplicaState(voters.key_of(voter_id)) for voter_id in voters.ids}
        self._observer_states: dict[ReplicaKey, ReplicaState] = {}
        self._fetched_voters: set[int] = set()

    @property
    def voter_states(self) -> Mapping[int, ReplicaState]:
        """The voters, by id."""
        return self._voter_states

    @property
    def observer_states(self) -> Mapping[ReplicaKey, ReplicaState]:
        """The observers, in the order of their last fetches."""
        return self._observer_states

    # Fetches, and the high watermark

    def update_local_state(self, end_offset: int) -> bool:
        """Record the durable end of the leader's own log. Return whether the high watermark has advanced."""
        self._voter_states[self.leader_id].end_offset = end_offset
        return self._maybe_update_high_watermark()

    def update_replica_state(self, replica: ReplicaKey, fetch_offset: int, now: Now) -> bool:
        """Record the fetch of a replica. Return whether the high watermark has advanced."""
        leader_end_offset = self._voter_states[self.leader_id].end_offset
        self.update_check_quorum(replica, now)
        if self._voters.contains(replica):
            self._voter_states[replica.id].update_follower_state(fetch_offset, leader_end_offset, now)
            return self._maybe_update_high_watermark()
        if replica.id >= 0:
            self._update_observer_state(replica, fetch_offset, leader_end_offset, now)
        return False

    def _update_observer_state(self, replica: ReplicaKey, fetch_offset: int, leader_end_offset: int, now: Now) -> None:
        """Update an observer. Keep at most `_OBSERVERS_MAX` observers, because a node may fetch with any id."""
        state = self._observer_states.pop(replica, None) or ReplicaState(replica)
        state.update_follower_state(fetch_offset, leader_end_offset, now)
        self._observer_states[replica] = state
        if len(self._observer_states) > _OBSERVERS_MAX:
            del self._observer_states[next(iter(self._observer_states))]

    def _maybe_update_high_watermark(self) -> bool:
        reached = self._reached_by_majority()
        if not self._may_commit(reached) or reached <= self.high_watermark:
            return False
        self.high_watermark = reached
        return True

    def _reached_by_majority(self) -> int:
        end_offsets = sorted((state.end_offset for state in self._voter_states.values()), reverse=True)
        return end_offsets[self._voters.majority - 1]

    def _may_commit(self, offset: int) -> bool:
        return offset > self.epoch_start_offset

    # Check-quorum and BeginQuorumEpoch

    def update_check_quorum(self, replica: ReplicaKey, now: Now) -> None:
        """Record a fetch of records or of a part of a snapshot (`updateCheckQuorumForFollowingVoter`)."""
        if self._voters.contains(replica) and replica.id != self.leader_id:
            self._fetched_voters.add(replica.id)
        if len(self._fetched_voters) >= self._voters.majority - 1:
            self._fetched_voters.clear()
            self.last_majority_fetch_ms = now.monotonic_ms

    @property
    def check_quorum_deadline_ms(self) -> int:
        """Monotonic time at which the leader resigns unless a majority fetches before it."""
        return self.last_majority_fetch_ms + self._config.check_quorum_timeout_ms

    def has_check_quorum_expired(self, now: Now) -> bool:
        """Whether the leader must resign; false for the only voter of a quorum."""
        return len(self._voters.ids) > 1 and now.monotonic_ms >= self.check_quorum_deadline_ms

    @property
    def deadline_ms(self) -> int:
        """Monotonic time of the next BeginQuorumEpoch request or resignation."""
        if len(self._voters.ids) == 1:
            return self.begin_quorum_epoch_deadline_ms
        return min(self.begin_quorum_epoch_deadline_ms, self.check_quorum_deadline_ms)

    def non_fetching_voters(self, now: Now) -> tuple[int, ...]:
        """Return the voters without a recent fetch. They may not know this leader."""
        before_ms = now.monotonic_ms - self._config.begin_quorum_epoch_timeout_ms
        return tuple(
            voter_id
            for voter_id in self._others
            if (last_fetch := self._voter_states[voter_id].last_fetch) is None or last_fetch.monotonic_ms <= before_ms
        )

    # EndQuorumEpoch and DescribeQuorum

    def non_leader_voters_by_descending_fetch_offset(self) -> tuple[ReplicaKey, ...]:
        """Return the other voters, the one with the longest log first: the preferred successors."""
        others = [self._voter_states[voter_id] for voter_id in self._others]
        return tuple(state.key for state in sorted(others, key=lambda state: -state.end_offset))

    def describe(self, now: Now) -> QuorumDescription:
        """Return the quorum as DescribeQuorum shows it, and remove expired observers. The leader is caught up."""
        oldest_ms = now.monotonic_ms - self._config.observer_session_timeout_ms
        for key, observer in list(self._observer_states.items()):
            if observer.last_fetch and observer.last_fetch.monotonic_ms <= oldest_ms:
                del self._observer_states[key]
        local = self._voter_states[self.leader_id]
        local.last_caught_up_wall_ms = now.wall_ms
        return QuorumDescription(
            self.leader_id,
            self.epoch,
            self.high_watermark,
            tuple(state.describe() for state in self._voter_states.values()),
            tuple(state.describe() for _, state in sorted(self._observer_states.items())),
        )
