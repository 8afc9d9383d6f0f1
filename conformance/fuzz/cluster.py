"""The cluster of a fuzzing session: its topics, the discovery of its metadata, and connections to every listener."""

import random
import socket
import struct
import uuid
from collections.abc import Mapping
from contextlib import suppress
from typing import Final, Protocol

from conformance.concurrent.run import HistoryRun, await_full_isr
from conformance.concurrent.trial_context import ScriptNotRunError, TrialContext
from conformance.fuzz.generator import FuzzRequest
from conformance.fuzz.probe import ProbedNode
from conformance.fuzz.world import TOPICS, WITNESS, Port, World, uuid_of
from conformance.trial.trial import Topic
from fixtures.clients import requests
from fixtures.clients.messages import ApiKey
from fixtures.clients.raw import RawClient
from fixtures.targets.controls import Listener, LogDirectories, NodeAccess, SupervisedTarget
from fixtures.targets.meta_properties import read_meta_properties
from fixtures.targets.target import Target

_LISTENERS: Final = {Port.CLIENT: None, Port.REPLICATION: Listener.REPLICATION, Port.CONTROLLER: Listener.CONTROLLER}
_PARTITIONS: Final = 2
_SEND_TIMEOUT_S: Final = 0.5
_AWAITED_MAX: Final = 4
"""Number of requests without a received byte after which a connection is closed."""
_CONNECTIONS: Final = 2
"""Number of connections to each listener."""
_RESET: Final = struct.pack("ii", 1, 0)
"""SO_LINGER of zero seconds: closing sends RST."""


class FuzzTarget(Target, SupervisedTarget, NodeAccess, LogDirectories, Protocol):
    """A cluster of processes on this machine."""


def make_topics(run: HistoryRun) -> TrialContext:
    """Create the topics that the fuzzed requests name, and the witness topic. Raises `ScriptNotRunError`."""
    replicas = min(3, len(run.target.nodes))
    with run.raw_client() as admin:
        for name, properties in TOPICS.items():
            created = admin.create_topic(
                name, partitions=_PARTITIONS, replication_factor=replicas, properties=properties
            )
            if created.error is not None:
                raise ScriptNotRunError(f"CreateTopics of {name} returned {created.error}")
        settings = Topic(partitions=_PARTITIONS, replication_factor=replicas)
        for name in TOPICS:
            if await_full_isr(admin, name, settings, run.target.transport) is None:
                raise ScriptNotRunError(f"{name} has no full ISR")
        return run.make_topic(WITNESS, settings, admin)


def discover(target: FuzzTarget) -> World:
    """Query metadata, advertised versions and directory ids of a cluster that has the topics of `make_topics`."""
    first = target.nodes[0]
    with RawClient(first.host, first.port) as client:
        metadata = client.request(requests.metadata(client.schema_for(ApiKey.METADATA), [*TOPICS, WITNESS]))
    nodes = tuple(node.id for node in target.nodes)
    return World(
        cluster_id=str(metadata.cluster_id),
        nodes=nodes,
        topic_ids={str(topic.name): topic.topic_id for topic in metadata.topics},
        served={port: _served(target, nodes[0], port) for port in Port},
        directory_ids=_directory_ids(target),
        kind=target.kind,
    )


def _served(target: FuzzTarget, node: int, port: Port) -> Mapping[int, tuple[int, int]]:
    host, number = target.address(node, _LISTENERS[port])
    with RawClient(host, number) as client:
        return client.api_versions


def _directory_ids(target: FuzzTarget) -> dict[int, uuid.UUID]:
    ids = {}
    for node in target.nodes:
        properties = read_meta_properties(target.log_directories(node.id)[0])
        if "directory.id" in properties:
            ids[node.id] = uuid_of(properties["directory.id"])
    return ids


def address_of(target: FuzzTarget, request: FuzzRequest) -> tuple[str, int]:
    """Return the address of the listener that a request is for."""
    return target.address(request.node, _LISTENERS[request.port])


def probed_nodes(target: FuzzTarget) -> list[ProbedNode]:
    """Return the nodes with the addresses of their client listeners and their pids."""
    return [ProbedNode(node.id, *target.address(node.id, None), target.processes.pid(node.id)) for node in target.nodes]


class FuzzConnections:
    """Connections to each listener of each node. Responses are discarded; a closed connection is opened again."""

    def __init__(self, target: FuzzTarget, rng: random.Random) -> None:
        self._target = target
        self._rng = rng
        self._open: dict[tuple[int, Port, int], _Connection] = {}

    def send(self, request: FuzzRequest) -> None:
        """Send a request without waiting for the response. Drop it if no connection can be opened or the send fails."""
        place = (request.node, request.port, self._rng.randrange(_CONNECTIONS))
        with suppress(OSError):
            if place in self._open and not self._open[place].is_usable():
                self._open.pop(place).close(reset=self._rng.random() < 0.5)
            if place not in self._open:
                self._open[place] = _Connection(address_of(self._target, request))
            self._open[place].send(request.data)
            return
        if place in self._open:
            self._open.pop(place).close()

    def close(self) -> None:
        """Close all connections."""
        for connection in self._open.values():
            connection.close()
        self._open.clear()


class _Connection:
    def __init__(self, address: tuple[str, int]) -> None:
        self._socket = socket.create_connection(address, timeout=_SEND_TIMEOUT_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._awaited = 0

    def send(self, data: bytes) -> None:
        """Send a frame. Raises `OSError`, also if the node does not read it in time."""
        self._awaited += 1
        self._socket.settimeout(_SEND_TIMEOUT_S)
        self._socket.sendall(data)

    def is_usable(self) -> bool:
        """Whether the connection is open and few responses are awaited. Discards what has been received."""
        self._socket.settimeout(0)
        try:
            while received := self._socket.recv(1 << 18):
                self._awaited = 0
                del received
        except BlockingIOError:
            return self._awaited < _AWAITED_MAX
        except OSError:
            return False
        return False

    def close(self, *, reset: bool = False) -> None:
        if reset:
            with suppress(OSError):
                self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self._socket.close()
