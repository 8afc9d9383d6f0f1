"""Requests of a node to the voters, at most one in flight to each voter.

Follows: org.apache.kafka.raft.RequestManager (KIP-595).

Rules of this file:
- A request without a response times out after the request timeout. Another request may be sent to the voter at once.
  A response that arrives later is ignored.
- After any other failure, no request is sent to the voter until the retry backoff has passed.
- A transition removes all requests (`reset`). Responses to requests of the previous state are therefore ignored.
"""

from dataclasses import dataclass

from reference_broker.core.quorum.configuration import QuorumConfig
from reference_broker.core.quorum.messages import Request


@dataclass(slots=True)
class _ConnectionState:
    """A request in flight to a voter, with its timeout; or, if `request` is null, a backoff, with its end."""

    deadline_ms: int
    request_id: int | None = None
    request: Request | None = None


class RequestManager:
    """The requests in flight and the backoffs of one node, by voter."""

    def __init__(self, config: QuorumConfig) -> None:
        self._config = config
        self._by_voter: dict[int, _ConnectionState] = {}
        self._next_id = 0

    def expire(self, now_ms: int) -> tuple[int, ...]:
        """Remove the requests and backoffs whose deadline has passed. Return the voters whose request has timed out."""
        if not self._by_voter:
            return ()
        expired = [(voter_id, state) for voter_id, state in self._by_voter.items() if state.deadline_ms <= now_ms]
        for voter_id, _ in expired:
            del self._by_voter[voter_id]
        return tuple(voter_id for voter_id, state in expired if state.request_id is not None)

    def is_ready(self, voter_id: int) -> bool:
        """Whether a request may be sent to a voter: none is in flight, and no backoff is in progress."""
        return voter_id not in self._by_voter

    def is_backing_off(self, voter_id: int) -> bool:
        """Whether the last request failed less than the retry backoff ago."""
        connection = self._by_voter.get(voter_id)
        return connection is not None and connection.request_id is None

    @property
    def has_any_inflight_request(self) -> bool:
        """Whether a request to any voter is in flight."""
        return any(connection.request_id is not None for connection in self._by_voter.values())

    @property
    def inflight_requests(self) -> tuple[Request, ...]:
        """The requests in flight."""
        return tuple(connection.request for connection in self._by_voter.values() if connection.request is not None)

    @property
    def deadline_ms(self) -> int | None:
        """Monotonic time at which the next request times out or the next backoff ends; null if there is none."""
        return min([connection.deadline_ms for connection in self._by_voter.values()], default=None)

    def on_request_sent(self, voter_id: int, request: Request, now_ms: int) -> int:
        """Record a request, and return its unique id."""
        self._next_id += 1
        self._by_voter[voter_id] = _ConnectionState(now_ms + self._config.request_timeout_ms, self._next_id, request)
        return self._next_id

    def complete(self, request_id: int) -> tuple[int, Request] | None:
        """Remove a request because it has a result. Return its voter and the request; null if it is not in flight."""
        for voter_id, connection in self._by_voter.items():
            if connection.request_id == request_id and connection.request is not None:
                del self._by_voter[voter_id]
                return voter_id, connection.request
        return None

    def back_off(self, voter_id: int, now_ms: int) -> None:
        """Send nothing to a voter until the retry backoff has passed."""
        self._by_voter[voter_id] = _ConnectionState(now_ms + self._config.retry_backoff_ms)

    def reset(self) -> None:
        """Remove all requests and backoffs."""
        self._by_voter.clear()
