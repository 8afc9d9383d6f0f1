"""Ctrl-C and SIGTERM end a command the same way: by one KeyboardInterrupt in the main thread.

What follows is the orderly way out (stop the cluster, write the results so far), and a second, impatient Ctrl-C must
not break that off halfway and leave brokers running: after the first signal, further ones are ignored.
"""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def interruptible() -> Iterator[None]:
    """Inside, the first SIGINT or SIGTERM raises KeyboardInterrupt. Main thread only."""
    before = {number: signal.signal(number, _interrupt) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _interrupt(number: int, frame: FrameType | None) -> None:
    for each in _SIGNALS:
        signal.signal(each, signal.SIG_IGN)
    raise KeyboardInterrupt
