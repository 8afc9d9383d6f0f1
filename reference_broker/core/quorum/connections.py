"""What was asked of whom and is not answered: at most one request per voter is under way (Kafka's `RequestManager`).

Rules of this file:
- A request that is not answered within the request timeout is given up: its answer, should it come, is not known here.
- After a failure the voter is left alone for the retry backoff.
- With a change of state all is forgotten (`reset`), so that no answer to an older state's question is ever heard.
"""

from dataclasses import dataclass

from reference_broker.core.quorum.configuration import QuorumConfig
from reference_broker.core.quorum.messages import Request


@dataclass(slots=True)
class _Connection:
    """Waits until the deadline: for an answer, or, without a request, for the backoff to end."""

    deadline_ms: int
    request_id: int | None = None
    request: Request | None = None


class Connections:
    """The connections of one node to the voters."""

    def __init__(self, config: QuorumConfig) -> None:
        self._config = config
        self._by_voter: dict[int, _Connection] = {}
        self._next_id = 0

    def expire(self, now_ms: int) -> tuple[int, ...]:
        """Make voters ready again whose time is over; those of them that did not answer."""
        if not self._by_voter:
            return ()
        expired = [(voter, held) for voter, held in self._by_voter.items() if held.deadline_ms <= now_ms]
        for voter_id, _ in expired:
            del self._by_voter[voter_id]
        return tuple(voter_id for voter_id, held in expired if held.request_id is not None)

    def is_ready(self, voter_id: int) -> bool:
        """Whether a request may be sent."""
        return voter_id not in self._by_voter

    def is_backing_off(self, voter_id: int) -> bool:
        """Whether the last request failed a moment ago."""
        connection = self._by_voter.get(voter_id)
        return connection is not None and connection.request_id is None

    @property
    def is_any_in_flight(self) -> bool:
        """Whether any answer is waited for."""
        return any(connection.request_id is not None for connection in self._by_voter.values())

    @property
    def in_flight(self) -> tuple[Request, ...]:
        """The requests without a response."""
        return tuple(connection.request for connection in self._by_voter.values() if connection.request is not None)

    @property
    def deadline_ms(self) -> int | None:
        """When the next voter becomes ready without having answered."""
        return min([connection.deadline_ms for connection in self._by_voter.values()], default=None)

    def begin(self, voter_id: int, request: Request, now_ms: int) -> int:
        """Note a request; the id of it."""
        self._next_id += 1
        self._by_voter[voter_id] = _Connection(now_ms + self._config.request_timeout_ms, self._next_id, request)
        return self._next_id

    def end(self, request_id: int) -> tuple[int, Request] | None:
        """Voter and request that an answer belongs to; null for one that nobody waits for any more."""
        for voter_id, connection in self._by_voter.items():
            if connection.request_id == request_id and connection.request is not None:
                del self._by_voter[voter_id]
                return voter_id, connection.request
        return None

    def back_off(self, voter_id: int, now_ms: int) -> None:
        """Leave a voter alone for a while."""
        self._by_voter[voter_id] = _Connection(now_ms + self._config.retry_backoff_ms)

    def reset(self) -> None:
        """Forget everything; ids are never used twice."""
        self._by_voter.clear()
