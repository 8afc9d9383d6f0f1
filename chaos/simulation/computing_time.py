"""Limit of the processor time of a simulated trial. Without it, an endless event would hang the process."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class EndlessTrialError(BaseException):
    """A trial exceeded its processor time. Not an `Exception`, so that it is not handled as an error of the broker."""


@contextmanager
def bounded(seconds: float) -> Iterator[None]:
    """Inside the context, raise `EndlessTrialError` after this processor time of the process. Main thread only."""

    def end(number: int, frame: FrameType | None) -> None:
        raise EndlessTrialError(f"the trial has not ended after {seconds:.0f} s of processor time")

    before = signal.signal(signal.SIGPROF, end)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
