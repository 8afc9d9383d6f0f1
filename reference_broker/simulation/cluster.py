"""Simulated cluster in one thread: machines, the network between them, and connections of clients.

Every message is encoded to bytes with the same codecs as between processes. The same seed and the same calls give the
same run.

    cluster = SimulatedCluster(3, seed=7)
    cluster.await_ready()
    cluster.kill(1)
    cluster.scheduler.run(5_000)
"""

import itertools
from collections.abc import Callable, Mapping
from random import Random
from uuid import UUID

from reference_broker.core.clock import Now
from reference_broker.core.connection import CONTROLLER_LISTENER, DEFAULT_LISTENER, Channel
from reference_broker.core.identity import Identity
from reference_broker.core.layout import Layout
from reference_broker.core.node import Node
from reference_broker.simulation.disk import SimulatedDisk
from reference_broker.simulation.machine import Machine
from reference_broker.simulation.network import Network
from reference_broker.simulation.pipe import End, Pipe
from reference_broker.simulation.scheduler import Scheduler
from reference_broker.simulation.trace import Trace

CLIENT, REPLICATION, CONTROLLER = DEFAULT_LISTENER, "REPLICATION", CONTROLLER_LISTENER
PORTS = {CLIENT: 9092, REPLICATION: 9093, CONTROLLER: 9094}
READY_MAX_MS = 60_000
"""Default time limit of `await_ready`."""
INITIAL_TASK_DELAY_MS = 300
"""Value of `log.initial.task.delay.ms`, because simulated nodes often run for less than Kafka's default of 30 s."""
_LISTENERS = {port: name for name, port in PORTS.items()}


def host_of(node_id: int) -> str:
    """Return the host name of a node."""
    return f"b{node_id}.kafka.test"


