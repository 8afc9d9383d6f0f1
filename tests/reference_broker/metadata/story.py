"""Metadata records that create a small cluster with two topics, shared by several tests."""

from dataclasses import replace
from uuid import UUID

from reference_broker.protocol.metadata_records import (
    BrokerEndpoint,
    BrokerFeature,
    ConfigRecord,
    FeatureLevelRecord,
    NoOpRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    TopicRecord,
)

ORDERS, PAYMENTS = UUID(int=1000), UUID(int=2000)
DIRECTORY = UUID(int=300)
BROKER = RegisterBrokerRecord(
    broker_id=1,
    incarnation_id=UUID(int=7),
    broker_epoch=3,
    end_points=(BrokerEndpoint(name="REPLICATION", host="b1", port=9093),),
    features=(BrokerFeature(name="metadata.version", min_supported_version=7, max_supported_version=30),),
    log_dirs=(DIRECTORY,),
)
PARTITION = PartitionRecord(
    partition_id=0,
    topic_id=ORDERS,
    replicas=(1, 2),
    isr=(1, 2),
    leader=1,
    leader_epoch=0,
    partition_epoch=0,
    directories=(DIRECTORY, None),
)
STORY = [
    FeatureLevelRecord(name="metadata.version", feature_level=30),
    BROKER,
    replace(BROKER, broker_id=2, broker_epoch=4),
    RegisterControllerRecord(controller_id=1, incarnation_id=UUID(int=7), end_points=(), features=()),
    TopicRecord(name="orders", topic_id=ORDERS),
    PARTITION,
    replace(PARTITION, partition_id=1),
    TopicRecord(name="payments", topic_id=PAYMENTS),
    replace(PARTITION, topic_id=PAYMENTS),
    ConfigRecord(resource_type=2, resource_name="orders", name="retention.ms", value="5"),
    ConfigRecord(resource_type=4, resource_name="", name="min.insync.replicas", value="2"),
    ProducerIdsRecord(broker_id=1, broker_epoch=3, next_producer_id=1000),
    NoOpRecord(),
]
