"""Progress of one follower, as its leader derives it from the follower's fetches.

Follows: org.apache.kafka.server.replica.Replica, org.apache.kafka.server.replica.ReplicaState (KIP-903).

A follower is *caught up* at a time if it had all records of the leader at that time. The leader knows only the fetch
offsets. A fetch from the leader's log end offset shows that the follower is caught up now. A fetch from the log end
offset that the leader had at the previous fetch shows that the follower was caught up at the time of that fetch. So a
follower stays in sync under steady load, although no fetch reaches the leader's log end offset.
"""

from dataclasses import dataclass
from typing import Self

UNKNOWN_OFFSET = -1
NEVER_MS = -(2**62)


@dataclass(slots=True)
class FollowerProgress:
    """Progress of one follower. Times are monotonic. Before the first fetch from this leader, offsets are -1.

    :param end_offset: the follower's last fetch offset; the follower has all records below this offset.
    :param broker_epoch: the broker epoch in the last fetch (KIP-903), -1 if it had none; null before the first fetch.
    """

    end_offset: int = UNKNOWN_OFFSET
    log_start_offset: int = UNKNOWN_OFFSET
    last_fetch_leader_end_offset: int = UNKNOWN_OFFSET
    last_fetch_ms: int = NEVER_MS
    last_caught_up_ms: int = NEVER_MS
    broker_epoch: int | None = None

    def update_fetch_state(
        self, offset: int, log_start_offset: int, leader_end_offset: int, broker_epoch: int, now_ms: int
    ) -> None:
        """Update the progress for a fetch from `offset`, when the leader's log ends at `leader_end_offset`."""
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
        """Whether the follower is at the leader's log end, or was caught up within `replica.lag.time.max.ms`."""
        return leader_end_offset == self.end_offset or now_ms - self.last_caught_up_ms <= lag_max_ms

    @classmethod
    def at_leadership(cls, *, is_in_sync: bool, now_ms: int) -> Self:
        """Return the initial progress at a new leader. A member of the ISR has the full lag time to fetch."""
        return cls(last_caught_up_ms=now_ms if is_in_sync else NEVER_MS)

    def reset_replica_state(self, leader_end_offset: int, *, is_in_sync: bool, now_ms: int) -> None:
        """Continue in a new epoch of the same leader. A replica outside the ISR is not caught up until it fetches."""
        self.last_fetch_leader_end_offset = leader_end_offset
        self.last_fetch_ms = self.last_caught_up_ms = now_ms if is_in_sync else NEVER_MS
