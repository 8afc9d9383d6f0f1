"""The end of a member's session, compared with its session timeout (`ClassicGroup`, `GroupMetadataManager`).

A member stays in its group as long as it sends heartbeats. Without them, the coordinator removes it after the session
timeout: not earlier, and not much later.
"""

from collections.abc import Callable
from typing import Final

from conformance.sequential import timeouts
from conformance.sequential.real_values import Comparison
from conformance.sequential.response import Response
from conformance.sequential.steps import AwaitSessionTimeout, DescribeGroup, Heartbeat, Step
from fixtures.clients.transport import Transport

_KEPT_FOR: Final = 1.5
"""How long the member sends heartbeats, as a multiple of its session timeout."""
_HEARTBEATS: Final = 6
"""Number of heartbeats in a session timeout."""
_GAP_MAX: Final = 0.5
"""The longest time between two heartbeats that is judged, as a part of the session timeout."""
_EARLY: Final = 0.9
"""A member that is removed before this part of its session timeout is removed early."""


def await_end(
    step: AwaitSessionTimeout, timeout_s: float, send: Callable[[Step], Response], transport: Transport
) -> Response:
    """Send heartbeats, then wait until the member is removed.

    If this process was delayed so that the session may have ended between two heartbeats, the response is empty: then
    nothing is judged.

    :param timeout_s: session timeout of the member.
    """
    heartbeat = Heartbeat(step.member, step.generation, step.group)
    began_s = last_s = transport.monotonic()
    errors, longest_gap_s = set(), 0.0
    while last_s < began_s + _KEPT_FOR * timeout_s:
        transport.sleep(timeout_s / _HEARTBEATS)
        sent_s = transport.monotonic()
        longest_gap_s, last_s = max(longest_gap_s, sent_s - last_s), sent_s
        errors.add(send(heartbeat).get("error"))
    removed = _removal(step, timeout_s, last_s, send, transport)
    if longest_gap_s > _GAP_MAX * timeout_s:
        return {}
    return {"heartbeats": tuple(sorted(errors, key=str)), "removed": removed}


def _removal(
    step: AwaitSessionTimeout,
    timeout_s: float,
    last_s: float,
    send: Callable[[Step], Response],
    transport: Transport,
) -> Comparison:
    """Describe the group until it has no member, and compare the time since the last heartbeat with the timeout."""
    while send(DescribeGroup(step.group)).get("members"):
        if transport.monotonic() > last_s + timeout_s + timeouts.EFFECT_TIMEOUT_S:
            return Comparison("late", f"a member after {transport.monotonic() - last_s:.1f} s without a heartbeat")
        transport.sleep(timeouts.RETRY_DELAY_S)
    waited_s = transport.monotonic() - last_s
    if waited_s < _EARLY * timeout_s:
        return Comparison("early", f"{waited_s:.1f} s after a heartbeat, with a session timeout of {timeout_s:.1f} s")
    return Comparison("after the session timeout")
