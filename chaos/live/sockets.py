"""The environment of clients with steps on a real cluster: an asyncio loop for time, and TCP connections.

Everything runs in the loop's thread. The first error that a client raises, such as a response that is not one, is kept
and ends the run of all clients.
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Final

from chaos.simulation.clients.process import MalformedAnswerError
from fixtures.targets.target import Node

Action = Callable[[], None]
Address = tuple[str, int]
_LENGTH_BYTES: Final = 4
_FRAME_BYTES_MAX: Final = 100 << 20
"""As Kafka's `socket.request.max.bytes`."""


class LoopTimers:
    """Timers of an asyncio loop; the clock shows 0 when this is made."""

    def __init__(self, loop: asyncio.AbstractEventLoop, failed: Callable[[Exception], None]) -> None:
        self._loop = loop
        self._failed = failed
        self._start_s = loop.time()

    @property
    def now_ms(self) -> int:
        """Milliseconds since the start."""
        return int((self._loop.time() - self._start_s) * 1000)

    def at(self, at_ms: int, action: Action) -> None:
        """Perform an action once the clock shows `at_ms`."""
        self._loop.call_at(self._start_s + at_ms / 1000, self._perform, at_ms, action)

    def after(self, delay_ms: int, action: Action) -> None:
        """Perform an action later."""
        if delay_ms <= 0:
            self._loop.call_soon(self._perform, 0, action)
        else:
            self.at(self.now_ms + delay_ms, action)

    def _perform(self, at_ms: int, action: Action) -> None:
        if self.now_ms < at_ms:  # asyncio calls up to its clock's resolution too early
            self.at(at_ms, action)
            return
        try:
            action()
        except Exception as error:  # noqa: BLE001 - whatever a client raises is the run's result
            self._failed(error)


class SocketEnvironment:
    """What processes of clients run in.

    :param nodes: returns the address of each node's client listener, by id.
    :ivar failure: the first error that a client has raised.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, nodes: Callable[[], Mapping[int, Address]]) -> None:
        self.failure: Exception | None = None
        self.scheduler = LoopTimers(loop, self.fail)
        self.wall_start_ms = int(time.time() * 1000)
        self._loop = loop
        self._nodes = nodes

    def fail(self, error: Exception) -> None:
        """Keep the first error."""
        self.failure = self.failure or error

    def connect(
        self, place: str, node_id: int, received: Callable[[bytes], None], closed: Action, listener: str
    ) -> "SocketWire":
        """Open a connection to a node. All clients are at one place, and reach the client listener alone."""
        return SocketWire(self._loop, self._nodes().get(node_id), received, closed, self.fail)


def addresses_of(nodes: tuple[Node, ...]) -> Mapping[int, Address]:
    """Return the addresses of nodes by id."""
    return {node.id: (node.host, node.port) for node in nodes}


class SocketWire(asyncio.Protocol):
    """A connection: requests wait until it is established, responses are cut into frames."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        address: Address | None,
        received: Callable[[bytes], None],
        closed: Action,
        failed: Callable[[Exception], None],
    ) -> None:
        self.is_established = False
        self._received = received
        self._closed = closed
        self._failed = failed
        self._transport: asyncio.Transport | None = None
        self._unsent: list[bytes] = []
        self._buffer = bytearray()
        self._is_closed = False
        self._opening = loop.create_task(self._open(loop, address))

    async def _open(self, loop: asyncio.AbstractEventLoop, address: Address | None) -> None:
        try:
            if address is None:
                raise ConnectionRefusedError("no such node")
            await loop.create_connection(lambda: self, *address)
        except OSError:
            self._end()

    def send(self, data: bytes) -> None:
        """Send a whole request, now or once the connection is established."""
        if self._transport is None:
            self._unsent.append(data)
        else:
            self._transport.write(data)

    def close(self) -> None:
        """Close the connection without waiting for anything."""
        self._is_closed = True
        self._opening.cancel()
        if self._transport is not None:
            self._transport.abort()

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection is established."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self.is_established = True
        if self._is_closed:
            transport.abort()
        else:
            transport.writelines(self._unsent)
            self._unsent.clear()

    def data_received(self, data: bytes) -> None:
        """Some bytes have arrived."""
        self._buffer += data
        try:
            while not self._is_closed and (frame := self._next_frame()) is not None:
                self._received(frame)
        except Exception as error:  # noqa: BLE001 - as in `LoopTimers`
            self._failed(error)

    def _next_frame(self) -> bytes | None:
        """Return a whole response, its length first, or None."""
        if len(self._buffer) < _LENGTH_BYTES:
            return None
        size = int.from_bytes(self._buffer[:_LENGTH_BYTES], "big", signed=True)
        if not _LENGTH_BYTES <= size <= _FRAME_BYTES_MAX:
            raise MalformedAnswerError(f"a response of {size} bytes")
        if len(self._buffer) < _LENGTH_BYTES + size:
            return None
        frame = bytes(self._buffer[: _LENGTH_BYTES + size])
        del self._buffer[: _LENGTH_BYTES + size]
        return frame

    def connection_lost(self, error: Exception | None) -> None:
        """The connection has ended."""
        self._end()

    def _end(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            try:
                self._closed()
            except Exception as error:  # noqa: BLE001 - as in `LoopTimers`
                self._failed(error)
