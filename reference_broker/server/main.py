"""Main function of a node's process, from the command line to the shutdown.

Follows: kafka.server.KafkaRaftServer.

A clean shutdown starts at SIGTERM, at SIGINT, or, with `--exit-with-stdin`, at the end of standard input. The broker
and the controller resign their leaderships, and the logs are closed. The time of a shutdown is bounded, so that no node
waits indefinitely for an unavailable quorum. At a second signal, the logs are closed and the process ends at once. If
the process ends in any other way, the next start recovers the logs.
"""

import asyncio
import ctypes
import os
import signal
import sys
from collections.abc import Sequence
from random import SystemRandom

from reference_broker.core.configuration.key import InvalidConfigError
from reference_broker.core.identity import Endpoint, Identity
from reference_broker.core.layout import Layout, controller_listener_in, endpoints_in
from reference_broker.core.metadata.cluster_metadata import MetadataFaultError
from reference_broker.core.node import Node
from reference_broker.core.quorum.election_state import QuorumStateFileError
from reference_broker.server.clocks import Clocks, ShiftedClocks
from reference_broker.server.errors import EXIT_BROKER_FAILED, EXIT_USAGE, ServerError, UsageError
from reference_broker.server.garbage_collection import GarbageCollection
from reference_broker.server.listeners import Listeners
from reference_broker.server.log_directory import LogDirectory
from reference_broker.server.new_uuid import new_uuid
from reference_broker.server.options import Options, parse_options
from reference_broker.server.shell import Shell

_M_MMAP_THRESHOLD = -3
_LARGE_BYTES = 1024 * 1024


def main(arguments: Sequence[str]) -> int:
    """Run a node until it stops; return the exit code."""
    _return_large_blocks()
    try:
        options = parse_options(arguments)
        asyncio.run(_run(options))
    except UsageError as error:
        _log(f"error: {error}")
        return EXIT_USAGE
    except ServerError as error:
        _log(f"error: {error}")
        return EXIT_BROKER_FAILED
    return 0


def _return_large_blocks() -> None:
    """Have glibc return the memory of large messages at once; by default it keeps blocks of up to 32 MB."""
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallopt"):
        libc.mallopt(_M_MMAP_THRESHOLD, _LARGE_BYTES)


async def _run(options: Options) -> None:
    if options.ignored:
        _log(f"warning: properties that this broker ignores: {', '.join(options.ignored)}")
    controller_listener = controller_listener_in(options.properties)
    listeners = Listeners(controller_listener)
    try:
        await listeners.bind(endpoints_in(options.properties, "listeners"), options.hosts_file)
        properties = _bound(options, listeners.endpoints, controller_listener)
        layout = Layout.of(properties, options.node_id)
    except InvalidConfigError as error:
        raise UsageError(f"--set: {error}") from error
    clocks = ShiftedClocks(options.clock_file) if options.clock_file else Clocks()
    directory = LogDirectory(options.data, options.node_id, options.cluster_id)
    node = _open_node(layout, properties, directory, options.node_id, clocks)
    garbage = GarbageCollection()
    garbage.start()
    await _Process(options, node, listeners, clocks, garbage).run()
    try:
        node.close()
    except OSError as error:
        raise ServerError(f"the log directory failed: {error}") from error


def _bound(options: Options, endpoints: Sequence[Endpoint], controller_listener: str) -> dict[str, str]:
    """Return the properties with the bound ports. The node is the only voter unless the properties have the voters."""
    properties = {
        **options.properties,
        "node.id": str(options.node_id),
        "log.dirs": str(options.data),
        "listeners": ",".join(map(str, endpoints)),
    }
    own = next((endpoint for endpoint in endpoints if endpoint.listener == controller_listener), None)
    if own is not None:
        properties.setdefault("controller.quorum.voters", f"{options.node_id}@{own.host}:{own.port}")
    return properties


def _open_node(
    layout: Layout, properties: dict[str, str], directory: LogDirectory, node_id: int, clocks: Clocks
) -> Node:
    identity = Identity(
        node_id=node_id,
        cluster_id=directory.cluster_id,
        endpoints=layout.advertised,
        directory_id=directory.directory_id,
        incarnation_id=new_uuid(),
    )
    try:
        return Node(
            identity,
            layout,
            properties,
            directory.disk,
            new_uuid=new_uuid,
            random_below=SystemRandom().randrange,
            now=clocks.read(),
        )
    except OSError as error:
        raise ServerError(f"cannot open the log directory {directory.path}: {error.strerror or error}") from error
    except (MetadataFaultError, QuorumStateFileError) as error:
        raise ServerError(f"the log directory {directory.path} is damaged or from another broker: {error}") from error


class _Process:
    """A running node, its listeners and its signal handlers."""

    def __init__(
        self, options: Options, node: Node, listeners: Listeners, clocks: Clocks, garbage: GarbageCollection
    ) -> None:
        self._options = options
        self._clocks = clocks
        self._garbage = garbage
        self._node = node
        self._listeners = listeners
        self._ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._serving: asyncio.Task[None] | None = None
        self._is_open = self._is_ready = self._is_stopping = self._is_signalled = False

    async def run(self) -> None:
        """Run the node until it has stopped. Raises `ServerError`."""
        listeners, node = self._listeners, self._node
        listeners.frame_size_max_bytes = node.runtime.configuration.integer("socket.request.max.bytes")
        listeners.shell = self._shell = Shell(
            node,
            request_max_bytes=listeners.frame_size_max_bytes,
            clocks=self._clocks,
            garbage=self._garbage,
            hosts_file=self._options.hosts_file,
            failed=self._fail,
            changed=self._changed,
        )
        await listeners.accept(controller=True)
        self._add_signal_handlers()
        self._changed()
        try:
            await self._ended
        finally:
            listeners.close()
            self._shell.close_all()

    def _changed(self) -> None:
        """Open the listeners, report readiness or end the process, depending on the state. Called after every event."""
        if self._node.is_stopped:
            self._end()
        elif self._serving is None and self._node.is_serving:
            self._serving = asyncio.get_running_loop().create_task(self._serve())
        elif self._is_open and not self._is_ready and self._node.is_ready:
            self._is_ready = True
            first = self._listeners.endpoints[0]
            print(f"ready {first.host}:{first.port}", flush=True)  # noqa: T201 - the parent process reads it

    async def _serve(self) -> None:
        await self._listeners.accept(controller=False)
        self._is_open = True
        self._changed()

    def _add_signal_handlers(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._signalled)
        if self._options.exit_with_stdin:
            loop.add_reader(sys.stdin.fileno(), self._read_stdin)

    def _read_stdin(self) -> None:
        if not os.read(sys.stdin.fileno(), 4096):
            asyncio.get_running_loop().remove_reader(sys.stdin.fileno())
            self._stop()

    def _signalled(self) -> None:
        """Stop the node, or close it at once on the second signal. The end of standard input is not a signal."""
        if self._is_signalled:
            self._end()
        else:
            self._is_signalled = True
            self._stop()

    def _stop(self) -> None:
        if not self._is_stopping:
            self._is_stopping = True
            self._shell.stop()

    def _end(self) -> None:
        if not self._ended.done():
            self._ended.set_result(None)

    def _fail(self, reason: str) -> None:
        if not self._ended.done():
            self._ended.set_exception(ServerError(reason))


def _log(line: str) -> None:
    print(line, file=sys.stderr, flush=True)  # noqa: T201 - standard error is the log of this process
