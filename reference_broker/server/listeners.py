"""Server sockets of a node, one per listener.

Follows: kafka.network.SocketServer.

All ports are bound before the log directory is opened, so that the directory stays unchanged if a port is in use. The
controller's listener accepts connections as soon as the node is created. The other listeners accept connections when
the broker is registered and has caught up with the metadata.
"""

import asyncio
from collections.abc import Iterable
from pathlib import Path

from reference_broker.core.connection import Connection
from reference_broker.core.identity import Endpoint
from reference_broker.server.errors import ServerError
from reference_broker.server.hosts_file import resolve
from reference_broker.server.incoming import Incoming
from reference_broker.server.shell import Shell


class Listeners:
    """The listeners of a node. After `bind`, `endpoints` have the bound ports instead of port 0.

    The caller must set `shell` and `frame_size_max_bytes` before it calls `accept`.
    """

    def __init__(self, controller_listener: str) -> None:
        self.endpoints: tuple[Endpoint, ...] = ()
        self.shell: Shell
        self.frame_size_max_bytes: int
        self._controller_listener = controller_listener
        self._servers: dict[str, asyncio.Server] = {}

    async def bind(self, endpoints: Iterable[Endpoint], hosts_file: Path | None) -> None:
        """Bind the ports. Raises `ServerError`."""
        for endpoint in endpoints:
            self._servers[endpoint.listener] = server = await self._bind(endpoint, hosts_file)
            port = server.sockets[0].getsockname()[1]
            self.endpoints += (Endpoint(endpoint.listener, endpoint.host, port),)

    async def _bind(self, endpoint: Endpoint, hosts_file: Path | None) -> asyncio.Server:
        is_controller = endpoint.listener == self._controller_listener

        def incoming() -> Incoming:
            connection = Connection(endpoint.listener, is_controller)
            return Incoming(self.shell, connection, self.frame_size_max_bytes)

        try:
            return await asyncio.get_running_loop().create_server(
                incoming, resolve(endpoint.host, hosts_file), endpoint.port, start_serving=False
            )
        except OSError as error:
            address = f"{endpoint.host}:{endpoint.port}"
            raise ServerError(f"cannot listen on {address}: {error.strerror or error}") from error

    async def accept(self, *, controller: bool) -> None:
        """Accept connections on the controller's listener if `controller` is true, otherwise on the other listeners."""
        for name, server in self._servers.items():
            if (name == self._controller_listener) == controller:
                await server.start_serving()

    def close(self) -> None:
        """Stop accepting connections."""
        for server in self._servers.values():
            server.close()
