"""Fetch: records, long polls and errors."""

import pytest
from kio.schema.errors import ErrorCode

from fixtures.clients.record_batch import decode_batches
from reference_broker.core.connection import Connection
from tests.reference_broker.scripted import ScriptedBroker, batch, fetch_fields


@pytest.fixture
def broker() -> ScriptedBroker:
    broker = ScriptedBroker()
    broker.create_topic()
    return broker


def offsets(records):
    return [record.offset for found in decode_batches(records) for record in found.records]


def test_a_fetch_at_the_log_end_returns_no_records_and_no_error(broker):
    response = broker.fetch(0)
    assert (response.error_code, response.records, response.high_watermark) == (0, b"", 0)


@pytest.mark.parametrize("offset", [-1, 3, 100])
def test_an_offset_outside_of_the_log_is_rejected(broker, offset):
    broker.produce(batch(b"a", b"b"))
    response = broker.fetch(offset)
    assert response.error_code == ErrorCode.offset_out_of_range
    assert (response.high_watermark, response.last_stable_offset, response.log_start_offset) == (-1, -1, -1)


def test_an_offset_inside_a_batch_returns_the_whole_batch(broker):
    broker.produce(batch(b"a", b"b", b"c"))
    assert offsets(broker.fetch(1).records) == [0, 1, 2]


def test_the_first_batch_is_returned_whatever_its_size(broker):
    broker.produce(batch(b"a" * 1_000))
    broker.produce(batch(b"b"))
    assert offsets(broker.fetch(0, max_bytes=1).records) == [0]
    fields = fetch_fields(0)
    [topic] = broker.request("Fetch", 12, **{**fields, "max_bytes": 1}).responses
    assert offsets(topic.partitions[0].records) == [0]


def fetch_in_separate_topics(broker, *requested):
    """Fetch (topic, partition) pairs, each in its own topic element.

    Return topic and partitions of each topic element of the response.
    """
    topics = [fetch_fields(0, topic, partition)["topics"][0] for topic, partition in requested]
    responses = broker.request("Fetch", 12, **{**fetch_fields(0), "topics": topics}).responses
    return [(topic.topic, [partition.partition_index for partition in topic.partitions]) for topic in responses]


def test_a_response_has_the_partitions_in_the_order_of_the_request(broker):
    broker.create_topic("wide", partitions=2)
    expected = [("wide", [1]), ("orders", [0]), ("wide", [0])]
    assert fetch_in_separate_topics(broker, ("wide", 1), ("orders", 0), ("wide", 0)) == expected


def test_a_repeated_partition_is_returned_once(broker):
    broker.create_topic("wide", partitions=2)
    expected = [("wide", [1]), ("orders", [0]), ("wide", [0])]
    assert fetch_in_separate_topics(broker, ("wide", 1), ("orders", 0), ("wide", 1), ("wide", 0)) == expected


def test_a_later_partition_is_only_served_within_max_bytes(broker):
    broker.create_topic("wide", partitions=2)
    first, second = batch(b"a" * 500), batch(b"b" * 500)
    broker.produce(first, topic="wide", partition=0)
    broker.produce(second, topic="wide", partition=1)
    requested = [{"partition": index, "fetch_offset": 0, "partition_max_bytes": 2**20} for index in (1, 0)]

    def sizes(max_bytes):
        fields = {"max_wait": 0, "max_bytes": max_bytes, "topics": [{"topic": "wide", "partitions": requested}]}
        [topic] = broker.request("Fetch", 12, **fields).responses
        return [(partition.partition_index, len(partition.records)) for partition in topic.partitions]

    assert sizes(1) == [(1, len(second)), (0, 0)]
    assert sizes(len(second) + len(first) - 1) == [(1, len(second)), (0, 0)]
    assert sizes(len(second) + len(first)) == [(1, len(second)), (0, len(first))]


def test_a_long_poll_ends_after_max_wait(broker):
    assert broker.send("Fetch", 12, **{**fetch_fields(0), "max_wait": 500, "min_bytes": 1}) == []
    assert broker.advance(499) == []
    [(connection, response)] = broker.advance(1)
    assert connection is broker.connection
    assert response.responses[0].partitions[0].records == b""
    assert broker.advance(10_000) == []


def test_a_long_poll_waits_for_min_bytes(broker):
    reader, size = Connection(), len(batch(b"a"))
    fields = {**fetch_fields(0), "max_wait": 500, "min_bytes": 2 * size}
    assert broker.send("Fetch", 12, reader, **fields) == []
    assert broker.produce(batch(b"a")).error_code == 0
    data = [{"name": "orders", "partition_data": [{"index": 0, "records": batch(b"b")}]}]
    sent = dict(broker.send("Produce", 9, acks=1, topic_data=data))
    assert offsets(sent[reader].responses[0].partitions[0].records) == [0, 1]


def test_an_error_is_returned_without_waiting(broker):
    fields = {**fetch_fields(7), "max_wait": 500, "min_bytes": 1}
    [topic] = broker.request("Fetch", 12, **fields).responses
    assert topic.partitions[0].error_code == ErrorCode.offset_out_of_range


def test_deleting_the_topic_completes_waiting_fetches(broker):
    reader = Connection()
    assert broker.send("Fetch", 12, reader, **{**fetch_fields(0), "max_wait": 500, "min_bytes": 1}) == []
    sent = dict(broker.send("DeleteTopics", 5, topic_names=["orders"]))
    response = sent[reader]
    assert response.responses[0].partitions[0].error_code == ErrorCode.unknown_topic_or_partition


def test_a_closed_connection_gets_no_response(broker):
    assert broker.send("Fetch", 12, **{**fetch_fields(0), "max_wait": 500, "min_bytes": 1}) == []
    broker.disconnect(broker.connection)
    assert len(broker.broker.purgatory) == 0
    assert broker.advance(500) == []


@pytest.mark.parametrize(
    ("epoch", "error"),
    [(0, ErrorCode.none), (-1, ErrorCode.none), (1, ErrorCode.unknown_leader_epoch)],
)
def test_the_clients_leader_epoch_is_checked(broker, epoch, error):
    assert broker.fetch(0, epoch=epoch).error_code == error


def test_unknown_topics_are_rejected_by_name_and_by_id(broker):
    assert broker.fetch(0, topic="nowhere").error_code == ErrorCode.unknown_topic_or_partition
    assert broker.fetch(0, partition=9).error_code == ErrorCode.unknown_topic_or_partition
    topic_id = broker.broker.image.topics["orders"].topic_id
    fields = fetch_fields(0)
    for topic_id_sent, error in ((topic_id, 0), (type(topic_id)(int=999), ErrorCode.unknown_topic_id)):
        requested = [{**fields["topics"][0], "topic_id": topic_id_sent}]
        [topic] = broker.request("Fetch", 17, **{**fields, "topics": requested}).responses
        assert (topic.topic_id, topic.partitions[0].error_code) == (topic_id_sent, error)


def test_there_are_no_sessions(broker):
    opened = broker.request("Fetch", 12, **fetch_fields(0), session_id=0, session_epoch=0)
    assert (opened.error_code, opened.session_id) == (0, 0)
    followed = broker.request("Fetch", 12, **fetch_fields(0), session_id=5, session_epoch=1)
    assert (followed.error_code, followed.responses) == (ErrorCode.fetch_session_id_not_found, ())


def test_aborted_transactions_are_returned_only_with_read_committed(broker):
    broker.produce(batch(b"a"))
    assert broker.fetch(0).aborted_transactions is None
    response = broker.fetch(0, isolation_level=1)
    assert response.aborted_transactions == ()
    assert offsets(response.records) == [0]
