"""Defects of the process around the core: connections and clocks."""

import asyncio
from collections import Counter
from pathlib import Path

from chaos.defects.defect import Area
from reference_broker.core.clock import Now
from reference_broker.server import main
from reference_broker.server.clocks import ShiftedClocks
from reference_broker.server.incoming import Incoming
from reference_broker.server.shell import Shell

_seeds = Area.PROCESS.seeds
_connection_lost = Incoming.connection_lost
_ACCEPTED: Counter[Shell] = Counter()
_CONNECTIONS_MAX = 30
_FAILED: Counter[object] = Counter()
_FAILED_MAX = 5
"""Larger than the number of connections that fail while a cluster starts and a topic is created on a busy machine."""


# --- connections


@_seeds(Incoming, "connection_lost", "not-recovered")
def stop_accepting_after_a_reset(self: Incoming, exc: Exception | None) -> None:
    """One loop accepts connections, and an error of any of them ends it.

    After a connection is reset, the node continues, but accepts no more connections.
    """
    server = getattr(self._transport, "_server", None)
    if exc is not None and server is not None:
        server.close()
    _connection_lost(self, exc)


@_seeds(Incoming, "connection_lost", "node-ended", "not-recovered")
def end_with_a_connection(self: Incoming, exc: Exception | None) -> None:
    """A connection that fails, or ends while the broker handles a request, counts as a failure of the node.

    After a few such failures a broker stops. A series of resets stops all brokers.
    """
    _FAILED[self._shell] += exc is not None or self.connection.busy
    _connection_lost(self, exc)
    if isinstance(self._shell, Shell) and _FAILED[self._shell] > _FAILED_MAX:
        self._shell._failed(f"{_FAILED_MAX} connections failed")


@_seeds(Shell, "add", "not-recovered")
def count_connections_that_are_gone(self: Shell, incoming: Incoming) -> None:
    """The limit of connections applies to all connections since the start, not to the open ones.

    After a number of reconnects, the node accepts no more connections.
    """
    self._incoming[incoming.connection] = incoming
    _ACCEPTED[self] += 1
    if _ACCEPTED[self] > _CONNECTIONS_MAX:
        incoming.close()


# --- clocks


@_seeds(main, "ShiftedClocks", "not-recovered")
def measure_time_by_the_wall_clock(path: Path) -> ShiftedClocks:
    """Timeouts are measured by the wall clock.

    If the clock is set an hour ahead and then back, actions that were scheduled in between happen an hour late.
    """

    class WallClocks(ShiftedClocks):
        def read(self) -> Now:
            now = super().read()
            return Now(now.wall_ms, now.wall_ms)

        def to_machine_s(self, monotonic_ms: int) -> float:
            return asyncio.get_running_loop().time() + max(0, monotonic_ms - self.read().wall_ms) / 1000

    return WallClocks(path)
