"""Identity of a node: ids, and advertised endpoints."""

from dataclasses import dataclass
from uuid import UUID


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Name and advertised address of a listener."""

    listener: str
    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.listener}://{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Identity:
    """Ids and endpoints of a node.

    :param endpoints: the advertised listeners for clients and other brokers, in the order of the configuration; empty
        for a node that is not a broker.
    :param directory_id: id of the log directory, from `meta.properties` (KIP-858).
    :param incarnation_id: id of this run of the process.
    """

    node_id: int
    cluster_id: str
    endpoints: tuple[Endpoint, ...]
    directory_id: UUID
    incarnation_id: UUID
