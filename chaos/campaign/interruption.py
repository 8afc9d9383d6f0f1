"""Handling of Ctrl-C and SIGTERM: each raises one KeyboardInterrupt in the main thread, which ends the command.

Signals after the first one are ignored. A second Ctrl-C would otherwise interrupt the cleanup, which stops the cluster
and writes the results so far, and would leave brokers running.

A signal handler runs wherever the main thread is, possibly in a finalizer or in a callback of the garbage collector.
Python discards exceptions in both. A KeyboardInterrupt that was discarded in this way is raised again.
"""

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_REPEAT_S = 0.05
"""Time after which a discarded KeyboardInterrupt is raised again, so that the callback can return first."""


@contextmanager
def interruptible() -> Iterator[None]:
    """Raise KeyboardInterrupt at the first SIGINT or SIGTERM inside the context. Main thread only."""
    before = {number: signal.signal(number, _interrupt) for number in _SIGNALS}
    hook, repeats = sys.unraisablehook, list[threading.Timer]()

    def repeat_if_discarded(unraisable: "UnraisableHookArgs") -> None:
        if not isinstance(unraisable.exc_value, KeyboardInterrupt):
            hook(unraisable)
            return
        for number in _SIGNALS:
            signal.signal(number, _interrupt)
        main_thread = threading.main_thread().ident
        assert main_thread is not None
        repeats.append(threading.Timer(_REPEAT_S, signal.pthread_kill, (main_thread, signal.SIGINT)))
        repeats[-1].start()

    sys.unraisablehook = repeat_if_discarded
    try:
        yield
    finally:
        for repeat in repeats:
            repeat.cancel()
        sys.unraisablehook = hook
        for number, handler in before.items():
            signal.signal(number, handler)


def _interrupt(number: int, frame: FrameType | None) -> None:
    for each in _SIGNALS:
        signal.signal(each, signal.SIG_IGN)
    raise KeyboardInterrupt
