"""Administrator's requests to a live cluster, concurrent with its faults."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from conformance.concurrent.trial_context import TrialContext
from fixtures.clients.administration import Election
from fixtures.clients.call_results import CallResult
from fixtures.clients.outcomes import NETWORK_EXCEPTION, REQUEST_TIMED_OUT
from fixtures.clients.recorded_admin import RecordedAdminClient
from fixtures.clients.stage import Event, Task
from fixtures.targets.controls import MembershipControl
from fixtures.targets.target import TargetError

Request = Callable[[RecordedAdminClient], CallResult]
_RESPONSE_TIMEOUT_S: Final = 3.0
_ELECTION_TIMEOUT_MS: Final = 3_000
_RETRY_BACKOFF_S: Final = 0.3
_ATTEMPTS_MAX: Final = 60
"""Attempts of a request that must succeed: at least half a minute of backoffs."""
_NOT_RECEIVED: Final = frozenset({NETWORK_EXCEPTION, REQUEST_TIMED_OUT, "NOT_CONTROLLER", "UNSUPPORTED_API"})


class LiveAdministration:
    """`Administration` of a live cluster: each request is sent by a new task, to any node that responds.

    :param cancelled: once it is set, optional requests are not sent.
    """

    records_unclean_elections: Final = False

    def __init__(self, target: MembershipControl, context: TrialContext, cancelled: Event) -> None:
        self._target = target
        self._context = context
        self._cancelled = cancelled
        self._founders = len(context.target.nodes)
        self._tasks: list[Task] = []

    def alter_topic(self, name: str, value: str) -> None:
        """Set a property of the topic."""
        self._send(lambda client: client.alter_topic(self._context.topic, name, value))

    def reset_topic(self, name: str) -> None:
        """Delete a property of the topic; retry a limited number of times until that succeeds."""
        self._start(lambda: self._retry(lambda client: client.alter_topic(self._context.topic, name, None)))

    def elect(self, *, unclean: bool) -> None:
        """Send ElectLeaders for the first partition."""
        topic, election = self._context.topic, Election.UNCLEAN if unclean else Election.PREFERRED
        self._send(lambda client: client.elect_leaders(topic, 0, election, timeout_ms=_ELECTION_TIMEOUT_MS))

    def reassign(self, replicas: Sequence[int]) -> None:
        """Reassign the first partition."""
        self._send(lambda client: client.reassign(self._context.topic, 0, replicas))

    def unregister(self, node: int) -> Callable[[], object]:
        """Send UnregisterBroker; return a function that waits for the response, or until the request is given up."""
        return self._send(lambda client: client.unregister_broker(node)).result

    def next_broker(self, wanted: int) -> int | None:
        """Return the id of the next new broker; None if one was added, because one is enough and a start takes long."""
        nodes = [node.id for node in self._context.target.nodes]
        return None if len(nodes) > self._founders else max(nodes) + 1

    def add_broker(self, node: int) -> None:
        """Start a broker; this may fail, because a broker cannot join a cluster without a controller."""

        def add() -> None:
            with suppress(TargetError):
                self._target.add_broker()

        self._start(add)

    def finish(self) -> None:
        """Wait for running requests."""
        for task in self._tasks:
            task.result()
        self._tasks.clear()

    def _start(self, action: Callable[[], None]) -> Task:
        self._tasks.append(self._context.target.stage.start(action))
        return self._tasks[-1]

    def _send(self, request: Request) -> Task:
        """Start a task that sends a request once to each node in turn until one responds."""
        return self._start(lambda: self._send_to_any(request))

    def _send_to_any(self, request: Request) -> None:
        for node in self._context.target.nodes:
            if self._cancelled.is_set() or self._error_of(node.id, request) not in _NOT_RECEIVED:
                return

    def _retry(self, request: Request) -> None:
        for _ in range(_ATTEMPTS_MAX):
            for node in self._context.target.nodes:
                if self._error_of(node.id, request) is None:
                    return
            self._context.target.transport.sleep(_RETRY_BACKOFF_S)

    def _error_of(self, node: int, request: Request) -> str | None:
        client = self._context.raw_client(node, timeout_s=_RESPONSE_TIMEOUT_S)
        try:
            return request(client).error
        finally:
            client.client.close()
