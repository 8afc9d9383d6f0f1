"""Connections to other nodes, made when there is something to send.

Rules of this file:
- A name is resolved at each connect, through the hosts file: a link that a test moves is followed.
- What cannot be connected is lost at once (`lost`), and so is what breaks. Nobody tries again here: whoever asked backs
  off and asks again, which connects again.
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

Answered = Callable[[Channel, bytes], None]
Lost = Callable[[Channel], None]


class Outgoing:
    """The open channels.

    :param answered: takes a response, without its length.
    :param lost: is told of a channel that could not be connected, or broke.
    """

    def __init__(self, hosts_file: Path | None, answered: Answered, lost: Lost) -> None:
        self._hosts_file = hosts_file
        self._answered = answered
        self._lost = lost
        self._links: dict[Channel, _Link] = {}

    def send(self, channel: Channel, data: bytes) -> None:
        """Send a request; connect before, if need be."""
        link = self._links.get(channel)
        if link is None:
            link = self._links[channel] = _Link(
                lambda frame: self._answered(channel, frame), lambda: self._end(channel)
            )
            link.connect(channel, self._hosts_file)
        link.send(data)

    def close(self, channel: Channel) -> None:
        """End a channel, and do not say that it is lost."""
        link = self._links.pop(channel, None)
        if link is not None:
            link.close()

    def close_all(self) -> None:
        """End them all."""
        for channel in tuple(self._links):
            self.close(channel)

    def _end(self, channel: Channel) -> None:
        del self._links[channel]
        self._lost(channel)


class _Link(asyncio.Protocol):
    """One connection; until it is made, what is to be sent waits."""

    def __init__(self, answered: Callable[[bytes], None], ended: Callable[[], None]) -> None:
        self._answered = answered
        self._ended = ended
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
        except (OSError, ServerError):  # a hosts file that is being replaced is no reason to end
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
                self._answered(frame)
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
            self._ended()
