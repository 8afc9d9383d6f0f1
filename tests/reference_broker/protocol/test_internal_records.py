"""Records of internal topics: metadata, committed offsets, and their batches."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference_broker.protocol import metadata_records as records
from reference_broker.protocol.group_records import (
    OffsetCommitKey,
    OffsetCommitValue,
    decode_offset_commit,
    encode_offset_commit,
)
from reference_broker.protocol.records import KeyValue, decode_batches, encode_batch
from reference_broker.protocol.uuids import format_uuid, parse_uuid

int32 = st.integers(-(2**31), 2**31 - 1)
int64 = st.integers(-(2**63), 2**63 - 1)
uuids = st.uuids().filter(lambda uuid: uuid.int)
short_text = st.text(max_size=30)

metadata_records = st.one_of(
    st.builds(records.TopicRecord, name=short_text, topic_id=uuids),
    st.builds(
        records.PartitionRecord,
        partition_id=int32,
        topic_id=uuids,
        replicas=st.lists(int32).map(tuple),
        isr=st.lists(int32).map(tuple),
        leader=int32,
        leader_recovery_state=st.integers(0, 1),
        leader_epoch=int32,
        partition_epoch=int32,
        directories=st.lists(uuids).map(tuple),
    ),
    st.builds(
        records.ConfigRecord,
        resource_type=st.sampled_from([2, 4]),
        resource_name=short_text,
        name=short_text,
        value=st.none() | short_text,
    ),
    st.builds(records.RemoveTopicRecord, topic_id=uuids),
    st.builds(records.FeatureLevelRecord, name=short_text, feature_level=st.integers(0, 2**15 - 1)),
    st.builds(records.ProducerIdsRecord, broker_id=int32, broker_epoch=int64, next_producer_id=int64),
    st.builds(
        records.RegisterBrokerRecord,
        broker_id=int32,
        incarnation_id=uuids,
        broker_epoch=int64,
        end_points=st.lists(
            st.builds(records.BrokerEndpoint, name=short_text, host=short_text, port=st.integers(0, 2**16 - 1))
        ).map(tuple),
        features=st.just(()),
        rack=st.none() | short_text,
        fenced=st.booleans(),
        log_dirs=st.lists(uuids).map(tuple),
    ),
)


@given(metadata_records)
def test_metadata_records_round_trip(record):
    assert records.decode_metadata_record(records.encode_metadata_record(record)) == record


def test_bytes_of_a_metadata_record():
    """The bytes are frame version 1, type 2 (TopicRecord), version 0, a compact string, an id, no tagged fields."""
    record = records.TopicRecord(name="ab", topic_id=UUID(int=1))
    assert records.encode_metadata_record(record) == b"\x01\x02\x00\x03ab" + bytes(15) + b"\x01\x00"


def test_metadata_records_of_unknown_types_are_skipped():
    assert records.decode_metadata_record(b"\x01\x63\x00") is None


@pytest.mark.parametrize("value", [b"\x02\x02\x00", b"\x01\x02\x07"])
def test_metadata_records_of_newer_versions_are_rejected(value):
    with pytest.raises(ValueError, match="metadata record"):
        records.decode_metadata_record(value)


@given(
    st.builds(OffsetCommitKey, group=short_text, topic=short_text, partition=int32),
    st.none()
    | st.builds(OffsetCommitValue, offset=int64, leader_epoch=int32, metadata=short_text, commit_timestamp=int64),
)
def test_commits_round_trip(key, value):
    assert decode_offset_commit(*encode_offset_commit(key, value)) == (key, value)


@pytest.mark.parametrize(
    ("value", "leader_epoch"),
    [
        ("0000 0000000000000007 0004 6e6f7465 0000018bcfe56800", -1),
        ("0001 0000000000000007 0004 6e6f7465 0000018bcfe56800 0000018bcfe5ffff", -1),
        ("0003 0000000000000007 00000005 0004 6e6f7465 0000018bcfe56800", 5),
        ("0004 0000000000000007 00000005 05 6e6f7465 0000018bcfe56800 00", 5),
        ("0004 0000000000000007 00000005 05 6e6f7465 0000018bcfe56800 01 00 10 " + "ab" * 16, 5),
    ],
    ids=["version 0", "with an expiry", "with an epoch", "flexible", "with a topic id"],
)
@pytest.mark.parametrize("key_type", ["0000", "0001"])
def test_all_versions_of_kafkas_commits_are_decoded(key_type, value, leader_epoch):
    key = bytes.fromhex(key_type + "0001 67 0001 74 00000002")
    found = decode_offset_commit(key, bytes.fromhex(value))
    commit = OffsetCommitValue(offset=7, leader_epoch=leader_epoch, metadata="note", commit_timestamp=1_700_000_000_000)
    assert found == (OffsetCommitKey(group="g", topic="t", partition=2), commit)


def test_other_records_of_the_offsets_topic_are_skipped():
    assert decode_offset_commit(b"\x00\x02\x00\x01g", b"") is None


@given(
    st.lists(st.builds(KeyValue, st.none() | st.binary(max_size=20), st.none() | st.binary(max_size=20)), min_size=1),
    st.integers(0, 2**41),
)
def test_batches_round_trip(content, timestamp_ms):
    assert list(decode_batches(encode_batch(content, timestamp_ms))) == list(enumerate(content))


@given(st.uuids())
def test_uuids_round_trip_in_kafkas_text_form(uuid):
    assert parse_uuid(format_uuid(uuid)) == uuid
    assert len(format_uuid(uuid)) == 22
