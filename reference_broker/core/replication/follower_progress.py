"""What a leader knows of one follower, learned from its fetches alone (Kafka's `Replica` and `ReplicaState`).

A follower is *caught up* at a moment if it had by then all that the leader had. A leader sees only what a follower asks
for, so it concludes afterwards: a fetch from the leader's end shows the follower caught up now; a fetch from where the
end was at the fetch before shows that it was so then. Under steady load a follower is never seen at the very end, and
is nevertheless in sync.
"""

from dataclasses import dataclass
from typing import Self

UNKNOWN_OFFSET = -1
NEVER_MS = -(2**62)


@dataclass(slots=True)
class FollowerProgress:
    """One follower. Offsets are -1 before its first fetch in this leadership; times are monotonic.

    :param end_offset: where it asked for records from, so that it has all below.
    :param broker_epoch: of its last fetch (KIP-903); null before the first, -1 if it does not say.
    """

    end_offset: int = UNKNOWN_OFFSET
    log_start_offset: int = UNKNOWN_OFFSET
    last_fetch_leader_end_offset: int = UNKNOWN_OFFSET
    last_fetch_ms: int = NEVER_MS
    last_caught_up_ms: int = NEVER_MS
    broker_epoch: int | None = None

    def fetched(
        self, offset: int, log_start_offset: int, leader_end_offset: int, broker_epoch: int, now_ms: int
    ) -> None:
        """It fetches from `offset`, while the leader's log ends at `leader_end_offset`."""
        if offset >= leader_end_offset:
            self.last_caught_up_ms = max(self.last_caught_up_ms, now_ms)
        elif offset >= self.last_fetch_leader_end_offset:
            self.last_caught_up_ms = max(self.last_caught_up_ms, self.last_fetch_ms)
        self.end_offset = offset
        self.log_start_offset = log_start_offset
        self.last_fetch_leader_end_offset = max(leader_end_offset, self.last_fetch_leader_end_offset)
        self.last_fetch_ms = now_ms
        self.broker_epoch = broker_epoch

    def is_caught_up(self, leader_end_offset: int, now_ms: int, lag_max_ms: int) -> bool:
        """At the leader's end, or there not long ago (`replica.lag.time.max.ms`): an idle follower never lags."""
        return leader_end_offset == self.end_offset or now_ms - self.last_caught_up_ms <= lag_max_ms

    @classmethod
    def at_leadership(cls, *, is_in_sync: bool, now_ms: int) -> Self:
        """The leader is new: nothing is known, and a member of the ISR has a whole lag time to show up."""
        return cls(last_caught_up_ms=now_ms if is_in_sync else NEVER_MS)

    def epoch_began(self, leader_end_offset: int, *, is_in_sync: bool, now_ms: int) -> None:
        """The same leader goes on in another epoch; who is outside of the ISR must fetch before it may come back."""
        self.last_fetch_leader_end_offset = leader_end_offset
        self.last_fetch_ms = self.last_caught_up_ms = now_ms if is_in_sync else NEVER_MS
