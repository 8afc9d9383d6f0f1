"""Companion of a run: work in a separate thread while its history is written."""

import threading
from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self


class Accompaniment(ABC):
    """Context manager that does some work in a thread. It is entered when a run begins, and left when its history ends.

    :param caught: type of the errors of `follow` that the end of the context raises, unless another error ended it.
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
        """Work until the history has ended; runs in the thread."""
