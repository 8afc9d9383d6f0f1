"""Accepted TCP connection: passes requests to the core and writes the responses.

Follows: org.apache.kafka.common.network.KafkaChannel.

The connection is an asyncio protocol, not a stream: a request takes tens of microseconds, and a task switch would take
as long. Frames wait in the buffer while the core processes a request (`busy`), or while the peer does not read its
responses. If the buffer grows too large, the socket is not read, and TCP slows the peer down.
"""

import asyncio
import socket
from typing import Protocol

from reference_broker.core.connection import Connection
from reference_broker.protocol.errors import MalformedRequestError
from reference_broker.protocol.framing import FrameBuffer

_BUFFERED_MAX_BYTES = 1024 * 1024
"""If more than this number of bytes wait to be handled, the socket is not read."""
_TURN_S = 0.002
"""Time for which pipelined requests of one connection are handled before other connections are served."""
_UNKNOWN_PEER = "0.0.0.0", 0  # noqa: S104 - not an address to listen on: the peer has closed the connection already


class RequestHandler(Protocol):
    """Receiver of a connection's requests: `Shell`."""

    def add(self, incoming: "Incoming") -> None:
        """Register a new connection."""

    def remove(self, incoming: "Incoming") -> None:
        """Remove a closed connection."""

    def handle(self, incoming: "Incoming", frame: bytes) -> None:
        """Handle a request frame without its length prefix."""

    def grown(self, incoming: "Incoming") -> None:
        """Handle the growth of a connection's buffered requests or unread responses."""

    def note(self, text: str) -> None:
        """Write a line to standard error."""


class Incoming(asyncio.Protocol):
    """One accepted connection."""

    def __init__(self, shell: "RequestHandler", connection: Connection, frame_size_max_bytes: int) -> None:
        self._shell = shell
        self._frames = FrameBuffer(frame_size_max_bytes)
        self._transport: asyncio.Transport | None = None
        self._writable = True
        self._continuation: asyncio.Handle | None = None
        self.connection = connection
        self.peer = ""
        """Address of the client: HOST:PORT."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Register the connection."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        host, port = (transport.get_extra_info("peername") or _UNKNOWN_PEER)[:2]
        self.peer = f"{host}:{port}"
        self.connection.peer_address = socket.inet_pton(socket.AF_INET6 if ":" in host else socket.AF_INET, host)
        self._shell.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Remove the connection, which either side has closed."""
        self._end_turn()
        self._shell.remove(self)

    def data_received(self, data: bytes) -> None:
        """Buffer received bytes and handle complete requests."""
        self._frames.feed(data)
        self._shell.grown(self)
        self.proceed()

    def pause_writing(self) -> None:
        """Stop handling requests: the peer does not read its responses."""
        self._writable = False

    def resume_writing(self) -> None:
        """Handle requests again: the peer reads its responses."""
        self._writable = True
        self.proceed()

    def proceed(self) -> None:
        """Pass buffered requests to the core until it is busy or the turn of this connection ends."""
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
        self._pause_or_resume_reading()

    def _end_turn(self) -> None:
        if self._continuation is not None:
            self._continuation.cancel()
            self._continuation = None

    def _pause_or_resume_reading(self) -> None:
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
        """The size of buffered requests and unread responses."""
        assert self._transport is not None
        return len(self._frames) + self._transport.get_write_buffer_size()

    def abort(self, reason: str) -> None:
        """Close the connection at once, without sending the rest."""
        assert self._transport is not None
        self._shell.note(f"closed {self.peer}: {reason}")
        self._frames.clear()
        self._transport.abort()

    def close(self) -> None:
        """Close the connection after the written bytes are sent."""
        assert self._transport is not None
        self._transport.close()
