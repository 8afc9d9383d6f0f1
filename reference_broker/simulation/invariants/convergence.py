"""Convergence of a cluster after its faults: the liveness condition. The caller bounds the time that it may take."""

from collections.abc import Collection, Iterator

from reference_broker.core.node import Node
from reference_broker.core.quorum.quorum_state import Leader
from reference_broker.core.replication.partition import Partition
from reference_broker.protocol.metadata_records import PartitionRecord
from reference_broker.simulation.cluster import SimulatedCluster


def converged(cluster: SimulatedCluster, *, without: Collection[int] = ()) -> str | None:
    """Return a reason why a cluster has not converged yet; None if it has converged.

    A cluster has converged under these conditions:
    - Every node runs and is ready. It has applied the metadata to all replicas, and has deleted removed replicas.
    - All nodes agree on the leader of the quorum, and have applied the metadata up to the same offset. Exactly one
      controller is active. The leader of the quorum knows all observers.
    - Every replica has the directory of its broker in the metadata. Every partition has a leader. All replicas are in
      sync and have the same log end, all records are committed, and no reassignment is in progress.

    :param without: nodes that are not expected to restart; their replicas may be missing.
    """
    return next(_reasons(cluster, without), None)


def _reasons(cluster: SimulatedCluster, without: Collection[int]) -> Iterator[str]:
    nodes: dict[int, Node] = {}
    for node_id, machine in cluster.machines.items():
        if machine.node is not None:
            nodes[node_id] = machine.node
        elif node_id not in without:
            yield f"node {node_id} does not run{': ' * bool(machine.failed)}{machine.failed}"
    for node_id, node in nodes.items():
        if not node.is_ready:
            yield f"node {node_id} is not ready"
        elif node.broker is not None and node.broker.replicas.has_unapplied_metadata:
            yield f"node {node_id} has not applied the metadata to all its replicas"
        elif node.broker is not None and node.broker.replicas.is_deleting:
            yield f"node {node_id} has not deleted all replicas that were removed"
    yield from _quorum_reasons(nodes)
    if nodes:
        yield from _partition_reasons(nodes, without)


def _quorum_reasons(nodes: dict[int, Node]) -> Iterator[str]:
    views = {node_id: (node.quorum.state.leader_id, node.quorum.state.epoch) for node_id, node in nodes.items()}
    if len(set(views.values())) > 1 or any(leader < 0 for leader, _ in views.values()):
        yield f"the quorum does not agree on a leader and its epoch: {views}"
    controllers = [node_id for node_id, node in nodes.items() if node.controller and node.controller.is_active]
    if len(controllers) != 1:
        yield f"active controllers: {controllers}"
    for leader in (nodes[node_id].quorum for node_id in controllers):
        known = {key.id for key in leader.state.observer_states} if isinstance(leader.state, Leader) else set()
        unknown = [node_id for node_id in nodes if node_id not in leader.voters.ids and node_id not in known]
        if unknown:
            yield f"the leader of the quorum does not know that {unknown} follow it"
    offsets = {node_id: node.metadata.offset for node_id, node in nodes.items()}
    if len(set(offsets.values())) > 1:
        yield f"metadata are applied up to {offsets}"


def _partition_reasons(nodes: dict[int, Node], without: Collection[int]) -> Iterator[str]:
    image = next(iter(nodes.values())).metadata.image
    for topic in image.topics.values():
        for index, record in topic.partitions.items():
            replicas: dict[int, Partition] = {}
            for node_id in record.replicas:
                broker = nodes[node_id].broker if node_id in nodes else None
                found = None if broker is None else broker.replicas.get(topic.name, index)
                if found is not None:
                    replicas[node_id] = found
            yield from _directory_reasons(f"{topic.name}-{index}", record, nodes)
            yield from _replica_reasons(f"{topic.name}-{index}", record, replicas, without)


def _directory_reasons(name: str, record: PartitionRecord, nodes: dict[int, Node]) -> Iterator[str]:
    """Yield a reason for each replica whose directory in the metadata is not that of its broker (KIP-858)."""
    for node_id, directory in zip(record.replicas, record.directories, strict=True):
        if node_id in nodes and nodes[node_id].runtime.identity.directory_id != directory:
            yield f"{name}: replica {node_id} has the directory {directory} in the metadata, which is not the broker's"


def _replica_reasons(
    name: str, record: PartitionRecord, replicas: dict[int, Partition], without: Collection[int]
) -> Iterator[str]:
    leader = replicas.get(record.leader)
    if leader is None or not leader.is_leader:
        yield f"{name} has no leader"
        return
    for node_id in record.replicas:
        if node_id in without:
            continue
        if node_id not in record.isr:
            yield f"{name}: replica {node_id} is not in the ISR {sorted(record.isr)}"
        elif node_id not in replicas:
            yield f"{name}: node {node_id} has no replica"
        elif replicas[node_id].log.log_end_offset != leader.log.log_end_offset:
            yield f"{name}: the log of replica {node_id} does not end where that of the leader {record.leader} ends"
        elif replicas[node_id].high_watermark != leader.log.log_end_offset:
            yield f"{name}: the high watermark of replica {node_id} is not at the log end"
    if record.removing_replicas or record.adding_replicas:
        yield f"{name} is being reassigned"
