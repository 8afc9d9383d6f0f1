"""State of followers on their leader, compared with a replay of their fetches (`Replica.updateFetchStateOrThrow`).

| name                | what must hold                                                                                |
|---------------------|-----------------------------------------------------------------------------------------------|
| `follower-progress` | a leader records correctly when a follower was last caught up; the ISR depends on this time.  |
|                     | A fetch from the log end sets it to the time of the fetch. A fetch from below the log end,    |
|                     | but not below the log end at the previous fetch, sets it to the time of the previous fetch.   |
|                     | Any other fetch leaves it unchanged. The recorded end offset of a follower is not above the   |
|                     | leader's log end: the fetch offset of a diverging log is not recorded (KIP-595)               |

The first fetch in a leader epoch is not checked, because the initial state depends on the ISR. `watermark-on-isr`
depends on the recorded end offset, and therefore checks it.
"""

from dataclasses import dataclass
from uuid import UUID

from reference_broker.core.replication.follower_progress import FollowerProgress
from reference_broker.core.tracer import FollowerFetchRecorded
from reference_broker.simulation.invariants.violation import InvariantViolation
from reference_broker.simulation.invariants.watch import Watched, led_partition


@dataclass(frozen=True, slots=True)
class _Fetch:
    """The last fetch of a follower, the log end at that time, and when the follower was last caught up.

    All times are those of the leader's monotonic clock.
    """

    follower: FollowerProgress
    leader_epoch: int
    monotonic_ms: int
    leader_end_offset: int
    caught_up_ms: int


class FollowerProgressInvariants:
    """Replay of the fetches that leaders record."""

    def __init__(self) -> None:
        self._last: dict[tuple[int, UUID, int, int], _Fetch] = {}
        """The last fetch by leader, topic id, partition and follower."""

    def on_fetch(self, watched: Watched, event: FollowerFetchRecorded) -> None:
        """Replay a fetch, and compare the result with the leader's state."""
        partition = led_partition(watched, event)
        if partition is None:
            return
        follower, end_offset = partition.followers[event.follower_id], partition.log.log_end_offset
        if follower.end_offset > end_offset:
            recorded = f"the end {follower.end_offset} of follower {event.follower_id}, above {end_offset}"
            raise _violated(watched, event, f"records {recorded}")
        key = watched.node_id, event.topic_id, event.partition, event.follower_id
        last, caught_up_ms = self._last.get(key), follower.last_caught_up_ms
        if last is not None and last.follower is follower and last.leader_epoch == partition.leader_epoch:
            caught_up_ms = last.caught_up_ms
            if follower.end_offset >= end_offset:
                caught_up_ms = event.monotonic_ms
            elif follower.end_offset >= last.leader_end_offset:
                caught_up_ms = max(caught_up_ms, last.monotonic_ms)
        if follower.last_caught_up_ms != caught_up_ms:
            recorded = f"{event.follower_id} as last caught up at {follower.last_caught_up_ms}"
            raise _violated(watched, event, f"records follower {recorded}, not at {caught_up_ms}")
        self._last[key] = _Fetch(follower, partition.leader_epoch, event.monotonic_ms, end_offset, caught_up_ms)


def _violated(watched: Watched, event: FollowerFetchRecorded, detail: str) -> InvariantViolation:
    place = f"{event.topic}-{event.partition} on node {watched.node_id}"
    return InvariantViolation("follower-progress", f"{place} {detail}")
