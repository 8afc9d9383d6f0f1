"""Handling of Ctrl-C and SIGTERM: either ends a command by one KeyboardInterrupt in the main thread.

After the first signal, further ones are ignored: a second Ctrl-C must not interrupt the cleanup (stopping the cluster,
writing the results so far) and leave brokers running.

A signal handler runs wherever the main thread is, possibly in a finalizer or in a callback of the garbage collector,
where Python discards exceptions. A KeyboardInterrupt that was discarded there is raised again.
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
"""Time after which a discarded KeyboardInterrupt is raised again: enough for the callback to return."""


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
