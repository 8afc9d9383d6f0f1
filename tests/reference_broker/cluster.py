"""Simulated cluster for tests: requests with plain arguments, and time that advances until a condition holds.

    cluster = Cluster(3, min_insync_replicas="2")
    cluster.run_until(lambda: cluster.active_controller)
    cluster.request(1, "Metadata", 12, topics=None)
    cluster.kill(1)

If a node fails with an error, the next method that advances the time raises `OSError`, which ends the test.
"""

import itertools
from collections.abc import Callable, Iterator, MutableMapping
from typing import Any

from kio.index import load_response_schema

from fixtures.clients.raw import decode_response, encode_request
from reference_broker.core.clock import Now
from reference_broker.core.connection import Connection
from reference_broker.core.node import Node
from reference_broker.simulation.clock import MachineClock
from reference_broker.simulation.cluster import CLIENT, CONTROLLER, ClientConnection, SimulatedCluster
from reference_broker.simulation.disk import SimulatedDisk
from reference_broker.simulation.links import Condition, Cut, Link
from tests.reference_broker.requests import request

CLOSED = "closed"
_CLIENT_NAME = "test"
"""The client id, and the name of the client's place in the network."""
_LENGTH_BYTES = 4
_CORRELATION_ID_BYTES = 4
_REQUEST_CORRELATION_ID = slice(4, 8)
"""Position of the correlation id in a request, after its API key and version; a response begins with it."""


