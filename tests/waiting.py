"""Waiting for what other processes and threads do."""

import time

PATIENCE_S = 60.0
_PERIOD_S = 0.01


def wait_until(condition):
    """Until it holds; fails the test where it does not in a minute, which is more than anything here takes."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(_PERIOD_S)
