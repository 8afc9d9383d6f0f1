"""Liveness probe of brokers."""

from fixtures.clients.raw import RawClient, RawClientError
from fixtures.targets.target import Node, Target, TargetError

_PROBE_TIMEOUT_S = 5.0


def responds(target: Target, timeout_s: float = _PROBE_TIMEOUT_S) -> bool:
    """Whether the target is started and every node of it is responsive, each within the timeout."""
    try:
        nodes = target.nodes
    except TargetError:  # it was stopped, for example because the run was interrupted
        return False
    return all(is_responsive(target, node, timeout_s) for node in nodes)


def is_responsive(target: Target, node: Node, timeout_s: float) -> bool:
    """Whether the node responds to ApiVersions; a connection is not enough, as a proxy accepts it for a dead broker."""
    with RawClient(node.host, node.port, timeout_s=timeout_s, transport=target.transport) as client:
        try:
            return bool(client.api_versions)
        except RawClientError:
            return False