class Cluster:
    """Nodes 1 to `size`, which are brokers and controllers unless `roles` assigns other roles; controllers are voters.

    :param properties: properties of all nodes, with `_` instead of `.` in their names.
    """

    def __init__(
        self, size: int, *, roles: dict[int, str] | None = None, seed: int = 0, latency_ms: int = 1, **properties: str
    ) -> None:
        self.properties = {name.replace("_", "."): value for name, value in properties.items()}
        self._simulated = SimulatedCluster(
            size, seed=seed, roles=roles, properties=self.properties, delay_ms=latency_ms
        )
        self.disks: MutableMapping[int, SimulatedDisk] = _Disks(self._simulated)
        self._clock = MachineClock()
        self._correlation_ids = itertools.count(1)
        self._connections: dict[Connection, ClientConnection] = {}
        self._schemas: dict[tuple[Connection, bytes], Any] = {}
        self._failed: set[tuple[int, int]] = set()

    @property
    def nodes(self) -> dict[int, Node]:
        """The running nodes by id."""
        return self._simulated.nodes

    @property
    def now(self) -> Now:
        """The current time of all nodes' clocks."""
        return self._clock.read(self._simulated.scheduler.now_ms)

    @property
    def active_controller(self) -> int | None:
        """The id of the node whose controller is active."""
        active = (node_id for node_id, node in self.nodes.items() if node.controller and node.controller.is_active)
        return next(active, None)

    # Start and end of nodes

    def start(self, node_id: int) -> None:
        """Start a node on its disk."""
        self._simulated.start(node_id)
        self._raise_failures()

    def kill(self, node_id: int) -> None:
        """Kill a node; its disk stays."""
        self._simulated.kill(node_id)

    def cut_power(self, node_id: int) -> None:
        """Cut the power of a node: it may lose unflushed data, and its peers are not notified."""
        self._simulated.cut_power(node_id)

    def begin_shutdown(self, node_id: int) -> None:
        """Begin a controlled shutdown of a node, as SIGTERM does."""
        self._simulated.shut_down(node_id)

    def stop(self, node_id: int) -> None:
        """Shut a node down in a controlled way, and advance the time until it has stopped."""
        self.begin_shutdown(node_id)
        self.run_until(lambda: self._simulated.has_stopped(node_id))

    def wipe(self, node_id: int) -> None:
        """Replace the disk of a stopped node with an empty one that has a new directory id."""
        self._simulated.wipe(node_id)

    def cut(self, *nodes: int) -> None:
        """Cut all links between these nodes until `heal`.

        Open connections deliver their data after `heal`. Attempts to open a connection time out.
        """
        for one, other in itertools.permutations(nodes, 2):
            self._simulated.network.set(Link(str(one), str(other)), Condition(cut=Cut.HOLD))

    def heal(self) -> None:
        """Restore all links."""
        self._simulated.network.heal_all()

    def _raise_failures(self) -> None:
        for node_id, machine in self._simulated.machines.items():
            if machine.failed and (node_id, machine.incarnation) not in self._failed:
                self._failed.add((node_id, machine.incarnation))
                raise OSError(f"node {node_id}: {machine.failed}")

    # Time

    def run(self, for_ms: int) -> None:
        """Advance the time step by step."""
        self.run_until(lambda: False, within_ms=for_ms, is_required=False)

    def run_until(self, condition: Callable[[], Any], *, within_ms: int = 30_000, is_required: bool = True) -> Any:
        """Advance the time until the condition is true, but at most by `within_ms`. Return the condition's last value.

        :param is_required: whether the test fails if the condition is still false at the end.
        """
        scheduler = self._simulated.scheduler
        value = None

        def holds() -> bool:
            nonlocal value
            self._raise_failures()
            value = condition()
            return bool(value)

        has_held = scheduler.run_until(holds, end_ms=scheduler.now_ms + within_ms)
        assert has_held or not is_required, f"the condition did not hold within {within_ms} ms"
        return value

    def jump(self, by_ms: int) -> None:
        """Advance the time while all nodes are paused. Actions that are due in the meantime run at the end."""
        for machine in self._simulated.machines.values():
            machine.pause()
        self.run(by_ms)
        for machine in self._simulated.machines.values():
            machine.resume()

    # Clients

    def request(
        self, node_id: int, api: str, version: int, *, listener: str = CLIENT, within_ms: int = 30_000, **fields: Any
    ) -> Any:
        """Return the response to a request on a new connection, or `CLOSED` if the connection is closed."""
        return self.request_entity(node_id, request(api, version, **fields), listener=listener, within_ms=within_ms)

    def request_entity(self, node_id: int, entity: Any, *, listener: str = CLIENT, within_ms: int = 30_000) -> Any:
        """Send a request entity on a new connection. Return its response, or `CLOSED` if the connection is closed."""
        responses = self.start_request_entity(node_id, entity, listener=listener)
        return self.run_until(lambda: responses, within_ms=within_ms)[0]

    def start_request(
        self, node_id: int, api: str, version: int, *, listener: str = CLIENT, **fields: Any
    ) -> list[Any]:
        """Send a request, and return an empty list to which its response is added when the time advances."""
        return self.start_request_entity(node_id, request(api, version, **fields), listener=listener)

    def start_request_entity(self, node_id: int, entity: Any, *, listener: str = CLIENT) -> list[Any]:
        """Send a request entity, and return an empty list to which its response is added when the time advances."""
        schema = load_response_schema(entity.__api_key__, entity.__version__)
        responses: list[Any] = []
        frame = encode_request(entity, next(self._correlation_ids), _CLIENT_NAME)
        connection = Connection(listener, is_controller=listener == CONTROLLER)
        self.send_bytes(node_id, connection, frame, schema, lambda received: responses.append(received[1]))
        return responses

    def send_bytes(
        self,
        node_id: int,
        connection: Connection,
        frame: bytes,
        schema: Any,
        on_response: Callable[[tuple[Any, Any]], None],
    ) -> None:
        """Send a frame on a connection, which is opened if it is not open.

        :param schema: schema of the response; if it is None, the response is not decoded.
        :param on_response: called with the connection and a response. The callback of the frame that opened the
            connection gets all responses on it, and `CLOSED` when the node closes it.
        """
        if connection not in self._connections:
            self._connections[connection] = self._connect(node_id, connection, on_response)
        self._schemas[connection, frame[_REQUEST_CORRELATION_ID]] = schema
        self._connections[connection].send(len(frame).to_bytes(_LENGTH_BYTES, "big") + frame)

    def _connect(
        self, node_id: int, connection: Connection, on_response: Callable[[tuple[Any, Any]], None]
    ) -> ClientConnection:
        def received(data: bytes) -> None:
            response = data[_LENGTH_BYTES:]
            schema = self._schemas.pop((connection, response[:_CORRELATION_ID_BYTES]), None)
            on_response((connection, response if schema is None else decode_response(schema, response)))

        def closed() -> None:
            del self._connections[connection]
            on_response((connection, CLOSED))

        return self._simulated.connect(_CLIENT_NAME, node_id, received, closed, connection.listener)

    def disconnect(self, connection: Connection) -> None:
        """Close a client's connection."""
        if connection in self._connections:
            self._connections.pop(connection).close()


class _Disks(MutableMapping[int, SimulatedDisk]):
    """Disks by node id. An assignment replaces the disk of a node, which uses it after its next start."""

    def __init__(self, simulated: SimulatedCluster) -> None:
        self._machines = simulated.machines

    def __getitem__(self, node_id: int) -> SimulatedDisk:
        return self._machines[node_id].disk

    def __setitem__(self, node_id: int, disk: SimulatedDisk) -> None:
        self._machines[node_id].disk = disk

    def __delitem__(self, node_id: int) -> None:
        raise TypeError("the disk of a node cannot be removed")

    def __iter__(self) -> Iterator[int]:
        return iter(self._machines)

    def __len__(self) -> int:
        return len(self._machines)
