"""When the timers of a node are due, as its heap has them."""

from reference_broker.core.timers import Timer, Timers


def due_times(timers: Timers) -> dict[Timer, int]:
    """Return the time of each timer that is neither done nor cancelled, by the node's monotonic clock."""
    return {timer: at_ms for at_ms, _, timer in timers._heap if timer.action is not None}
