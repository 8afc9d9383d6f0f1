"""Simulated brokers behind the raw client's transport: waiting advances virtual time.

A listener of the real server splits the received bytes into requests. The simulated network carries whole requests, so
`_SimulatedStream` splits the bytes before it sends them. It uses the listener's `FrameBuffer`, and closes the
connection in the same cases as the listener.
"""

from collections.abc import Callable

from chaos.simulation.stage import SimulatedStage
from fixtures.clients.transport import Stream
from reference_broker.protocol.errors import MalformedRequestError
from reference_broker.protocol.framing import FrameBuffer
from reference_broker.simulation.clock import WALL_START_MS
from reference_broker.simulation.cluster import CLIENT, PORTS, SimulatedCluster, host_of

PLACE = "client"
"""Name of all these clients as one end of a link; nodes have their ids as names."""
REQUEST_MAX_BYTES = 100 * 1024 * 1024
"""Kafka's default of `socket.request.max.bytes`."""


class SimulatedTransport:
    """Transport to the brokers of one simulated cluster, and its clock."""

    def __init__(self, cluster: SimulatedCluster, stage: SimulatedStage) -> None:
        self._cluster = cluster
        self._stage = stage

    def connect(self, host: str, port: int, timeout_s: float) -> Stream:
        """Open a connection to a node's listener for clients."""
        node_id = next((node_id for node_id in self._cluster.machines if host_of(node_id) == host), None)
        if node_id is None or port != PORTS[CLIENT]:
            raise ConnectionRefusedError(f"no listener at {host}:{port}")
        return _SimulatedStream(self._cluster, self._stage, node_id, timeout_s)

    def monotonic(self) -> float:
        """Return the virtual seconds since the start."""
        return self._cluster.scheduler.now_ms / 1000

    def monotonic_ns(self) -> int:
        """Return the virtual nanoseconds since the start; two calls never return the same number."""
        return self._cluster.scheduler.now_ns()

    def time(self) -> float:
        """Return the seconds since 1970 by a virtual wall clock that no fault changes."""
        return (WALL_START_MS + self._cluster.scheduler.now_ms) / 1000

    def sleep(self, seconds: float) -> None:
        """Advance virtual time."""
        self._stage.wait(lambda: False, max(1, round(seconds * 1000)))


class _SimulatedStream:
    """One connection to one node."""

    def __init__(self, cluster: SimulatedCluster, stage: SimulatedStage, node_id: int, timeout_s: float) -> None:
        self._stage = stage
        self._requests = FrameBuffer(REQUEST_MAX_BYTES)
        self._received = bytearray()
        self._is_closed = False
        self._connection = cluster.connect(PLACE, node_id, self._received.extend, self._closed)
        self._await(lambda: self._connection.is_established or self._is_closed, timeout_s)
        if self._is_closed:
            raise ConnectionRefusedError(f"node {node_id} accepts no connection")

    def send(self, data: bytes, timeout_s: float) -> None:
        """Send the requests that are complete, and keep the rest. An invalid length closes the connection."""
        if self._is_closed:
            raise ConnectionResetError("the connection is closed")
        self._requests.feed(data)
        try:
            while (frame := self._requests.next_frame()) is not None:
                self._connection.send(len(frame).to_bytes(4, "big") + frame)
        except MalformedRequestError:
            self._connection.close()
            self._is_closed = True

    def receive(self, size_max: int, timeout_s: float) -> bytes:
        """Return received bytes; none if the connection is closed and all bytes were returned."""
        self._await(lambda: bool(self._received) or self._is_closed, timeout_s)
        data = bytes(self._received[:size_max])
        del self._received[:size_max]
        return data

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()
        self._is_closed = True

    def _closed(self) -> None:
        self._is_closed = True

    def _await(self, condition: Callable[[], bool], timeout_s: float) -> None:
        if not self._stage.wait(condition, max(1, round(timeout_s * 1000))):
            raise TimeoutError
