"""What must hold for the files of a node that runs: it knows of them.

| name              | what must hold                                                                                  |
|-------------------|-------------------------------------------------------------------------------------------------|
| `snapshots-known` | the snapshots beside the metadata log are those that the node would give to others (KIP-630)    |
| `no-stray-logs`   | a broker that has applied metadata has no log but those of its replicas, and of its quorum      |
"""

from reference_broker.core.node import Node
from reference_broker.core.quorum.quorum_log import QUORUM_LOG_DIRECTORY
from reference_broker.simulation.invariants.violation import InvariantViolation
from reference_broker.simulation.invariants.watch import Observer, Watched


class FilesInvariants(Observer):
    """An observer of a watch."""

    def quorum_changed(self, watched: Watched) -> None:
        """See the table."""
        assert watched.node is not None
        _check_snapshots(watched, watched.node)

    def metadata_advanced(self, watched: Watched, from_offset: int) -> None:
        """See the table."""
        assert watched.node is not None
        if watched.node.broker is not None and watched.node.is_serving:
            _check_strays(watched, watched.node)


def _check_snapshots(watched: Watched, node: Node) -> None:
    names = node.runtime.disk.list(QUORUM_LOG_DIRECTORY)
    there = sorted(name for name in names if name.endswith(".checkpoint"))
    known = sorted(f"{end:020d}-{epoch:010d}.checkpoint" for end, epoch in node.quorum.log.snapshots._ids)
    if there != known:
        raise InvariantViolation("snapshots-known", f"node {watched.node_id} has {there}, and knows of {known}")


def _check_strays(watched: Watched, node: Node) -> None:
    assert node.broker is not None
    own = {partition.log.directory for partition in node.broker.replicas} | {QUORUM_LOG_DIRECTORY}
    for name in node.runtime.disk.list(""):
        if name not in own and node.runtime.disk.exists(f"{name}/partition.metadata"):
            raise InvariantViolation("no-stray-logs", f"node {watched.node_id} keeps {name}, which is no replica of it")
