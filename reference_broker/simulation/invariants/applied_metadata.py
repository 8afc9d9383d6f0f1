"""Agreement of the state of a broker with the metadata that it has applied.

| name                | what must hold                                                                                |
|---------------------|-----------------------------------------------------------------------------------------------|
| `replicas-assigned` | a broker has the replicas that the metadata assign to it, with their topic ids, and no others |
| `role-applied`      | a replica is leader, follower or offline as in the metadata, with the same leader epoch and   |
|                     | replicas. Its partition epoch is the same or higher, because an AlterPartition response may   |
|                     | arrive before the metadata                                                                    |
| `isr-applied`       | at the partition epoch of the metadata, a leader's committed ISR is that of the metadata      |
| `configs-applied`   | each log's configuration and the broker's dynamic configurations are those of the metadata    |
| `fetchers-applied`  | a broker fetches exactly the partitions that it follows and whose leader is registered, each  |
|                     | from its leader. Its counts of the partitions of each idle fetcher are correct                |
| `leaders-first`     | a large change, which is applied in several events, starts leaders before followers           |

A large change of the metadata is applied in several events. `leaders-first` is checked after the first one,
`isr-applied` after each change of a replica, and the other invariants after the last event.
"""

from collections import Counter

from reference_broker.core.broker import Broker
from reference_broker.core.configuration.key import ConfigSource
from reference_broker.core.configuration.resource import ResourceType
from reference_broker.core.metadata.image import CLUSTER_DEFAULT
from reference_broker.core.replication.log_manager import log_config
from reference_broker.core.replication.partition import NO_LEADER, Partition, ReplicaRole
from reference_broker.protocol.metadata_records import PartitionRecord
from reference_broker.simulation.invariants.violation import InvariantViolation
from reference_broker.simulation.invariants.watch import Before, Observer, Replica, Watched


class AppliedMetadataInvariants(Observer):
    """Checks of brokers that apply metadata."""

    def metadata_advanced(self, watched: Watched, from_offset: int) -> None:
        """Check the replicas that the first event of a change of the metadata has started."""
        if not watched.is_applying:
            check_leaders_first(watched)

    def metadata_applied(self, watched: Watched) -> None:
        """Check a broker that has applied all of its metadata."""
        check_applied_metadata(watched)

    def changed(self, watched: Watched, replica: Replica, before: Before) -> None:
        """Check the ISR of a leader."""
        if replica.is_leader:
            _check_isr(watched, replica)


def check_applied_metadata(watched: Watched) -> None:
    """Compare a broker with its metadata image.

    :raises InvariantViolation: an invariant of the table is violated.
    """
    node = watched.node
    if node is None or node.broker is None or not node.is_serving:
        return
    broker = node.broker
    _check_assignment(watched.node_id, broker)
    for partition in broker.replicas:
        record = broker.image.partition(*partition.key)
        assert record is not None
        _check_role(watched.node_id, partition, record)
        _check_settings(watched.node_id, broker, partition)
    _check_broker_settings(watched.node_id, broker)
    _check_fetches(watched.node_id, broker)


def check_leaders_first(watched: Watched) -> None:
    """Check that a broker has started no follower while a leader of the same change waits.

    :raises InvariantViolation: `leaders-first`.
    """
    broker = None if watched.node is None else watched.node.broker
    if broker is None or not broker.replicas.has_unapplied_metadata:
        return
    started = [partition for partition in broker.replicas if partition.key not in watched.by_name]
    followers = [partition.key for partition in started if partition.role is ReplicaRole.FOLLOWER]
    waiting = [
        (topic.name, index)
        for topic in broker.image.topics.values()
        for index, record in topic.partitions.items()
        if record.leader == watched.node_id and broker.replicas.get(topic.name, index) is None
    ]
    if followers and waiting:
        detail = f"node {watched.node_id} has started the followers {followers} before the leaders {waiting}"
        raise InvariantViolation("leaders-first", detail)


