"""Connections to the brokers of one target, and API versions that both sides support."""

from collections.abc import Mapping
from typing import Final

import psutil

from conformance.liveness import responds
from fixtures.clients import requests
from fixtures.clients.broker_defaults import broker_settings
from fixtures.clients.messages import ApiKey, known_versions
from fixtures.clients.raw import RawClient
from fixtures.clients.requests import CLIENT_ID
from fixtures.clients.transport import Transport
from fixtures.targets.controls import ProcessControl, ProcessSupervision, ProcessTarget
from fixtures.targets.target import Capability, ExistingCluster, Node, Target, TargetError

RESPONSE_TIMEOUT_S: Final = 10.0
"""Timeout of one response: longer than the timeout in the requests (`layout.REQUEST_TIMEOUT_MS`)."""
_AFTER_SILENCE_S: Final = 2.0
"""Timeout of a response after one that did not arrive: otherwise a script with a silent broker would take minutes."""


class TargetDown(Exception):  # noqa: N818 - reads as what happened
    """Failure of a target: one of its brokers does not respond on a new connection.

    :ivar step: index of the step that was sent last; None outside a script.
    """

    step: int | None = None


class Connections:
    """One connection to each broker, opened when it is first used."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._clients: dict[int, RawClient] = {}
        self._response_timeout_s = RESPONSE_TIMEOUT_S
        self._first_resident_bytes: int | None = None
        self.controller: int | None = None
        """The broker that receives requests that need no leader or coordinator; None for the first broker.

        Set after NOT_CONTROLLER (before KRaft).
        """

    def find_controller(self) -> None:
        """Look up the controller by Metadata, and set `controller`."""
        self.controller = advertised_controller(self.client())

    def close(self) -> None:
        """Close every connection."""
        for client in self._clients.values():
            client.close()
        self._clients.clear()

    def begin_script(self) -> None:
        """Wait for each response as long as at first, whatever happened in earlier scripts."""
        if self._response_timeout_s != RESPONSE_TIMEOUT_S:
            self.close()
            self._response_timeout_s = RESPONSE_TIMEOUT_S

    def response_missed(self) -> None:
        """Close every connection, and wait less for the next responses of the script."""
        self.close()
        self._response_timeout_s = min(self._response_timeout_s, _AFTER_SILENCE_S)

    @property
    def transport(self) -> Transport:
        """The transport to the brokers, with its clock."""
        return self._target.transport

    def kill(self, node_id: int) -> None:
        """Kill a node. Raises `TargetDown` if that fails."""
        self.close()
        try:
            self._processes.kill(node_id)
        except TargetError as error:
            raise TargetDown(f"node {node_id} was not killed: {error}") from error

    def restart(self, node_id: int) -> None:
        """Start a node again that was killed. Raises `TargetDown` if it does not start."""
        self.close()
        try:
            self._processes.restart(node_id)
        except TargetError as error:
            raise TargetDown(f"node {node_id} was killed and did not start again: {error}") from error

    @property
    def _processes(self) -> ProcessControl:
        assert isinstance(self._target, ProcessTarget)  # the requirement needs the capability
        return self._target.processes

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The target's brokers."""
        return tuple(self._target.nodes)

    @property
    def are_direct(self) -> bool:
        """Whether clients connect to the brokers' own addresses, not to a mesh in front of an existing cluster."""
        is_meshed = (
            isinstance(self._target, ExistingCluster) and Capability.CLIENT_LINK_FAULTS in self._target.capabilities
        )
        return not is_meshed

    def client(self, node_id: int | None = None) -> RawClient:
        """Return the connection to a node (see `node`)."""
        node = self.node(node_id)
        if node.id not in self._clients:
            self._clients[node.id] = self.fresh_client(node_id)
        return self._clients[node.id]

    def fresh_client(self, node_id: int | None = None, client_id: str | None = CLIENT_ID) -> RawClient:
        """Return a new connection, to be closed by the caller."""
        node = self.node(node_id)
        return RawClient(node.host, node.port, client_id, timeout_s=self._response_timeout_s, transport=self.transport)

    def described(self, names: tuple[str, ...], node_id: int | None = None) -> Mapping[str, str | None]:
        """Return the settings that a node (see `node`) describes, by name; empty if it describes none."""
        node = self.node(node_id)
        return broker_settings(self.client(node.id), node.id, names)

    @property
    def last_request_bytes(self) -> int:
        """The largest of the last requests to each broker, without the length in front of it."""
        return max((client.last_request_bytes for client in self._clients.values()), default=0)

    def memory_growth_bytes(self) -> int:
        """Return the growth of the largest resident memory since the first call; 0 without known processes."""
        resident = max(map(self._resident_bytes, self.nodes))
        if self._first_resident_bytes is None:
            self._first_resident_bytes = resident
        return resident - self._first_resident_bytes

    def _resident_bytes(self, node: Node) -> int:
        if not isinstance(self._target, ProcessTarget) or not isinstance(self._target.processes, ProcessSupervision):
            return 0
        try:
            return int(psutil.Process(self._target.processes.pid(node.id)).memory_info().rss)
        except psutil.NoSuchProcess:
            return 0

    def node(self, node_id: int | None) -> Node:
        """Return the node with this id; the first node for None or an id that the target does not have."""
        return next((node for node in self.nodes if node.id == node_id), self.nodes[0])

    def are_live(self, timeout_s: float) -> bool:
        """Whether every broker responds, each within the timeout."""
        return responds(self._target, timeout_s)


def advertised_controller(client: RawClient) -> int:
    """Return the controller id in a Metadata response, or -1. Before KRaft, this is the id of the active controller."""
    metadata = client.request(requests.metadata(client.schema_for(ApiKey.METADATA), ()))
    return int(getattr(metadata, "controller_id", -1))


def version_for(client: RawClient, key: ApiKey, wanted: int | None) -> int:
    """Return the newest shared version up to `wanted` (None: any), or the oldest shared one if all are newer."""
    shared = shared_versions(client, key)
    return max((version for version in shared if wanted is None or version <= wanted), default=shared[0])


def shared_versions(client: RawClient, key: ApiKey) -> list[int]:
    """Return the versions of an API that both sides support, the oldest first."""
    newest = client.version_for(key)
    lowest_offered = client.api_versions[key][0]
    return [version for version in known_versions(key) if lowest_offered <= version <= newest]
