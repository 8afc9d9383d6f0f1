"""Answers that no broker may give are seen as such, and the lawful ones beside them are not."""

from dataclasses import replace
from importlib import import_module
from typing import Any
from uuid import UUID

import pytest
from kio.index import load_response_from_request
from kio.schema.errors import ErrorCode

from chaos.simulation.clients.answers import check_answer
from chaos.simulation.clients.asked import WrongAnswerError
from fixtures.clients import requests
from fixtures.clients.client_request import newest_version
from fixtures.clients.messages import ApiKey, request_schema
from fixtures.clients.payload import to_record
from fixtures.clients.record_batch import RecordBatch, encode_batch
from reference_broker.protocol.messages import Replies

TOPIC_ID = UUID(int=7)
BATCH = encode_batch(RecordBatch((to_record(1),), base_offset=4))
"""One record, at offset 4."""


def newest(api_key: ApiKey) -> Any:
    return request_schema(api_key, newest_version(api_key))


def produce(data: bytes, acks: int) -> Any:
    return requests.produce(newest(ApiKey.PRODUCE), "a", 0, data, acks=acks, timeout_ms=1, topic_id=TOPIC_ID)


def list_offsets(timestamp: int) -> Any:
    return requests.list_offsets(newest(ApiKey.LIST_OFFSETS), "a", 0, timestamp, leader_epoch=0)


def answer_to(asked: Any, kind: str, /, **fields: Any) -> Any:
    """One of the classes of the answer's module."""
    module = import_module(load_response_from_request(type(asked)).__module__)
    return getattr(Replies(module), kind)(**fields)


def fetched(asked: Any, **changed: Any) -> Any:
    fields = {
        "partition_index": 0,
        "error_code": ErrorCode.none,
        "high_watermark": 5,
        "last_stable_offset": 5,
        "log_start_offset": 0,
        "aborted_transactions": None,
        "records": BATCH,
    } | changed
    part = answer_to(asked, "PartitionData", **fields)
    topic = answer_to(asked, "FetchableTopicResponse", topic_id=TOPIC_ID, partitions=(part,))
    return answer_to(asked, "FetchResponse", error_code=ErrorCode.none, responses=(topic,))


def fetch(offset: int = 4, *, isolation_level: int = 0, max_bytes: int = 10_000) -> Any:
    return requests.fetch(
        newest(ApiKey.FETCH),
        "a",
        0,
        offset,
        leader_epoch=0,
        isolation_level=isolation_level,
        max_wait_ms=100,
        max_bytes=max_bytes,
        topic_id=TOPIC_ID,
    )


def test_a_lawful_fetch_passes() -> None:
    asked = fetch()
    check_answer(asked, fetched(asked), 1)


@pytest.mark.parametrize(
    ("offset", "changed", "said"),
    [
        (4, {"high_watermark": 4, "last_stable_offset": 4}, "below 4 is visible"),
        (4, {"log_start_offset": 6}, "out of order"),
        (4, {"records": b""}, "nothing from 4 on"),
        (5, {"records": b""}, "nothing after 1 ms"),
        (5, {}, "from 5 on"),
        (4, {"records": BATCH[:-1]}, "end inside a batch"),
        (4, {"records": BATCH + BATCH}, "where 5 is next"),
        (4, {"partition_index": 1}, "an answer about"),
        (4, {"error_code": ErrorCode.not_leader_or_follower}, "bytes of records"),
        (4, {"error_code": ErrorCode.not_enough_replicas, "records": b""}, "never gives"),
    ],
)
def test_a_fetch_is_answered_wrongly(offset: int, changed: dict[str, Any], said: str) -> None:
    asked = fetch(offset)
    with pytest.raises(WrongAnswerError, match=said):
        check_answer(asked, fetched(asked, **changed), 1)


def test_more_bytes_than_wanted_are_wrong_behind_the_first_batch_alone() -> None:
    asked = fetch(max_bytes=1)
    check_answer(asked, fetched(asked), 1)
    next_one = encode_batch(RecordBatch((to_record(2),), base_offset=5))
    with pytest.raises(WrongAnswerError, match="were wanted"):
        check_answer(asked, fetched(asked, records=BATCH + next_one, high_watermark=6, last_stable_offset=6), 1)


def test_read_committed_sees_nothing_above_the_last_stable_offset() -> None:
    asked = fetch(isolation_level=1)
    with pytest.raises(WrongAnswerError, match="below 4 is visible"):
        check_answer(asked, fetched(asked, last_stable_offset=4), 1)


@pytest.mark.parametrize(("epoch", "end", "is_lawful"), [(1, 4, True), (-1, -1, True), (3, 4, False), (1, -1, False)])
def test_the_end_of_an_epoch(epoch: int, end: int, is_lawful: bool) -> None:
    asked = requests.offset_for_leader_epoch(newest(ApiKey.OFFSET_FOR_LEADER_EPOCH), "a", 0, 2)
    part = answer_to(
        asked, "EpochEndOffset", error_code=ErrorCode.none, partition=0, leader_epoch=epoch, end_offset=end
    )
    topic = answer_to(asked, "OffsetForLeaderTopicResult", topic="a", partitions=(part,))
    answer = answer_to(asked, "OffsetForLeaderEpochResponse", topics=(topic,))
    if is_lawful:
        check_answer(asked, answer, 1)
    else:
        with pytest.raises(WrongAnswerError, match=f"epoch {epoch} with end {end} for epoch 2"):
            check_answer(asked, answer, 1)


