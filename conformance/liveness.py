"""Liveness probe of brokers."""

from fixtures.clients.raw import RawClient, RawClientError
from fixtures.targets.target import Node, Target


def is_responsive(target: Target, node: Node, timeout_s: float) -> bool:
    """Whether the node responds to ApiVersions on a new connection; a proxy may accept one for a dead broker."""
    with RawClient(node.host, node.port, timeout_s=timeout_s, transport=target.transport) as client:
        try:
            return bool(client.api_versions)
        except RawClientError:
            return False
