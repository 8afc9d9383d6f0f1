"""Identity of a node: ids, and advertised endpoints."""

from dataclasses import dataclass
from uuid import UUID


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A listener by name, and where others reach it."""

    listener: str
    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.listener}://{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Identity:
    """Ids and endpoints of a node.

    :param endpoints: its advertised listeners, those for clients and for other brokers, in the order of the
        configuration; empty for a node that is no broker.
    :param directory_id: of its log directory, from `meta.properties` (KIP-858).
    :param incarnation_id: of this run of the process.
    """

    node_id: int
    cluster_id: str
    endpoints: tuple[Endpoint, ...]
    directory_id: UUID
    incarnation_id: UUID

    def endpoint(self, listener: str) -> Endpoint | None:
        """Where the clients of a listener reach this node; null for a listener that it does not advertise."""
        return next((endpoint for endpoint in self.endpoints if endpoint.listener == listener), None)
