"""What must hold for a Fetch that finds nothing: it waits (`max_wait_ms`, for replicas, consumers and voters alike).

| name           | what must hold                                                                                      |
|----------------|-----------------------------------------------------------------------------------------------------|
| `answer-waits` | a node does not tell one connection again and again, sooner than it asks for, that nothing is new   |

Voters wait whatever `min_bytes` is. Once may be, as when somebody lost interest in an earlier request; what is refused,
parted, or has a new high watermark of the quorum is no answer of nothing.
"""

from typing import Any, Final

from reference_broker.core.connection import Connection
from reference_broker.core.request import Request
from reference_broker.protocol.errors import ErrorCode
from reference_broker.simulation.invariants.violation import InvariantViolation
from reference_broker.simulation.invariants.watch import Watched

_FETCH: Final = 1
_TIMES: Final = 4


class WaitingInvariants:
    """Is told of answers."""

    def __init__(self) -> None:
        self._empty: dict[tuple[int, Connection], list[int]] = {}
        """When a node last answered nothing to a connection, by its monotonic clock."""

    def answered(self, watched: Watched, request: Request, response: Any) -> None:
        """See the table."""
        if request.api_key != _FETCH:
            return
        key, max_wait_ms = (watched.node_id, request.connection), request.body.max_wait.total_seconds() * 1_000
        waits = max_wait_ms > 0 and (request.body.min_bytes > 0 or request.connection.is_controller)
        if not waits or _has_news(request.body, response):
            self._empty.pop(key, None)
            return
        times = self._empty.setdefault(key, [])
        times.append(watched.machine.now.monotonic_ms)
        del times[:-_TIMES]
        if len(times) == _TIMES and times[-1] - times[0] < max_wait_ms:
            detail = f"node {watched.node_id} answers nothing at {times} ms, and is asked to wait {max_wait_ms:.0f} ms"
            raise InvariantViolation("answer-waits", detail)


def _has_news(asked: Any, response: Any) -> bool:
    if getattr(response, "error_code", ErrorCode.none) is not ErrorCode.none:
        return True
    known = [getattr(part, "high_watermark", None) for topic in asked.topics for part in topic.partitions]
    found = [part for topic in response.responses for part in topic.partitions]
    return not found or any(
        part.records or part.error_code is not ErrorCode.none or _parts(part) or _is_newer(part, before)
        for part, before in zip(found, known, strict=False)
    )


def _parts(part: Any) -> bool:
    diverging, snapshot = getattr(part, "diverging_epoch", None), getattr(part, "snapshot_id", None)
    return (diverging is not None and diverging.epoch >= 0) or (snapshot is not None and snapshot.epoch >= 0)


def _is_newer(part: Any, known: int | None) -> bool:
    return known is not None and part.high_watermark > known
