"""Produce: responses and appended records."""

import pytest
from kio.schema.errors import ErrorCode

from fixtures.clients.record_batch import decode_batches
from reference_broker.core.connection import Connection
from tests.reference_broker.scripted import CLOSED, START_MS, ScriptedBroker, batch, fetch_fields


@pytest.fixture
def broker() -> ScriptedBroker:
    broker = ScriptedBroker()
    broker.create_topic()
    return broker


def test_offsets_are_dense_and_rise(broker):
    assert broker.produce(batch(b"a", b"b")).base_offset == 0
    assert broker.produce(batch(b"c")).base_offset == 2
    assert broker.produce(batch(b"d"), acks=1).base_offset == 3
    read = broker.fetch(0)
    assert [record.value for found in decode_batches(read.records) for record in found.records] == [
        b"a",
        b"b",
        b"c",
        b"d",
    ]
    assert (read.high_watermark, read.last_stable_offset, read.log_start_offset) == (4, 4, 0)


@pytest.mark.parametrize("acks", [2, -2, 7])
def test_other_acks_are_rejected(broker, acks):
    response = broker.produce(batch(b"a"), acks=acks)
    assert (response.error_code, response.base_offset) == (ErrorCode.invalid_required_acks, -1)
    assert broker.fetch(0).high_watermark == 0


def test_acks_0_has_no_response_and_appends(broker):
    data = [{"name": "orders", "partition_data": [{"index": 0, "records": batch(b"a")}]}]
    assert broker.send("Produce", 9, acks=0, topic_data=data) == []
    assert broker.fetch(0).high_watermark == 1


def test_acks_0_with_an_error_closes_the_connection(broker):
    data = [{"name": "nowhere", "partition_data": [{"index": 0, "records": batch(b"a")}]}]
    assert broker.send("Produce", 9, acks=0, topic_data=data) == [(broker.connection, CLOSED)]


def test_unknown_topic_and_partition_are_rejected(broker):
    assert broker.produce(batch(b"a"), topic="nowhere").error_code == ErrorCode.unknown_topic_or_partition
    assert broker.produce(batch(b"a"), partition=1).error_code == ErrorCode.unknown_topic_or_partition


def test_by_topic_id_only_the_existing_topic_is_written(broker):
    topic_id = broker.broker.image.topics["orders"].topic_id
    requested = [{"topic_id": topic_id, "partition_data": [{"index": 0, "records": batch(b"a")}]}]
    [topic] = broker.request("Produce", 13, acks=-1, topic_data=requested).responses
    assert (topic.topic_id, topic.partition_responses[0].error_code) == (topic_id, 0)
    broker.request("DeleteTopics", 6, topics=[{"name": None, "topic_id": topic_id}])
    assert broker.create_topic() != topic_id
    [topic] = broker.request("Produce", 13, acks=-1, topic_data=requested).responses
    assert topic.partition_responses[0].error_code == ErrorCode.unknown_topic_id
    assert broker.fetch(0).high_watermark == 0


@pytest.mark.parametrize(
    ("records", "error"),
    [
        (None, ErrorCode.invalid_record),
        (b"", ErrorCode.invalid_record),
        (batch(b"a")[:-1], ErrorCode.invalid_record),
        (batch(b"a") + batch(b"b"), ErrorCode.invalid_record),
        (batch(b"a")[:-1] + b"!", ErrorCode.corrupt_message),
        (batch(b"a" * 2_000_000), ErrorCode.message_too_large),
    ],
    ids=["null", "empty", "truncated", "two batches", "checksum", "too large"],
)
def test_invalid_batches_are_rejected_and_not_appended(broker, records, error):
    response = broker.produce(records)
    assert (response.error_code, response.base_offset) == (error, -1)
    assert broker.fetch(0).high_watermark == 0
    assert broker.produce(batch(b"good")).base_offset == 0


def test_records_without_a_key_are_rejected_on_a_compacted_topic(broker):
    broker.create_topic("table", cleanup_policy="compact")
    response = broker.produce(batch(b"a", b"b"), topic="table")
    assert response.error_code == ErrorCode.invalid_record
    assert [error.batch_index for error in response.record_errors] == [0, 1]


def test_log_append_time_is_returned_and_written(broker):
    broker.create_topic("stamped", message_timestamp_type="LogAppendTime")
    response = broker.produce(batch(b"a", timestamp_ms=START_MS - 5_000), topic="stamped")
    assert round(response.log_append_time.timestamp() * 1000) == broker.now.wall_ms
    [found] = decode_batches(broker.fetch(0, topic="stamped").records)
    assert found.records[0].timestamp_ms == broker.now.wall_ms


def test_create_time_is_not_returned(broker):
    assert broker.produce(batch(b"a")).log_append_time is None


def test_a_duplicate_of_one_of_the_last_five_batches_gets_its_original_offset(broker):
    sent = [batch(b"x", producer_id=5, producer_epoch=0, base_sequence=number) for number in range(6)]
    assert [broker.produce(records).base_offset for records in sent] == [0, 1, 2, 3, 4, 5]
    assert [broker.produce(records).base_offset for records in sent[1:]] == [1, 2, 3, 4, 5]
    assert broker.produce(sent[0]).error_code == ErrorCode.out_of_order_sequence_number
    assert broker.fetch(0).high_watermark == 6


def test_sequences_and_epochs_of_a_producer_are_validated(broker):
    def send(epoch, sequence):
        return broker.produce(batch(b"x", producer_id=5, producer_epoch=epoch, base_sequence=sequence)).error_code

    assert send(0, 0) == 0
    assert send(0, 2) == ErrorCode.out_of_order_sequence_number
    assert send(0, 1) == 0
    assert send(1, 2) == ErrorCode.out_of_order_sequence_number
    assert send(1, 0) == 0
    assert send(0, 2) == ErrorCode.invalid_producer_epoch
    assert broker.fetch(0).high_watermark == 3


def test_a_transactional_batch_is_rejected(broker):
    records = batch(b"a", producer_id=5, producer_epoch=0, base_sequence=0, transactional=True)
    assert broker.produce(records, transactional_id="t").error_code == ErrorCode.invalid_txn_state
    assert broker.produce(records).error_code == ErrorCode.transactional_id_authorization_failed


def test_an_append_completes_waiting_fetches(broker):

    reader = Connection()
    waiting = {**fetch_fields(0), "max_wait": 500, "min_bytes": 1}
    assert broker.send("Fetch", 12, reader, **waiting) == []
    data = [{"name": "orders", "partition_data": [{"index": 0, "records": batch(b"a")}]}]
    sent = broker.send("Produce", 9, acks=1, topic_data=data)
    assert {connection for connection, _ in sent} == {reader, broker.connection}
    [fetched] = [response for connection, response in sent if connection is reader]
    assert len(fetched.responses[0].partitions[0].records) > 0
