"""The administrative requests of a client's steps."""

from chaos.simulation.clients.descriptions import description
from chaos.trial import (
    AlterTopicConfig,
    CreatePartitions,
    CreateTopic,
    DeleteTopic,
    Describe,
    ElectPreferredLeader,
    ReassignPartition,
)
from fixtures.clients import administration
from fixtures.clients.administration import AdminRequest, Election

ADMIN_TIMEOUT_MS = 2_000
AdministrativeStep = (
    CreateTopic
    | DeleteTopic
    | CreatePartitions
    | AlterTopicConfig
    | ReassignPartition
    | ElectPreferredLeader
    | Describe
)
ADMINISTRATIVE_STEPS = (
    CreateTopic,
    DeleteTopic,
    CreatePartitions,
    AlterTopicConfig,
    ReassignPartition,
    ElectPreferredLeader,
    Describe,
)


def admin_request(step: AdministrativeStep) -> AdminRequest:
    """Return the request of a step."""
    match step:
        case CreateTopic(topic, partitions, replication_factor, properties):
            return administration.create_topic(
                topic,
                partitions=partitions,
                replication_factor=replication_factor,
                properties=dict(properties),
                timeout_ms=ADMIN_TIMEOUT_MS,
            )
        case DeleteTopic(topic):
            return administration.delete_topic(topic, timeout_ms=ADMIN_TIMEOUT_MS)
        case CreatePartitions(total, topic):
            return administration.create_partitions(topic, total, timeout_ms=ADMIN_TIMEOUT_MS)
        case AlterTopicConfig(name, value, topic, validate_only):
            return administration.alter_topic_config(topic, name, value, validate_only=validate_only)
        case ReassignPartition(replicas, topic, partition):
            return administration.reassign(topic, partition, replicas, timeout_ms=ADMIN_TIMEOUT_MS)
        case ElectPreferredLeader(topic, partition):
            return administration.elect_leaders(topic, partition, Election.PREFERRED, timeout_ms=ADMIN_TIMEOUT_MS)
        case Describe(subject, topic):
            return description(subject, topic)