def _check_assignment(node_id: int, broker: Broker) -> None:
    assigned = {
        (topic.name, topic.topic_id, index)
        for topic in broker.image.topics.values()
        for index, record in topic.partitions.items()
        if node_id in record.replicas
    }
    has = {(partition.topic, partition.topic_id, partition.index) for partition in broker.replicas}
    for name, _, index in assigned ^ has:
        verb = "lacks" if (name, _, index) in assigned else "keeps"
        detail = f"node {node_id} {verb} the replica {name}-{index} at offset {broker.metadata_offset}"
        raise InvariantViolation("replicas-assigned", detail)


def _check_role(node_id: int, partition: Partition, record: PartitionRecord) -> None:
    role = ReplicaRole.OFFLINE if record.leader == NO_LEADER else ReplicaRole.FOLLOWER
    role = ReplicaRole.LEADER if record.leader == node_id else role
    expected = record.leader_epoch, record.leader, role, tuple(record.replicas)
    found = partition.leader_epoch, partition.leader, partition.role, partition.replicas
    if found != expected or partition.partition_epoch < record.partition_epoch:
        place = f"{partition.topic}-{partition.index} on node {node_id}"
        detail = f"leader epoch, leader, role and replicas are {found}, in the metadata {expected}"
        epochs = f"the partition epoch is {partition.partition_epoch}, in the metadata {record.partition_epoch}"
        raise InvariantViolation("role-applied", f"{place}: {detail}; {epochs}")


def _check_isr(watched: Watched, replica: Replica) -> None:
    assert watched.node is not None
    assert watched.node.broker is not None
    assert replica.isr is not None
    record = watched.node.broker.image.partition_by_id(*replica.key)
    if record is None or record.partition_epoch != replica.partition_epoch:
        return
    if replica.isr.isr != set(record.isr):
        found = f"{sorted(replica.isr.isr)} in partition epoch {record.partition_epoch}"
        raise InvariantViolation("isr-applied", f"{replica}: the ISR is {found}, not {sorted(record.isr)}")


def _check_settings(node_id: int, broker: Broker, partition: Partition) -> None:
    configuration = broker.replicas.configuration(partition.topic)
    expected = log_config(configuration), configuration.integer("min.insync.replicas")
    found = partition.log.config, partition.min_insync_replicas
    if found != expected:
        detail = f"{partition.topic}-{partition.index} on node {node_id} uses {found}, not {expected}"
        raise InvariantViolation("configs-applied", detail)


def _check_broker_settings(node_id: int, broker: Broker) -> None:
    configuration, image = broker.configuration, broker.image
    for source, name in (
        (ConfigSource.DYNAMIC_BROKER, str(node_id)),
        (ConfigSource.DYNAMIC_DEFAULT_BROKER, CLUSTER_DEFAULT),
    ):
        expected = image.overrides(ResourceType.BROKER, name)
        if dict(configuration.given(source)) != dict(expected):
            detail = f"node {node_id} uses {dict(configuration.given(source))} of {source.name}, not {expected}"
            raise InvariantViolation("configs-applied", detail)


def _check_fetches(node_id: int, broker: Broker) -> None:
    fetchers = broker.replicas.fetchers
    registered = broker.image.brokers
    expected = {
        partition.key: partition.leader
        for partition in broker.replicas
        if partition.role is ReplicaRole.FOLLOWER and partition.leader in registered
    }
    found = {key: fetcher.leader for key, fetcher in fetchers.fetcher_ids.items() if fetcher.leader in registered}
    if found != expected:
        raise InvariantViolation("fetchers-applied", f"node {node_id} fetches {found}, and follows {expected}")
    counted = Counter(fetchers.idle_fetcher_ids.values())
    if (
        counted != +Counter(fetchers.partition_counts)
        or fetchers.idle_fetcher_ids.keys() != fetchers.fetcher_ids.keys()
    ):
        detail = f"node {node_id} counts {dict(fetchers.partition_counts)} partitions by fetcher, not {dict(counted)}"
        raise InvariantViolation("fetchers-applied", detail)
