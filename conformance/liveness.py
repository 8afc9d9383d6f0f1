"""Whether a broker is still there."""

from fixtures.clients.raw import RawClient, RawClientError
from fixtures.targets.target import Node, Target


def answers(target: Target, node: Node, timeout_s: float) -> bool:
    """Whether the node answers an ApiVersions on a new connection. A proxy in front may accept for a dead broker."""
    with RawClient(node.host, node.port, timeout_s=timeout_s, transport=target.transport) as client:
        try:
            return bool(client.api_versions)
        except RawClientError:
            return False
