"""The metadata image: application of records, copies, and snapshots."""

from dataclasses import replace
from uuid import UUID

import pytest

from reference_broker.core.configuration.resource import ResourceType
from reference_broker.core.metadata.delta import MetadataDelta
from reference_broker.core.metadata.image import MetadataImage
from reference_broker.protocol import metadata_records as records
from reference_broker.protocol.metadata_records import (
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    FeatureLevelRecord,
    FenceBrokerRecord,
    PartitionChangeRecord,
    ProducerIdsRecord,
    RemoveTopicRecord,
    TopicRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
)
from tests.reference_broker.metadata.story import BROKER, DIRECTORY, ORDERS, PARTITION, PAYMENTS, STORY


@pytest.fixture
def image():
    return image_of(STORY)


def image_of(story):
    image = MetadataImage()
    for record in story:
        image.apply(record)
    return image


def test_image_of_a_snapshot_is_equal(image):
    again = image_of(image.records())
    assert again.records() == image.records()
    assert again.topics == image.topics
    assert again.brokers == image.brokers
    assert again.next_producer_id == image.next_producer_id == 1000
    assert again.overrides(ResourceType.BROKER, "") == {"min.insync.replicas": "2"}


def test_snapshot_round_trips(image):
    encoded = [records.encode_metadata_record(record) for record in image.records()]
    assert image_of(map(records.decode_metadata_record, encoded)).records() == image.records()


def test_snapshot_starts_with_the_features(image):
    assert isinstance(image.records()[0], FeatureLevelRecord)


def test_copy_is_independent(image):
    before = image.records()
    copy = image.copy()
    assert copy.records() == before
    for record in (
        PartitionChangeRecord(partition_id=0, topic_id=ORDERS, isr=(1,)),
        UnregisterBrokerRecord(broker_id=1, broker_epoch=3),
        ConfigRecord(resource_type=2, resource_name="orders", name="retention.ms", value=None),
        RemoveTopicRecord(topic_id=PAYMENTS),
        FeatureLevelRecord(name="metadata.version", feature_level=0),
        ProducerIdsRecord(broker_id=1, next_producer_id=2000),
    ):
        copy.apply(record)
    assert image.records() == before
    assert copy.partition_by_id(ORDERS, 0).isr == (1,)
    assert copy.topics_by_id.keys() == {ORDERS}
    assert copy.features == {}


def test_partition_change_changes_only_its_fields(image):
    image.apply(PartitionChangeRecord(partition_id=1, topic_id=ORDERS, isr=(2,)))
    assert image.partition("orders", 1) == replace(PARTITION, partition_id=1, isr=(2,), partition_epoch=1)
    assert image.partition("orders", 0) == PARTITION


def test_partition_change_with_a_leader_increments_the_leader_epoch(image):
    for leader in (2, 2, -1):
        image.apply(PartitionChangeRecord(partition_id=0, topic_id=ORDERS, leader=leader))
    now = image.partition("orders", 0)
    assert (now.leader, now.leader_epoch, now.partition_epoch) == (-1, 3, 3)


def test_partition_change_with_all_fields(image):
    change = PartitionChangeRecord(
        partition_id=0,
        topic_id=ORDERS,
        isr=(3,),
        leader=3,
        replicas=(3, 1),
        removing_replicas=(1,),
        adding_replicas=(3,),
        leader_recovery_state=1,
        directories=(None, DIRECTORY),
        eligible_leader_replicas=(1,),
        last_known_elr=(2,),
    )
    image.apply(change)
    now = image.partition("orders", 0)
    assert (now.isr, now.leader, now.replicas, now.removing_replicas) == ((3,), 3, (3, 1), (1,))
    assert (now.adding_replicas, now.leader_recovery_state, now.directories) == ((3,), 1, (None, DIRECTORY))
    assert (now.eligible_leader_replicas, now.last_known_elr) == ((1,), (2,))


@pytest.mark.parametrize(
    ("record", "fenced", "in_controlled_shutdown"),
    [
        (UnfenceBrokerRecord(id=1, epoch=3), False, False),
        (FenceBrokerRecord(id=1, epoch=3), True, False),
        (BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=3, fenced=-1), False, False),
        (BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=3, fenced=1), True, False),
        (BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=3), True, False),
        (BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=3, in_controlled_shutdown=1), True, True),
    ],
)
def test_broker_registration_changes(image, record, fenced, in_controlled_shutdown):
    image.apply(record)
    assert image.brokers[1] == replace(BROKER, fenced=fenced, in_controlled_shutdown=in_controlled_shutdown)
    assert image.is_active(1) is not (fenced or in_controlled_shutdown)


def test_topic_is_deleted_with_its_configuration_and_can_be_created_again(image):
    image.apply(RemoveTopicRecord(topic_id=ORDERS))
    assert image.partition("orders", 0) is None
    assert image.topic_overrides("orders") == {}
    image.apply(TopicRecord(name="orders", topic_id=UUID(int=5)))
    assert image.topics["orders"].topic_id == UUID(int=5)


def test_partition_record_without_directories(image):
    image.apply(replace(PARTITION, partition_id=2, directories=()))
    assert image.partition("orders", 2).directories == (None, None)


def test_delta_has_the_changed_resources():
    delta = MetadataDelta.of([*STORY, RemoveTopicRecord(topic_id=PAYMENTS), FenceBrokerRecord(id=5, epoch=1)])
    assert {topic_id: {*indices} for topic_id, indices in delta.partitions.items()} == {ORDERS: {0, 1}, PAYMENTS: {0}}
    assert delta.deleted_topics == {PAYMENTS}
    assert delta.configs == {(2, "orders"), (4, "")}
    assert delta.brokers == {1, 2, 5}
    assert not delta.everything


@pytest.mark.parametrize("version", range(5))
def test_older_versions_of_a_registration(version):
    """Version 1 added a byte for the controlled shutdown, version 2 a byte for the migration from ZooKeeper."""
    plain = replace(BROKER, log_dirs=())
    encoded = records.encode_metadata_record(plain)
    before_flag, after_flag = encoded[:7], encoded[8:]
    older = before_flag + (encoded[7:8] if version >= 2 else b"") + after_flag
    if version < 1:
        older = older[:-2] + older[-1:]
    older = older[:2] + bytes([version]) + older[3:]
    assert records.decode_metadata_record(older) == plain


@pytest.mark.parametrize("version", range(3))
def test_older_versions_of_a_partition(version):
    plain = replace(PARTITION, directories=())
    encoded = records.encode_metadata_record(plain)
    older = encoded if version >= 1 else encoded[:-2] + encoded[-1:]
    assert records.decode_metadata_record(older[:2] + bytes([version]) + older[3:]) == plain
