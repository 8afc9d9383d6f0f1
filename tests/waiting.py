"""Wait for a condition that other processes or threads make true."""

import time

TIMEOUT_S = 60.0
_PERIOD_S = 0.01


def wait_until(condition):
    """Wait until the condition is true; fail the test after a minute. No condition of the tests takes that long."""
    deadline = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < deadline, f"the condition did not hold within {TIMEOUT_S:g} s"
        time.sleep(_PERIOD_S)
