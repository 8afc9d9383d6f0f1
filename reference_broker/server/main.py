"""The life of a broker process: options, data directory, listener, broker, `ready`, and a clean end.

The listener is bound before anything is read or written, so that a port in use costs nothing, and accepts only when the
broker is there. SIGTERM and SIGINT, or the end of standard input where asked for, stop it cleanly; anything else that
ends it leaves a directory that the next start recovers.
"""

import asyncio
import gc
import os
import signal
import sys
from collections.abc import Sequence
from uuid import uuid4

from reference_broker.core.broker import Broker
from reference_broker.core.connection import DEFAULT_LISTENER
from reference_broker.core.identity import Endpoint as Listener
from reference_broker.core.identity import Identity
from reference_broker.server.client_protocol import ClientProtocol
from reference_broker.server.errors import EXIT_BROKER_FAILED, EXIT_USAGE, ServerError, UsageError
from reference_broker.server.hosts_file import resolve
from reference_broker.server.log_directory import LogDirectory
from reference_broker.server.node import Node, read_clocks
from reference_broker.server.options import Endpoint, Options, parse_options


def main(arguments: Sequence[str]) -> int:
    """Run a broker until it is told to stop. Returns the exit code."""
    try:
        options = parse_options(arguments)
        asyncio.run(_run(options))
    except UsageError as error:
        _say(f"error: {error}")
        return EXIT_USAGE
    except ServerError as error:
        _say(f"error: {error}")
        return EXIT_BROKER_FAILED
    return 0


async def _run(options: Options) -> None:
    if options.unheeded:
        _say(f"warning: properties that mean nothing to this broker: {', '.join(options.unheeded)}")
    stopped: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    protocols = _Protocols()
    server = await _bind(options, protocols)
    directory = LogDirectory(options.data, options.node_id, options.cluster_id)
    port = server.sockets[0].getsockname()[1]
    broker = _open_broker(options, directory, port)
    protocols.node = Node(broker, lambda reason: _fail(stopped, reason))
    protocols.frame_size_max_bytes = broker.configuration.integer("socket.request.max.bytes")
    gc.freeze()  # what is alive now stays so: no collection walks it again
    await server.start_serving()
    _watch_for_the_end(options, stopped)
    print(f"ready {Endpoint(options.listener.host, port)}", flush=True)  # noqa: T201 - whoever started us reads it
    try:
        await stopped
    finally:
        server.close()
        protocols.node.close_all()
    broker.stop()


class _Protocols:
    """Makes the shell of each connection. The listener wants it before there is a broker."""

    node: Node
    frame_size_max_bytes: int

    def __call__(self) -> ClientProtocol:
        return ClientProtocol(self.node, self.frame_size_max_bytes)


async def _bind(options: Options, protocols: _Protocols) -> asyncio.Server:
    host = resolve(options.listener.host, options.hosts_file)
    try:
        return await asyncio.get_running_loop().create_server(
            protocols, host, options.listener.port, start_serving=False
        )
    except OSError as error:
        raise ServerError(f"cannot listen on {options.listener}: {error.strerror or error}") from error


def _open_broker(options: Options, directory: LogDirectory, port: int) -> Broker:
    advertised = options.advertised or Endpoint(options.listener.host, port)
    identity = Identity(
        node_id=options.node_id,
        cluster_id=directory.cluster_id,
        endpoints=(Listener(DEFAULT_LISTENER, advertised.host, advertised.port),),
        directory_id=directory.directory_id,
        incarnation_id=uuid4(),
    )
    properties = {**options.properties, "node.id": str(options.node_id), "log.dirs": str(directory.path)}
    try:
        return Broker(identity, properties, directory.disk, uuid4, read_clocks())
    except OSError as error:
        raise ServerError(f"cannot open the data directory {directory.path}: {error.strerror or error}") from error
    except ValueError as error:  # the metadata log holds what this broker does not write
        raise ServerError(f"the data directory {directory.path} is another broker's: {error}") from error


def _watch_for_the_end(options: Options, stopped: "asyncio.Future[None]") -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, _stop, stopped)
    if options.exit_with_stdin:
        loop.add_reader(sys.stdin.fileno(), _read_stdin, stopped)


def _read_stdin(stopped: "asyncio.Future[None]") -> None:
    if not os.read(sys.stdin.fileno(), 4096):
        asyncio.get_running_loop().remove_reader(sys.stdin.fileno())
        _stop(stopped)


def _stop(stopped: "asyncio.Future[None]") -> None:
    if not stopped.done():
        stopped.set_result(None)


def _fail(stopped: "asyncio.Future[None]", reason: str) -> None:
    if not stopped.done():
        stopped.set_exception(ServerError(reason))


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)  # noqa: T201 - standard error is the log of this process
