"""Handling of Ctrl-C and SIGTERM: either ends a command by one KeyboardInterrupt in the main thread.

After the first signal, further ones are ignored: a second Ctrl-C must not interrupt the cleanup (stopping the cluster,
writing the results so far) and leave brokers running.
"""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def interruptible() -> Iterator[None]:
    """Raise KeyboardInterrupt at the first SIGINT or SIGTERM inside the context. Main thread only."""
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
