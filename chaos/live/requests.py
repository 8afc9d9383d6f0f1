"""An administrator's requests to a cluster in trouble, beside whatever else is done to it."""

from collections.abc import Callable
from contextlib import suppress
from typing import Final

from conformance.concurrent.surroundings import Surroundings
from fixtures.clients.answers import Answer
from fixtures.clients.outcomes import NETWORK_EXCEPTION, REQUEST_TIMED_OUT
from fixtures.clients.recorded_admin import RecordedAdminClient
from fixtures.clients.stage import Event, Task
from fixtures.targets.target import TargetError

Ask = Callable[[RecordedAdminClient], Answer]
_ANSWER_TIMEOUT_S: Final = 3.0
_AGAIN_S: Final = 0.3
_ATTEMPTS_MAX: Final = 60
"""Of a request that has to be heard: half a minute at least, beside what each takes."""
_UNHEARD: Final = frozenset({NETWORK_EXCEPTION, REQUEST_TIMED_OUT, "NOT_CONTROLLER", "UNSUPPORTED_API"})


class Administration:
    """Asks whichever node answers, each request from a task of its own.

    :param cancelled: nothing is asked any more that can be left out.
    """

    def __init__(self, surroundings: Surroundings, cancelled: Event) -> None:
        self._surroundings = surroundings
        self._cancelled = cancelled
        self._tasks: list[Task] = []

    def ask(self, request: Ask) -> Task:
        """Ask one node after the other until somebody answers, each once. What is returned is done then."""
        self._tasks.append(self._surroundings.target.stage.start(lambda: self._ask_everyone(request)))
        return self._tasks[-1]

    def beside(self, action: Callable[[], object]) -> None:
        """Do something that takes its time, and may not succeed: a broker does not join a cluster that is broken."""
        self._tasks.append(self._surroundings.target.stage.start(lambda: _done(action)))

    def insist(self, request: Ask) -> None:
        """Ask until it is granted, whatever happens meanwhile; what cannot be taken back is not waited for for ever."""
        self._tasks.append(self._surroundings.target.stage.start(lambda: self._insist(request)))

    def finish(self) -> None:
        """Wait for what is under way."""
        for task in self._tasks:
            task.result()
        self._tasks.clear()

    def _ask_everyone(self, request: Ask) -> None:
        for node in self._surroundings.target.nodes:
            if self._cancelled.is_set() or self._ask(node.id, request) not in _UNHEARD:
                return

    def _insist(self, request: Ask) -> None:
        for _ in range(_ATTEMPTS_MAX):
            for node in self._surroundings.target.nodes:
                if self._ask(node.id, request) is None:
                    return
            self._surroundings.target.transport.sleep(_AGAIN_S)

    def _ask(self, node: int, request: Ask) -> str | None:
        client = self._surroundings.raw_client(node, timeout_s=_ANSWER_TIMEOUT_S)
        try:
            return request(client).error
        finally:
            client.client.close()


def _done(action: Callable[[], object]) -> None:
    with suppress(TargetError):
        action()
