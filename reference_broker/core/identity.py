"""Who a broker is."""

from dataclasses import dataclass
from uuid import UUID


@dataclass(frozen=True, slots=True)
class Identity:
    """What tells this broker from others.

    :param host: of the advertised listener, as `port`.
    :param directory_id: of its log directory, from `meta.properties` (KIP-858).
    :param incarnation_id: of this run of the process.
    """

    node_id: int
    cluster_id: str
    host: str
    port: int
    directory_id: UUID
    incarnation_id: UUID
