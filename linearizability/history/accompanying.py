"""What goes beside a run while its history is written, in a thread of its own."""

import threading
from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self


class Accompaniment(ABC):
    """A context manager: entered when the run begins, left when its history has ended.

    :param caught: what is raised again where the context is left, unless that is left by another error.
    :ivar ended: set when the history has ended.
    """

    def __init__(self, name: str, caught: type[Exception] = Exception) -> None:
        self.ended = threading.Event()
        self._caught = caught
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.ended.set()
        self._thread.join()
        if kind is None and self._error is not None:
            raise self._error

    def _run(self) -> None:
        try:
            self.follow()
        except self._caught as error:
            self._error = error

    @abstractmethod
    def follow(self) -> None:
        """Go along until the history has ended, in the thread."""
