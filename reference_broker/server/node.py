"""The shell around the core: it carries out effects, keeps the timer, and tells the time.

Rules of this file: no decision about Kafka is taken here. A handler that raises is a bug: it is shown on standard error
and costs the one connection that asked. A disk that fails ends the broker (`failed`), as it ends Kafka's.
"""

import asyncio
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from reference_broker.core.broker import Broker
from reference_broker.core.clock import Now
from reference_broker.core.connection import Close, Connection, Effect, Respond
from reference_broker.core.dispatch import handle

if TYPE_CHECKING:
    from reference_broker.server.client_protocol import ClientProtocol


def read_clocks() -> Now:
    """Both clocks, now."""
    return Now(time.time_ns() // 1_000_000, time.monotonic_ns() // 1_000_000)


class Node:
    """A broker and its connections.

    :param failed: called, once, when the broker cannot go on, with one line that says why.
    """

    def __init__(self, broker: Broker, failed: Callable[[str], None]) -> None:
        self._broker = broker
        self._failed = failed
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._protocols: dict[Connection, ClientProtocol] = {}
        self._set_timer()

    def add(self, protocol: "ClientProtocol") -> None:
        """A connection came."""
        self._protocols[protocol.connection] = protocol

    def remove(self, protocol: "ClientProtocol") -> None:
        """A connection went."""
        del self._protocols[protocol.connection]
        self._broker.disconnected(protocol.connection)

    def handle(self, protocol: "ClientProtocol", frame: bytes) -> None:
        """Give the core a request, and do what it says."""
        try:
            effects = handle(self._broker, protocol.connection, frame, read_clocks())
        except OSError as error:
            self._failed(f"the log directory failed: {error}")
        except Exception:  # noqa: BLE001 - one connection pays for a bug, not the broker
            traceback.print_exc()
            protocol.close("an internal error")
        else:
            self._carry_out(effects, protocol)
        self._set_timer()

    def close_all(self) -> None:
        """End every connection."""
        for protocol in tuple(self._protocols.values()):
            protocol.close("the broker stops")

    def note(self, text: str) -> None:
        """A line for the broker's own log."""
        print(text, file=sys.stderr, flush=True)  # noqa: T201 - standard error is the log of this process

    def _carry_out(self, effects: Sequence[Effect], asking: "ClientProtocol | None") -> None:
        """`asking` goes on to its next request by itself; others are told to."""
        for effect in effects:
            assert isinstance(effect, Respond | Close), "one node asks nobody"
            protocol = self._protocols.get(effect.connection)
            if protocol is None:
                continue
            match effect:
                case Respond(data=data):
                    protocol.write(data)
                    if protocol is not asking:
                        self._loop.call_soon(protocol.proceed)
                case Close(reason=reason):
                    protocol.close(reason)

    def _set_timer(self) -> None:
        at_ms = self._broker.timers.next_ms
        if at_ms is None:
            return
        if self._timer is None or self._timer.cancelled() or at_ms / 1000 < self._timer.when():
            if self._timer is not None:
                self._timer.cancel()
            self._timer = self._loop.call_at(at_ms / 1000, self._fire)

    def _fire(self) -> None:
        self._timer = None
        try:
            self._broker.fire_timers(read_clocks())
        except OSError as error:
            self._failed(f"the log directory failed: {error}")
            return
        except Exception:  # noqa: BLE001 - the action that has the bug is lost, the others go on
            traceback.print_exc()
        self._carry_out(self._broker.take_effects(), None)
        self._set_timer()
