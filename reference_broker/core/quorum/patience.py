"""How long a node waits for the others before it does something of itself.

| waits for                     | how long                                                                           |
|-------------------------------|------------------------------------------------------------------------------------|
| an election, or a leader      | the election timeout, and by chance up to as much again, so that no two voters ask |
|                               | at once; an observer, which cannot be elected, for ever                            |
| the first leader of a cluster | by chance up to `first_election_max_ms`, where that is set                         |
| an answer of its leader       | the fetch timeout                                                                  |
"""

from collections.abc import Callable

from reference_broker.core.clock import Now
from reference_broker.core.quorum.configuration import QuorumConfig
from reference_broker.core.quorum.states import NEVER_MS, Follower, Leader, Prospective, State


class Patience:
    """That of one node. Deadlines are by the monotonic clock.

    :param random_below: a random number below its argument.
    """

    def __init__(self, config: QuorumConfig, random_below: Callable[[int], int], *, is_voter: bool) -> None:
        self._config = config
        self._random_below = random_below
        self._is_voter = is_voter

    def election_deadline_ms(self, now: Now) -> int:
        """For a wait that begins now."""
        timeout_ms = self._config.election_timeout_ms
        return now.monotonic_ms + timeout_ms + self._random_below(timeout_ms) if self._is_voter else NEVER_MS

    def remaining_election_deadline_ms(self, state: State, now: Now) -> int:
        """For a state that follows another: a newer epoch gives no new patience to one that is waiting already."""
        match state:
            case Prospective() if state.ballot.is_lost:
                return self.election_deadline_ms(now)
            case Leader() | Follower():
                return self.election_deadline_ms(now)
        return state.election_deadline_ms

    def first_election_deadline_ms(self, now: Now) -> int:
        """For a node without any history."""
        first_max_ms = self._config.first_election_max_ms
        if first_max_ms is None or not self._is_voter:
            return self.election_deadline_ms(now)
        return now.monotonic_ms + self._random_below(first_max_ms)

    def fetch_deadline_ms(self, now: Now) -> int:
        """For a leader that has answered now, or was found now."""
        return now.monotonic_ms + self._config.fetch_timeout_ms
