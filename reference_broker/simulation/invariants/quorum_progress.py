"""State of replicas on the leader of the quorum, compared with a replay of their fetches (`LeaderState.ReplicaState`).

| name              | what must hold                                                                                  |
|-------------------|-------------------------------------------------------------------------------------------------|
| `quorum-progress` | the leader's state of a voter or observer follows from its fetches in this epoch: end offset,   |
|                   | time of the last fetch, and caught-up time. A fetch from the log end sets the caught-up time to |
|                   | the time of the fetch. A fetch from below the log end, but not below the log end at the         |
|                   | previous fetch, sets it to the time of the previous fetch                                       |

If an observer has not fetched for the session timeout, the leader may have removed its state and created a new one. The
caught-up time of the new state is then accepted.
"""

from dataclasses import dataclass, field

from reference_broker.core.quorum.leader_state import ReplicaState
from reference_broker.core.quorum.quorum_state import Leader
from reference_broker.core.quorum.voters import ReplicaKey
from reference_broker.core.tracer import QuorumFetchRecorded
from reference_broker.simulation.invariants.violation import InvariantViolation
from reference_broker.simulation.invariants.watch import Watched

_NEVER = -1


@dataclass(slots=True)
class _Fetches:
    """The last fetch of a replica, the log end at that time, and when the replica was last caught up.

    All times are those of the leader's clocks.
    """

    monotonic_ms: int = _NEVER
    wall_ms: int = _NEVER
    leader_end_offset: int = 0
    caught_up_wall_ms: int = _NEVER


@dataclass(slots=True)
class _Leadership:
    """The fetches that a leader has received in one epoch."""

    epoch: int
    fetches: dict[ReplicaKey, _Fetches] = field(default_factory=dict)


class QuorumProgress:
    """Replay of the fetches that leaders record."""

    def __init__(self) -> None:
        self._leaderships: dict[int, _Leadership] = {}

    def reset(self, node_id: int) -> None:
        """Drop the recorded leadership of a node that has started."""
        self._leaderships.pop(node_id, None)

    def on_fetch(self, watched: Watched, event: QuorumFetchRecorded) -> None:
        """Replay a fetch, and compare the result with the leader's state."""
        state = watched.quorum.state
        if not isinstance(state, Leader):
            return
        replica, now = event.replica, event.now
        found = _described(watched, state, replica)
        if found is None:
            return
        leadership = self._leaderships.get(watched.node_id)
        if leadership is None or leadership.epoch != state.epoch:
            leadership = self._leaderships[watched.node_id] = _Leadership(state.epoch)
        known = leadership.fetches.setdefault(replica, _Fetches())
        elapsed_ms = now.monotonic_ms - known.monotonic_ms
        if known.wall_ms != _NEVER and elapsed_ms >= watched.quorum.config.observer_session_timeout_ms:
            known.caught_up_wall_ms = found.last_caught_up_wall_ms
        end_offset, caught_up_ms = watched.quorum.log.end_offset, known.caught_up_wall_ms
        if event.fetch_offset >= end_offset:
            caught_up_ms = max(caught_up_ms, now.wall_ms)
        elif event.fetch_offset >= known.leader_end_offset > 0:
            caught_up_ms = max(caught_up_ms, known.wall_ms)
        known.monotonic_ms, known.wall_ms = now.monotonic_ms, now.wall_ms
        known.leader_end_offset, known.caught_up_wall_ms = end_offset, caught_up_ms
        expected = event.fetch_offset, known.wall_ms, known.caught_up_wall_ms
        last_fetch_ms = _NEVER if found.last_fetch is None else found.last_fetch.wall_ms
        actual = found.end_offset, last_fetch_ms, found.last_caught_up_wall_ms
        if actual != expected:
            detail = f"end offset, last fetch time and caught-up time of {replica} are {actual}, not {expected}"
            raise InvariantViolation("quorum-progress", f"node {watched.node_id} in epoch {state.epoch}: {detail}")


def _described(watched: Watched, state: Leader, replica: ReplicaKey) -> ReplicaState | None:
    """Return the leader's state of a replica; None for a reader without an id.

    :raises InvariantViolation: the leader has no state of an observer.
    """
    if watched.quorum.voters.contains(replica):
        return state.voter_states[replica.id]
    if replica.id < 0:
        return None
    if replica not in state.observer_states:
        raise InvariantViolation("quorum-progress", f"node {watched.node_id} has no state of observer {replica}")
    return state.observer_states[replica]
