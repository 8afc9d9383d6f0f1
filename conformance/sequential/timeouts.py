"""Timeouts of the execution of scripts."""

from typing import Final

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
"""Time for which the connection of a `BrokenRequest` stays open, unless the broker closes it earlier."""
RETRY_DELAY_S: Final = 0.02
