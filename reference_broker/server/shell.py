"""Imperative shell around the core: executes effects, sets the timer, and reads the clocks.

Rules of this file:
- It makes no decision about Kafka's behaviour.
- A failed disk, an invalid quorum state, a metadata fault or a failed registration ends the node (`failed`), as in
  Kafka.
- Any other exception is a bug and is printed on standard error. The consequence depends on the event. A request or a
  response: its connection is closed. The beginning of a shutdown: the node ends. A timer, a write or a lost connection:
  the node continues.
"""

import asyncio
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from reference_broker.core.broker_lifecycle_manager import RegistrationTimeoutError
from reference_broker.core.connection import Channel, Close, Connection, Disconnect, Note, Respond, Send
from reference_broker.core.metadata.cluster_metadata import MetadataFaultError
from reference_broker.core.node import Node
from reference_broker.core.quorum.quorum_state import QuorumStateError
from reference_broker.server.clocks import Clocks
from reference_broker.server.connection_memory import ConnectionMemory
from reference_broker.server.garbage_collection import GarbageCollection
from reference_broker.server.incoming import Incoming
from reference_broker.server.outgoing import Outgoing


class Shell:
    """A node with its accepted and its outgoing connections.

    :param request_max_bytes: `socket.request.max.bytes`.
    :param failed: called with a reason of one line when the node cannot continue.
    :param changed: called after every event.
    """

    def __init__(
        self,
        node: Node,
        *,
        request_max_bytes: int,
        clocks: Clocks,
        garbage: GarbageCollection,
        hosts_file: Path | None,
        failed: Callable[[str], None],
        changed: Callable[[], None],
    ) -> None:
        self.node = node
        self._clocks = clocks
        self._garbage = garbage
        self._failed = failed
        self._changed = changed
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._is_writing = self._is_collecting = False
        self._incoming: dict[Connection, Incoming] = {}
        self._memory = ConnectionMemory(request_max_bytes)
        self._outgoing = Outgoing(hosts_file, self._on_response, self._on_lost)
        self._proceed(None)

    # Input events

    def add(self, incoming: Incoming) -> None:
        """Register an accepted connection."""
        self._incoming[incoming.connection] = incoming

    def remove(self, incoming: Incoming) -> None:
        """Remove a closed connection."""
        del self._incoming[incoming.connection]
        self._memory.remove(incoming)
        self.node.disconnected(incoming.connection)

    def grown(self, incoming: Incoming) -> None:
        """Enforce the limit on the memory that all connections use, after one of them has grown."""
        self._memory.bound(incoming)

    def handle(self, incoming: Incoming, frame: bytes) -> None:
        """Pass a request to the core, and execute the effects."""
        with self._guarded(incoming.close):
            self.node.handle(incoming.connection, frame, self._clocks.read())
        self._proceed(incoming)

    def stop(self) -> None:
        """Begin a clean shutdown of the node."""
        with self._guarded(lambda: self._failed("the node cannot shut down cleanly")):
            self.node.shut_down(self._clocks.read())
        self._proceed(None)

    def _on_response(self, channel: Channel, frame: bytes) -> None:
        with self._guarded(lambda: self._outgoing.close(channel)):
            self.node.handle_response(channel, frame, self._clocks.read())
        self._proceed(None)

    def _on_lost(self, channel: Channel) -> None:
        with self._guarded(_nothing):
            self.node.lost(channel, self._clocks.read())
        self._proceed(None)

    def _fire(self) -> None:
        self._timer = None
        with self._guarded(_nothing):
            self.node.fire(self._clocks.read(), actions_max=1)
        self._proceed(None)

    def _write(self) -> None:
        self._is_writing = False
        with self._guarded(_nothing):
            self.node.write(self._clocks.read())
        self._proceed(None)

    def _collect(self) -> None:
        self._is_collecting = False
        self._garbage.collect()

    @contextmanager
    def _guarded(self, give_up: Callable[[], None]) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self._failed(f"the log directory failed: {error}")
        except QuorumStateError as error:
            self._failed(f"the quorum is in an invalid state: {error}")
        except MetadataFaultError as error:
            self._failed(f"the metadata log cannot be applied: {error}")
        except RegistrationTimeoutError as error:
            self._failed(str(error))
        except Exception:  # noqa: BLE001 - a bug costs one connection, not the node
            traceback.print_exc()
            give_up()

    # Effects

    def _proceed(self, current: Incoming | None) -> None:
        """Execute the effects of the core, and schedule its pending work.

        After a response, the next request of its connection is scheduled.

        :param current: the connection whose request caused the effects; it handles its next request itself. Null for
            any other event.
        """
        for effect in self.node.take_effects():
            match effect:
                case Respond(connection, data):
                    if incoming := self._incoming.get(connection):
                        incoming.write(data)
                        if incoming is not current:
                            self._loop.call_soon(incoming.proceed)
                case Send(channel, data):
                    self._outgoing.send(channel, data)
                case Close(connection, reason):
                    if incoming := self._incoming.get(connection):
                        self.note(f"closed {incoming.peer}: {reason}")
                        incoming.close()
                case Disconnect(channel):
                    self._outgoing.close(channel)
                case Note(text):
                    self.note(text)
        if self.node.has_to_write and not self._is_writing:
            self._is_writing = True
            self._loop.call_soon(self._write)  # after the events that are already queued
        if self._garbage.is_due and not self._is_collecting:
            self._is_collecting = True
            self._loop.call_soon(self._collect)
        self._set_timer()
        self._changed()

    def close_all(self) -> None:
        """Close every connection."""
        self._outgoing.close_all()
        for incoming in tuple(self._incoming.values()):
            incoming.close()
        if self._timer is not None:
            self._timer.cancel()

    def note(self, text: str) -> None:
        """Write a line to standard error."""
        print(text, file=sys.stderr, flush=True)  # noqa: T201 - standard error is the log of this process

    def _set_timer(self) -> None:
        at_ms = self.node.next_ms
        if at_ms is None:
            return
        at_s = self._clocks.to_machine_s(at_ms)
        if self._timer is None or self._timer.cancelled() or at_s < self._timer.when():
            if self._timer is not None:
                self._timer.cancel()
            self._timer = self._loop.call_at(at_s, self._fire)


def _nothing() -> None:
    """Do nothing: no connection caused the failed action, and the other actions continue."""
