"""Requests of a node to the voters, at most one in flight to each.

Follows: org.apache.kafka.raft.RequestManager (KIP-595).

Rules of this file:
- A request times out if there is no response within the request timeout. A later response is ignored, and the next
  request may be sent to the voter at once.
- After any other failed request, no request is sent to that voter until the retry backoff has passed.
- A transition removes all requests (`reset`), so that no response to a request of an earlier state is handled.
"""

from dataclasses import dataclass

from reference_broker.core.quorum.configuration import QuorumConfig
from reference_broker.core.quorum.messages import Request


@dataclass(slots=True)
class _ConnectionState:
    """State of a voter until a deadline: a request in flight, or a backoff if there is no request."""

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
        """Make every voter ready whose deadline has passed. Return the voters whose request has timed out."""
        if not self._by_voter:
            return ()
        expired = [(voter, held) for voter, held in self._by_voter.items() if held.deadline_ms <= now_ms]
        for voter_id, _ in expired:
            del self._by_voter[voter_id]
        return tuple(voter_id for voter_id, held in expired if held.request_id is not None)

    def is_ready(self, voter_id: int) -> bool:
        """Whether a request may be sent to a voter: none is in flight, and no backoff is in progress."""
        return voter_id not in self._by_voter

    def is_backing_off(self, voter_id: int) -> bool:
        """Whether the last request failed less than the retry backoff ago."""
        connection = self._by_voter.get(voter_id)
        return connection is not None and connection.request_id is None

    @property
    def has_any_inflight_request(self) -> bool:
        """Whether any response is outstanding."""
        return any(connection.request_id is not None for connection in self._by_voter.values())

    @property
    def inflight_requests(self) -> tuple[Request, ...]:
        """The requests without a response."""
        return tuple(connection.request for connection in self._by_voter.values() if connection.request is not None)

    @property
    def deadline_ms(self) -> int | None:
        """Time of the next request timeout or end of a backoff."""
        return min([connection.deadline_ms for connection in self._by_voter.values()], default=None)

    def on_request_sent(self, voter_id: int, request: Request, now_ms: int) -> int:
        """Record a request, and return its unique id."""
        self._next_id += 1
        self._by_voter[voter_id] = _ConnectionState(now_ms + self._config.request_timeout_ms, self._next_id, request)
        return self._next_id

    def complete(self, request_id: int) -> tuple[int, Request] | None:
        """Return the voter and request of an id, and make the voter ready; null if the request is not in flight."""
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