def placed(asked: Any, **changed: Any) -> Any:
    part = answer_to(
        asked,
        "MetadataResponsePartition",
        **{
            "error_code": ErrorCode.none,
            "partition_index": 0,
            "leader_id": 1,
            "leader_epoch": 0,
            "replica_nodes": (1, 2),
            "isr_nodes": (1,),
            "offline_replicas": (),
        }
        | changed,
    )
    topic = answer_to(
        asked, "MetadataResponseTopic", error_code=ErrorCode.none, topic_id=TOPIC_ID, name="a", partitions=(part,)
    )
    broker = answer_to(asked, "MetadataResponseBroker", node_id=1, host="h", port=1, rack=None)
    return answer_to(
        asked,
        "MetadataResponse",
        brokers=(broker,),
        cluster_id="c",
        controller_id=1,
        topics=(topic,),
        error_code=ErrorCode.none,
    )


def test_lawful_metadata_pass() -> None:
    asked = requests.metadata(newest(ApiKey.METADATA), ("a",))
    check_answer(asked, placed(asked), 1)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"isr_nodes": (1, 3)}, "in-sync replicas"),
        ({"leader_id": 2}, "the leader 2"),
        ({"leader_id": -1}, "no leader, and no error"),
        ({"partition_index": 1}, "has partitions"),
        ({"offline_replicas": (4,)}, "offline replicas"),
        ({"replica_nodes": (1, 1)}, "in-sync replicas"),
    ],
)
def test_metadata_are_wrong(changed: dict[str, Any], said: str) -> None:
    asked = requests.metadata(newest(ApiKey.METADATA), ("a",))
    with pytest.raises(WrongAnswerError, match=said):
        check_answer(asked, placed(asked, **changed), 1)


def produced(asked: Any, **changed: Any) -> Any:
    fields = {
        "index": 0,
        "error_code": ErrorCode.none,
        "base_offset": 3,
        "log_start_offset": 0,
        "record_errors": (),
    } | changed
    part = answer_to(asked, "PartitionProduceResponse", **fields)
    topic = answer_to(asked, "TopicProduceResponse", topic_id=TOPIC_ID, partition_responses=(part,))
    return answer_to(asked, "ProduceResponse", responses=(topic,))


@pytest.mark.parametrize(
    ("acks", "changed", "said"),
    [
        (-1, {}, ""),
        (-1, {"error_code": ErrorCode.not_enough_replicas, "base_offset": -1}, ""),
        (1, {"error_code": ErrorCode.not_enough_replicas, "base_offset": -1}, "under acks=1"),
        (-1, {"error_code": ErrorCode.corrupt_message, "base_offset": -1}, "that is sound"),
        (-1, {"error_code": ErrorCode.unknown_producer_id, "base_offset": -1}, "without a sequence"),
        (-1, {"base_offset": -1}, "at offset -1"),
        (-1, {"log_start_offset": 4}, "that starts at 4"),
    ],
)
def test_a_produce(acks: int, changed: dict[str, Any], said: str) -> None:
    asked = produce(BATCH, acks)
    if not said:
        check_answer(asked, produced(asked, **changed), 1)
        return
    with pytest.raises(WrongAnswerError, match=said):
        check_answer(asked, produced(asked, **changed), 1)


def test_a_damaged_batch_is_not_taken() -> None:
    damaged = BATCH[:-1] + bytes([BATCH[-1] ^ 1])
    asked = produce(damaged, 1)
    with pytest.raises(WrongAnswerError, match="does not fit"):
        check_answer(asked, produced(asked), 1)
    check_answer(asked, produced(asked, error_code=ErrorCode.corrupt_message, base_offset=-1), 1)


def listed(asked: Any, **changed: Any) -> Any:
    fields = {"partition_index": 0, "error_code": ErrorCode.none, "timestamp": -1, "offset": 3, "leader_epoch": 0}
    part = answer_to(asked, "ListOffsetsPartitionResponse", **fields | changed)
    topic = answer_to(asked, "ListOffsetsTopicResponse", name="a", partitions=(part,))
    return answer_to(asked, "ListOffsetsResponse", topics=(topic,))


@pytest.mark.parametrize(
    ("timestamp", "changed", "said"),
    [
        (-1, {}, ""),
        (-1, {"leader_epoch": -1}, "for the end"),
        (-2, {"offset": -1}, "for an end"),
        (-1, {"leader_epoch": 1}, "from a leader of epoch 0"),
        (50, {"timestamp": 60}, ""),
        (50, {"timestamp": 40}, "nothing older than 50"),
        (-2, {"error_code": ErrorCode.offset_not_available, "offset": -1}, "for the start"),
        (-1, {"error_code": ErrorCode.offset_not_available, "offset": 3}, "with OFFSET_NOT_AVAILABLE"),
    ],
)
def test_a_list_of_offsets(timestamp: int, changed: dict[str, Any], said: str) -> None:
    asked = list_offsets(timestamp)
    if not said:
        check_answer(asked, listed(asked, **changed), 1)
        return
    with pytest.raises(WrongAnswerError, match=said):
        check_answer(asked, listed(asked, **changed), 1)


def test_every_check_knows_its_own_answers() -> None:
    """The same question with another topic's answer is wrong, whatever else it says."""
    asked = list_offsets(-1)
    answer = listed(asked)
    other = replace(answer, topics=(replace(answer.topics[0], name="b"),))
    with pytest.raises(WrongAnswerError, match="an answer about"):
        check_answer(asked, other, 1)
