"""Waiting for a condition that another process or thread fulfils."""

import time

_TIMEOUT_S = 60.0
_PERIOD_S = 0.01


def wait_until(condition):
    """Wait until the condition is true; fail the test if it is not true within a minute."""
    deadline = time.monotonic() + _TIMEOUT_S
    while not condition():
        assert time.monotonic() < deadline, f"the condition did not hold within {_TIMEOUT_S:g} s"
        time.sleep(_PERIOD_S)
