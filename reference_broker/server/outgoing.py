"""Connections to other nodes, opened when a request is sent.

Follows: org.apache.kafka.clients.NetworkClient.

Rules of this file:
- A host name is resolved at each connect, with the hosts file, because a test may change the address of a name.
- If a connection fails or breaks, the channel is reported as lost at once (`on_lost`). This module does not retry. The
  sender of the request sends it again after a backoff, which opens a new connection.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path

from reference_broker.core.configuration.key import INT_MAX
from reference_broker.core.connection import Channel
from reference_broker.protocol.errors import MalformedRequestError
from reference_broker.protocol.framing import FrameBuffer
from reference_broker.server.errors import ServerError
from reference_broker.server.hosts_file import resolve

OnResponse = Callable[[Channel, bytes], None]
OnLost = Callable[[Channel], None]


class Outgoing:
    """The open channels.

    :param on_response: receives a response without its length prefix.
    :param on_lost: receives a channel that could not be connected, or broke.
    """

    def __init__(self, hosts_file: Path | None, on_response: OnResponse, on_lost: OnLost) -> None:
        self._hosts_file = hosts_file
        self._on_response = on_response
        self._on_lost = on_lost
        self._links: dict[Channel, _Link] = {}

    def send(self, channel: Channel, data: bytes) -> None:
        """Send a request; connect first if the channel is not open."""
        link = self._links.get(channel)
        if link is None:
            link = self._links[channel] = _Link(
                lambda frame: self._on_response(channel, frame), lambda: self._end(channel)
            )
            link.connect(channel, self._hosts_file)
        link.send(data)

    def close(self, channel: Channel) -> None:
        """Close a channel without reporting it as lost."""
        link = self._links.pop(channel, None)
        if link is not None:
            link.close()

    def close_all(self) -> None:
        """Close all channels."""
        for channel in tuple(self._links):
            self.close(channel)

    def _end(self, channel: Channel) -> None:
        del self._links[channel]
        self._on_lost(channel)


class _Link(asyncio.Protocol):
    """One connection. Requests wait until it is established."""

    def __init__(self, on_response: Callable[[bytes], None], on_end: Callable[[], None]) -> None:
        self._on_response = on_response
        self._on_end = on_end
        self._frames = FrameBuffer(INT_MAX)
        self._waiting: list[bytes] = []
        self._transport: asyncio.Transport | None = None
        self._connecting: asyncio.Task[None] | None = None
        self._is_closed = False

    def connect(self, channel: Channel, hosts_file: Path | None) -> None:
        self._connecting = asyncio.get_running_loop().create_task(self._connect(channel, hosts_file))

    async def _connect(self, channel: Channel, hosts_file: Path | None) -> None:
        try:
            host = resolve(channel.host, hosts_file)
            await asyncio.get_running_loop().create_connection(lambda: self, host, channel.port)
        except (OSError, ServerError, ValueError, OverflowError):
            # A hosts file may be replaced while it is read, and another node may have an invalid host name or port.
            self._end()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        if self._is_closed:
            transport.abort()
            return
        self._transport = transport
        transport.writelines(self._waiting)
        self._waiting.clear()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end()

    def data_received(self, data: bytes) -> None:
        self._frames.feed(data)
        try:
            while not self._is_closed and (frame := self._frames.next_frame()) is not None:
                self._on_response(frame)
        except MalformedRequestError:
            if self._transport is not None:
                self._transport.abort()

    def send(self, data: bytes) -> None:
        if self._transport is None:
            self._waiting.append(data)
        else:
            self._transport.write(data)

    def close(self) -> None:
        self._is_closed = True
        if self._transport is not None:
            self._transport.abort()
        elif self._connecting is not None:
            self._connecting.cancel()

    def _end(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._on_end()
