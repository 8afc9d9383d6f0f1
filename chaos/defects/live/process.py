"""Defects of the process around the core: connections, clocks, signals, and what an error ends."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from chaos.defects.defect import Area
from reference_broker.core.clock import Now
from reference_broker.server import main
from reference_broker.server.clocks import WrongClocks
from reference_broker.server.incoming import Incoming
from reference_broker.server.shell import Shell

_seeds = Area.PROCESS.seeds
_connection_lost = Incoming.connection_lost
_guarded = Shell._guarded
_ACCEPTED: Counter[Shell] = Counter()
_CONNECTIONS_MAX = 60


# --- connections


@_seeds(Incoming, "connection_lost", "not-recovered")
def stop_accepting_after_a_reset(self: Incoming, exc: Exception | None) -> None:
    """One loop accepts connections, and an error of any of them ends it.

    A connection that is reset leaves a node that works on, and that nobody can connect to any more.
    """
    server = getattr(self._transport, "_server", None)
    if exc is not None and server is not None:
        server.close()
    _connection_lost(self, exc)


@_seeds(Shell, "add", "not-recovered")
def count_connections_that_are_gone(self: Shell, incoming: Incoming) -> None:
    """The bound on connections counts all that ever were, and not those that are open.

    A node that clients have left and come back to often enough takes none any more.
    """
    self._incoming[incoming.connection] = incoming
    _ACCEPTED[self] += 1
    if _ACCEPTED[self] > _CONNECTIONS_MAX:
        incoming.close()


# --- errors


@_seeds(Shell, "_guarded", "not-recovered", "lost-write", "replicas-differ")
@contextmanager
def log_an_error_of_the_disk_and_go_on(self: Shell, give_up: Callable[[], None]) -> Iterator[None]:
    """An error of the disk is noted like any other, and does not end the node.

    The log and what the node believes of it part; whatever was under way is never finished.
    """
    with _guarded(self, give_up):
        try:
            yield
        except OSError as error:
            self.note(f"the log directory failed: {error}")


# --- clocks


@_seeds(main, "WrongClocks", "not-recovered")
def measure_time_by_the_wall_clock(path: Path) -> WrongClocks:
    """Waiting is measured by the wall clock.

    Somebody sets it, and sets it back: what was to happen in half a second happens in an hour.
    """

    class WallClocks(WrongClocks):
        def read(self) -> Now:
            now = super().read()
            return Now(now.wall_ms, now.wall_ms)

        def true_s(self, monotonic_ms: int) -> float:
            return asyncio.get_running_loop().time() + max(0, monotonic_ms - self.read().wall_ms) / 1000

    return WallClocks(path)
