"""Admin requests to a live cluster, concurrent with its faults."""

from collections.abc import Callable
from contextlib import suppress
from typing import Final

from conformance.concurrent.trial_context import TrialContext
from fixtures.clients.administration import AdminRequest
from fixtures.clients.messages import ApiKey
from fixtures.clients.outcomes import NETWORK_EXCEPTION, NOT_CONTROLLER, REQUEST_TIMED_OUT, UNSUPPORTED_VERSION
from fixtures.clients.stage import Event, Task
from fixtures.faults.context import Administration
from fixtures.targets.controls import MembershipControl
from fixtures.targets.target import TargetError

_RESPONSE_TIMEOUT_S: Final = 3.0
_RETRY_BACKOFF_S: Final = 0.3
_ATTEMPTS_MAX: Final = 60
"""Maximum number of attempts of a request that must succeed; each attempt sends it to one node after the other."""
_NOT_RECEIVED: Final = frozenset({NETWORK_EXCEPTION, REQUEST_TIMED_OUT, NOT_CONTROLLER, UNSUPPORTED_VERSION})


class LiveAdministration(Administration):
    """`Administration` of a live cluster: each request is sent by a new task, to any node that responds.

    :param cancelled: once it is set, optional requests are not sent.
    """

    records_unclean_elections = False
    timeout_ms = 3_000

    def __init__(self, target: MembershipControl, context: TrialContext, cancelled: Event) -> None:
        super().__init__(context.topic)
        self._target = target
        self._context = context
        self._cancelled = cancelled
        self._initial_nodes = len(context.target.nodes)
        self._tasks: list[Task] = []

    def send(self, request: AdminRequest, *, must_succeed: bool = False) -> Callable[[], object]:
        """Send a request in a new task, and return a function that waits for the end of the task.

        The request is sent to one node after the other, until one has processed it. If it must succeed, it is retried
        until it does, at most `_ATTEMPTS_MAX` times.
        """
        return self._start(lambda: self._retry(request) if must_succeed else self._send_to_any(request)).result

    def next_broker(self, wanted: int) -> int | None:
        """Return the id for a new broker; None if one was added already, since one is enough and starts are slow."""
        nodes = [node.id for node in self._context.target.nodes]
        return None if len(nodes) > self._initial_nodes else max(nodes) + 1

    def add_broker(self, node: int) -> None:
        """Start a broker. A failure is ignored, because a broker cannot join a cluster without a controller."""

        def add() -> None:
            with suppress(TargetError):
                self._target.add_broker()

        self._start(add)

    def finish(self) -> None:
        """Wait until all requests and starts of brokers are over."""
        for task in self._tasks:
            task.result()
        self._tasks.clear()

    def _start(self, action: Callable[[], None]) -> Task:
        self._tasks.append(self._context.target.stage.start(action))
        return self._tasks[-1]

    def _send_to_any(self, request: AdminRequest) -> None:
        for node in self._context.target.nodes:
            if self._cancelled.is_set() or self._error_of(node.id, request) not in _NOT_RECEIVED:
                return

    def _retry(self, request: AdminRequest) -> None:
        for _ in range(_ATTEMPTS_MAX):
            for node in self._context.target.nodes:
                if self._error_of(node.id, request) is None:
                    return
            self._context.target.transport.sleep(_RETRY_BACKOFF_S)

    def _error_of(self, node: int, request: AdminRequest) -> str | None:
        is_election = request.api_key == ApiKey.ELECT_LEADERS
        with self._context.raw_client(node, timeout_s=_RESPONSE_TIMEOUT_S) as client:
            return client.administer(request, timeout_ms=self.timeout_ms if is_election else 0).error
