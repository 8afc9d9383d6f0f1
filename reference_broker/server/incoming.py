"""One TCP connection that somebody opened to us: bytes in, frames to the core, its effects out.

A raw asyncio protocol, because a request costs tens of microseconds here and a stream's task switch would cost as much.
While the core has a request in hand (`busy`), or the other side does not read its answers, frames wait in the buffer;
when too much waits, the socket is no longer read and TCP holds the other side back.
"""

import asyncio
import socket
from typing import Protocol

from reference_broker.core.connection import Connection
from reference_broker.protocol.errors import MalformedRequestError
from reference_broker.protocol.framing import FrameBuffer

_BUFFERED_MAX_BYTES = 1024 * 1024
"""What may wait while a request is in hand before reading stops."""
_TURN_S = 0.01
"""How long requests that were sent without waiting for responses are taken before other connections have their turn."""
_GONE_ALREADY = "0.0.0.0", 0  # noqa: S104 - no address to listen on: whoever connected has closed before we looked


class RequestHandler(Protocol):
    """What a connection hands its requests to: `Shell`."""

    def add(self, incoming: "Incoming") -> None:
        """Take a new connection."""

    def remove(self, incoming: "Incoming") -> None:
        """Drop a connection that is closed."""

    def handle(self, incoming: "Incoming", frame: bytes) -> None:
        """Handle a request, without its length."""

    def grown(self, incoming: "Incoming") -> None:
        """A connection holds more of requests or unread responses."""

    def note(self, text: str) -> None:
        """Write a line to the node's log."""


class Incoming(asyncio.Protocol):
    """The shell of one connection."""

    def __init__(self, shell: "RequestHandler", connection: Connection, frame_size_max_bytes: int) -> None:
        self._shell = shell
        self._frames = FrameBuffer(frame_size_max_bytes)
        self._transport: asyncio.Transport | None = None
        self._writable = True
        self._continuation: asyncio.Handle | None = None
        self.connection = connection
        self.peer = ""
        """Who opened it."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Somebody connected."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        host, port = (transport.get_extra_info("peername") or _GONE_ALREADY)[:2]
        self.peer = f"{host}:{port}"
        self.connection.peer_address = socket.inet_pton(socket.AF_INET6 if ":" in host else socket.AF_INET, host)
        self._shell.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is closed, by either side."""
        self._end_turn()
        self._shell.remove(self)

    def data_received(self, data: bytes) -> None:
        """Some bytes of requests."""
        self._frames.feed(data)
        self._shell.grown(self)
        self.proceed()

    def pause_writing(self) -> None:
        """The other side does not read."""
        self._writable = False

    def resume_writing(self) -> None:
        """It reads again."""
        self._writable = True
        self.proceed()

    def proceed(self) -> None:
        """Give the core the requests that are here, as long as it takes them and this connection's turn lasts."""
        assert self._transport is not None
        self._end_turn()
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + _TURN_S
        try:
            while not self.connection.busy and self._writable and not self._transport.is_closing():
                if loop.time() >= deadline_s:
                    self._continuation = loop.call_soon(self.proceed)
                    break
                frame = self._frames.next_frame()
                if frame is None:
                    break
                self._shell.handle(self, frame)
        except MalformedRequestError as error:
            self._shell.note(f"closed {self.peer}: {error}")
            self.close()
            return
        self._hold_back()

    def _end_turn(self) -> None:
        if self._continuation is not None:
            self._continuation.cancel()
            self._continuation = None

    def _hold_back(self) -> None:
        assert self._transport is not None
        waiting = self.connection.busy or not self._writable or self._continuation is not None
        if waiting and len(self._frames) > _BUFFERED_MAX_BYTES:
            self._transport.pause_reading()
        elif not self._transport.is_reading() and not self._transport.is_closing():
            self._transport.resume_reading()

    def write(self, data: bytes) -> None:
        """Send a response."""
        assert self._transport is not None
        self._transport.write(data)
        self._shell.grown(self)

    @property
    def held_bytes(self) -> int:
        """The size of incomplete requests and unread responses."""
        assert self._transport is not None
        return len(self._frames) + self._transport.get_write_buffer_size()

    def abort(self, reason: str) -> None:
        """Close the connection at once, without sending the rest."""
        assert self._transport is not None
        self._shell.note(f"closed {self.peer}: {reason}")
        self._frames.clear()
        self._transport.abort()

    def close(self) -> None:
        """End the connection after what was written."""
        assert self._transport is not None
        self._transport.close()
