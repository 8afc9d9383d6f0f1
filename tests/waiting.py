"""Waiting for a condition that other processes or threads make true."""

import time

PATIENCE_S = 60.0
_PERIOD_S = 0.01


def wait_until(condition):
    """Wait until the condition is true; fail the test after a minute. No condition of the tests takes that long."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(_PERIOD_S)
