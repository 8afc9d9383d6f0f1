"""Ctrl-C and SIGTERM raise one KeyboardInterrupt, even in code where Python discards exceptions, such as finalizers."""

import gc
import signal
import sys
import time

import pytest

from chaos.campaign.interruption import interruptible

NUMBERS = [signal.SIGINT, signal.SIGTERM]
TIMEOUT_S = 60


class Finalized:
    """An object whose finalizer raises a signal."""

    def __init__(self, number):
        self._number = number

    def __del__(self):
        signal.raise_signal(self._number)


def wait_after(action):
    with interruptible():
        action()
        time.sleep(TIMEOUT_S)


@pytest.mark.parametrize("number", NUMBERS)
def test_only_the_first_signal_interrupts(number):
    with interruptible():
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(number)
        for ignored in NUMBERS:
            signal.raise_signal(ignored)


@pytest.mark.parametrize("number", NUMBERS)
def test_a_signal_during_a_finalizer_interrupts(number):
    """Regression: `kafkatrial chaos` continued after SIGTERM, and its verdict was ok, with exit code 0."""
    with pytest.raises(KeyboardInterrupt):
        wait_after(lambda: Finalized(number))


@pytest.mark.parametrize("number", NUMBERS)
def test_a_signal_during_a_callback_of_the_garbage_collector_interrupts(number):
    pending = [number]

    def callback(phase, info):
        if pending:
            signal.raise_signal(pending.pop())

    gc.callbacks.append(callback)
    try:
        with pytest.raises(KeyboardInterrupt):
            wait_after(gc.collect)
    finally:
        gc.callbacks.remove(callback)


def test_the_context_restores_the_signal_handlers_and_the_hook():
    before = [signal.getsignal(number) for number in NUMBERS], sys.unraisablehook
    with interruptible():
        pass
    assert ([signal.getsignal(number) for number in NUMBERS], sys.unraisablehook) == before