class SimulatedCluster:
    """Simulated cluster, which starts its nodes when it is created.

    :param size: nodes 1 to `size` are combined brokers and controllers.
    :param roles: `process.roles` by node id, for additional nodes and for nodes that have one role only.
    :param properties: Kafka properties of every node.
    :param node_properties: Kafka properties by node id; they override `properties`.
    :param delay_ms: delay of every link.
    :param jitter_ms: maximum of the random time that is added to the delay.
    :param trace: digest of the events; None for a new one.
    :ivar added: callbacks that `add_broker` calls with the new machine, before its node starts.
    """

    def __init__(
        self,
        size: int = 3,
        *,
        seed: int = 0,
        roles: Mapping[int, str] | None = None,
        properties: Mapping[str, str] | None = None,
        node_properties: Mapping[int, Mapping[str, str]] | None = None,
        delay_ms: int = 1,
        jitter_ms: int = 0,
        trace: Trace | None = None,
    ) -> None:
        self.scheduler = Scheduler()
        self.trace = trace or Trace()
        self.random = Random(seed)
        network_random = Random(self.random.getrandbits(64))
        self.network = Network(self.scheduler, self.trace, network_random, delay_ms=delay_ms, jitter_ms=jitter_ms)
        ids = range(1, size + 1)
        self.roles = dict.fromkeys(ids, "broker,controller") | dict(roles or {})
        self.properties = dict(properties or {})
        self.node_properties = {node_id: dict(own) for node_id, own in (node_properties or {}).items()}
        self.machines: dict[int, Machine] = {}
        self.added: list[Callable[[Machine], None]] = []
        self._voters = ",".join(
            f"{voter}@{host_of(voter)}:{PORTS[CONTROLLER]}"
            for voter, role in self.roles.items()
            if "controller" in role
        )
        self._directory_ids: dict[int, UUID] = {}
        self._node_ids: dict[str, int] = {}
        self._uuids = itertools.count(1)
        for node_id in self.roles:
            self._make_machine(node_id)
        for node_id in self.machines:
            self.start(node_id)

    def _make_machine(self, node_id: int) -> Machine:
        machine = Machine(node_id, self.scheduler, self.network, self.trace, self, random=self.random)
        self.machines[node_id] = machine
        self._directory_ids[node_id] = UUID(int=1000 + node_id)
        self._node_ids[host_of(node_id)] = node_id
        return machine

    @property
    def nodes(self) -> dict[int, Node]:
        """The running nodes."""
        return {node_id: machine.node for node_id, machine in self.machines.items() if machine.node is not None}

    # Start and end of nodes

    def start(self, node_id: int) -> None:
        """Start a node with the disk of its machine. If it cannot start, the machine's `failed` has the error."""
        machine = self.machines[node_id]
        properties = self._properties_of(node_id)
        layout = Layout.of(properties, node_id)
        incarnation_id = UUID(int=2_000_000 + 1000 * node_id + machine.incarnation)
        identity = Identity(node_id, "cluster", layout.advertised, self._directory_ids[node_id], incarnation_id)

        def make_node(now: Now) -> Node:
            return Node(
                identity,
                layout,
                properties,
                machine.disk,
                new_uuid=self._new_uuid,
                random_below=self.random.randrange,
                now=now,
                trace=machine.trace_event,
            )

        machine.run(make_node)

    def _new_uuid(self) -> UUID:
        return UUID(int=next(self._uuids))

    def kill(self, node_id: int) -> None:
        """Kill the process of a node. Its files are kept, including unflushed writes."""
        self.machines[node_id].kill()

    def cut_power(self, node_id: int) -> int:
        """Cut the power of a machine, which may lose unflushed data. Return the number of bytes that its files lose."""
        return self.machines[node_id].cut_power()

    def shut_down(self, node_id: int) -> None:
        """Begin a controlled shutdown of a node. `has_stopped` is true when the shutdown has completed."""
        self.machines[node_id].shut_down()

    def has_stopped(self, node_id: int) -> bool:
        """Whether the node is not running, after a shutdown, a failure, a kill or a power cut."""
        return self.machines[node_id].node is None

    def wipe(self, node_id: int) -> None:
        """Replace the disk of a machine with an empty one that has a new directory id. Its node must not be running."""
        machine = self.machines[node_id]
        assert machine.node is None, f"node {node_id} is running"
        machine.disk = SimulatedDisk()
        self._directory_ids[node_id] = UUID(int=self._directory_ids[node_id].int + 500)

    def add_broker(self, node_id: int, properties: Mapping[str, str] | None = None) -> None:
        """Add a machine with a broker that is not a voter, and start it."""
        self.roles[node_id] = "broker"
        self.node_properties[node_id] = dict(properties or {})
        machine = self._make_machine(node_id)
        for notify in self.added:
            notify(machine)
        self.start(node_id)

    def await_ready(self, within_ms: int = READY_MAX_MS) -> bool:
        """Advance time until every running node is ready. Return False if this takes longer than `within_ms`."""
        end_ms = self.scheduler.now_ms + within_ms
        return self.scheduler.run_until(lambda: all(node.is_ready for node in self.nodes.values()), end_ms=end_ms)

    # Addresses

    def place_of(self, channel: Channel) -> tuple[str, str]:
        """Return the place (the name of the machine) and the listener to which a channel leads."""
        return str(self._node_ids[channel.host]), _LISTENERS[channel.port]

    def accept(self, place: str, listener: str) -> Callable[[Pipe], End | None]:
        """Return the function that accepts a connection to a listener of the machine at a place."""
        return self.machines[int(place)].accept(listener, is_controller=listener == CONTROLLER)

    # Clients

    def connect(
        self,
        place: str,
        node_id: int,
        received: Callable[[bytes], None],
        closed: Callable[[], None],
        listener: str = CLIENT,
    ) -> "ClientConnection":
        """Open a connection from a client to a node.

        :param place: name of the client. Link faults that name it affect its connections.
        :param received: called with each response, including its length field.
        :param closed: called when the connection is closed, or cannot be opened.
        """
        end = End(place, received, closed)
        pipe = self.network.connect(end, str(node_id), listener, self.accept(str(node_id), listener))
        return ClientConnection(self.network, pipe)

    def _properties_of(self, node_id: int) -> dict[str, str]:
        listeners = ",".join(f"{name}://{host_of(node_id)}:{port}" for name, port in PORTS.items())
        return {
            "node.id": str(node_id),
            "process.roles": self.roles[node_id],
            "listeners": listeners,
            "inter.broker.listener.name": REPLICATION,
            "controller.listener.names": CONTROLLER,
            "controller.quorum.voters": self._voters,
            "log.dirs": "/data",
            "log.initial.task.delay.ms": str(INITIAL_TASK_DELAY_MS),
            **self.properties,
            **self.node_properties.get(node_id, {}),
        }


class ClientConnection:
    """The client's end of a connection to a node."""

    def __init__(self, network: Network, pipe: Pipe) -> None:
        self._network = network
        self._pipe = pipe

    @property
    def is_established(self) -> bool:
        """Whether the node has accepted the connection. Requests that are sent before that are delivered afterwards."""
        return self._pipe.is_established

    def send(self, data: bytes) -> None:
        """Send a request, including its length field. This has no effect after the connection is closed."""
        self._network.send(self._pipe, data, from_opener=True)

    def close(self) -> None:
        """Close the connection; no response is received afterwards."""
        self._network.close(self._pipe, by_opener=True)
