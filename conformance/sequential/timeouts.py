"""Timeouts of the execution of scripts, and the wait for a condition by the clock of a transport."""

from collections.abc import Callable
from typing import Final, TypeVar

from fixtures.clients.transport import Transport

READY_TIMEOUT_S: Final = 15.0
"""Timeout for a topic to have a leader, a group to have a coordinator, a broker to accept connections again."""
EFFECT_TIMEOUT_S: Final = 10.0
"""Timeout for an effect that a script awaits. After the first timeout in a script, each later effect is read once."""
FIRST_CHECK_MS: Final = 30_000
"""The time from the start of a broker to its first check of the logs in Kafka before 3.8, where it is not a setting."""
CLOSE_TIMEOUT_S: Final = 2.0
"""Timeout for a broker to close a connection after malformed bytes."""
CRASH_S: Final = 0.2
"""Time from the close of a connection to the end of a process that crashes: it may still print a stack trace."""
BROKEN_TIMEOUT_S: Final = 0.02
"""Time to wait for the end of the connection after a broken request."""
RETRY_DELAY_S: Final = 0.02
_Condition = TypeVar("_Condition")


def wait_until_ready(transport: Transport, condition: Callable[[], _Condition]) -> _Condition:
    """Wait until the condition returns a true value, and return it; on timeout, return the last (false) value."""
    deadline = transport.monotonic() + READY_TIMEOUT_S
    while not (found := condition()) and transport.monotonic() <= deadline:
        transport.sleep(RETRY_DELAY_S)
    return found
