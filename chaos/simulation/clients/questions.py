"""Requests as bytes, and how their answers are read: what simulated clients send.

A client asks the same things again and again, and so do the clients of the next script. So a question is made once for
its arguments, and only its correlation id is written anew. The messages are those that raw clients send to real nodes.
"""

import struct
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cache, lru_cache
from types import ModuleType
from typing import Any
from uuid import UUID

from kio.index import load_response_from_request

from fixtures.clients import requests
from fixtures.clients.messages import ApiKey, known_versions, request_schema
from fixtures.clients.raw import decode_response
from reference_broker.core.apis import BROKER_APIS
from reference_broker.protocol.messages import client_codec

_SIZE = struct.Struct(">i")
_SIZE_AND_HEADER = struct.Struct(">ihhi")
_CLIENT_ID = "kafkatrial"
_REMEMBERED = 20_000
ADMIN_TIMEOUT_MS = 2_000
BY_NAME_MAX = 12
"""The last versions of Produce and Fetch that name a topic by its name (KIP-516)."""


@dataclass(frozen=True, slots=True)
class Question:
    """A request without its correlation id.

    :ivar tail: its bytes behind that.
    :ivar response_type: kio's; null: its answer is not read.
    :ivar is_answered: false for a produce with acks 0.
    :ivar asked: kio's request; null where it is none.
    """

    api_key: int
    api_version: int
    tail: bytes
    response_type: Any
    is_answered: bool = True
    asked: Any = None

    def frame(self, correlation_id: int) -> bytes:
        """All bytes, the length first."""
        size = _SIZE_AND_HEADER.size - _SIZE.size + len(self.tail)
        return _SIZE_AND_HEADER.pack(size, self.api_key, self.api_version, correlation_id) + self.tail

    def read(self, frame: bytes) -> Any:
        """The answer in a frame without its length. Raises `MalformedResponse`."""
        if self.response_type is None:
            return frame
        return decode_response(self.response_type, frame)


def newest(api_key: int, highest: int | None = None) -> int:
    """The newest version that both sides know, at most `highest`."""
    top = min(BROKER_APIS[api_key].max_version, known_versions(api_key)[-1])
    return top if highest is None else min(top, highest)


def question_of(entity: Any, *, is_answered: bool = True) -> Question:
    """A request of any kind."""
    request_type: Any = type(entity)
    tail = client_codec(request_type).write(0, _CLIENT_ID, entity)[_SIZE_AND_HEADER.size :]
    return Question(entity.__api_key__, entity.__version__, tail, _response_type(request_type), is_answered, entity)


_response_type = cache(load_response_from_request)


def produce(
    topic: str, topic_id: UUID | None, partition: int, records: bytes, *, acks: int, timeout_ms: int, version: int
) -> Question:
    """A Produce of one batch."""
    schema = request_schema(ApiKey.PRODUCE, version)
    entity = requests.produce(schema, topic, partition, records, acks=acks, timeout_ms=timeout_ms, topic_id=topic_id)
    return question_of(entity, is_answered=acks != 0)


@lru_cache(_REMEMBERED)
def fetch(
    topic: str,
    topic_id: UUID | None,
    partition: int,
    offset: int,
    *,
    leader_epoch: int,
    isolation_level: int,
    max_wait_ms: int,
    max_bytes: int,
    version: int,
) -> Question:
    """A Fetch from one partition."""
    entity = requests.fetch(
        request_schema(ApiKey.FETCH, version),
        topic,
        partition,
        offset,
        max_wait_ms=max_wait_ms,
        max_bytes=max_bytes,
        isolation_level=isolation_level,
        leader_epoch=leader_epoch,
        topic_id=topic_id,
    )
    return question_of(entity)


@lru_cache(_REMEMBERED)
def list_offsets(topic: str, partition: int, timestamp: int, isolation_level: int, leader_epoch: int) -> Question:
    """A ListOffsets of one partition."""
    schema = request_schema(ApiKey.LIST_OFFSETS, newest(ApiKey.LIST_OFFSETS))
    return question_of(
        requests.list_offsets(
            schema, topic, partition, timestamp, isolation_level=isolation_level, leader_epoch=leader_epoch
        )
    )


@lru_cache(_REMEMBERED)
def offset_for_leader_epoch(topic: str, partition: int, leader_epoch: int, current_leader_epoch: int) -> Question:
    """An OffsetForLeaderEpoch of one partition."""
    schema = request_schema(ApiKey.OFFSET_FOR_LEADER_EPOCH, newest(ApiKey.OFFSET_FOR_LEADER_EPOCH))
    return question_of(
        requests.offset_for_leader_epoch(
            schema, topic, partition, leader_epoch, current_leader_epoch=current_leader_epoch
        )
    )


@lru_cache(_REMEMBERED)
def metadata(topics: tuple[str, ...] | None) -> Question:
    """A Metadata of some topics, or of all."""
    return question_of(requests.metadata(request_schema(ApiKey.METADATA, newest(ApiKey.METADATA)), topics))


@lru_cache(_REMEMBERED)
def api_versions() -> Question:
    """An ApiVersions."""
    schema = request_schema(ApiKey.API_VERSIONS, newest(ApiKey.API_VERSIONS))
    return question_of(schema.ApiVersionsRequest(client_software_name=_CLIENT_ID, client_software_version="1"))


@lru_cache(_REMEMBERED)
def init_producer_id() -> Question:
    """An InitProducerId without transactions."""
    return question_of(requests.init_producer_id(request_schema(ApiKey.INIT_PRODUCER_ID, 4)))


@lru_cache(_REMEMBERED)
def find_coordinator(group: str) -> Question:
    """A FindCoordinator of one group."""
    schema = request_schema(ApiKey.FIND_COORDINATOR, newest(ApiKey.FIND_COORDINATOR))
    return question_of(requests.find_coordinator(schema, group))


def offset_commit(group: str, offsets: tuple[tuple[str, int, int, int], ...]) -> Question:
    """An OffsetCommit by name, without a generation; offsets: topic, partition, offset, leader epoch."""
    schema = request_schema(ApiKey.OFFSET_COMMIT, newest(ApiKey.OFFSET_COMMIT, 9))
    rows = [(topic, [(partition, offset, leader_epoch)]) for topic, partition, offset, leader_epoch in offsets]
    return question_of(requests.offset_commit(schema, group, rows))


@lru_cache(_REMEMBERED)
def offset_fetch(group: str, partitions: tuple[tuple[str, int], ...]) -> Question:
    """An OffsetFetch of one group by name, of stable offsets, as every Java consumer sends it (KIP-447)."""
    schema = request_schema(ApiKey.OFFSET_FETCH, newest(ApiKey.OFFSET_FETCH, 9))
    names = dict.fromkeys(topic for topic, _ in partitions)
    by_topic = {name: [partition for topic, partition in partitions if topic == name] for name in names}
    return question_of(replace(requests.offset_fetch(schema, group, by_topic), require_stable=True))


def administer(api_key: ApiKey, make: Callable[[ModuleType], Any]) -> Question:
    """A request of an administrator, from the module of its newest version."""
    return question_of(make(request_schema(api_key, newest(api_key))))


def create_topic(
    topic: str, partitions: int, replication_factor: int, properties: tuple[tuple[str, str], ...]
) -> Question:
    """A CreateTopics of one topic."""
    return administer(
        ApiKey.CREATE_TOPICS,
        lambda schema: requests.create_topic(
            schema,
            topic,
            partitions=partitions,
            replication_factor=replication_factor,
            properties=dict(properties),
            timeout_ms=ADMIN_TIMEOUT_MS,
        ),
    )


def delete_topic(topic: str) -> Question:
    """A DeleteTopics of one topic, by name."""
    return administer(
        ApiKey.DELETE_TOPICS, lambda schema: requests.delete_topic(schema, topic, timeout_ms=ADMIN_TIMEOUT_MS)
    )


def delete_records(topic: str, partition: int, before: int, timeout_ms: int) -> Question:
    """A DeleteRecords of one partition; -1: up to the high watermark."""
    return administer(
        ApiKey.DELETE_RECORDS,
        lambda schema: requests.delete_records(schema, topic, partition, before, timeout_ms=timeout_ms),
    )


def create_partitions(topic: str, total: int) -> Question:
    """A CreatePartitions of one topic."""

    def make(schema: ModuleType) -> Any:
        of_topic = schema.CreatePartitionsTopic(name=topic, count=total, assignments=None)
        return schema.CreatePartitionsRequest(topics=(of_topic,), timeout=_TIMEOUT, validate_only=False)

    return administer(ApiKey.CREATE_PARTITIONS, make)


_TOPIC_RESOURCE = 2
_SET = 0
_TIMEOUT = timedelta(milliseconds=ADMIN_TIMEOUT_MS)


def alter_topic(topic: str, name: str, value: str | None, *, validate_only: bool = False) -> Question:
    """An IncrementalAlterConfigs that sets a property of a topic; null takes the topic's own value away."""

    def make(schema: ModuleType) -> Any:
        config = schema.AlterableConfig(name=name, config_operation=_SET if value is not None else 1, value=value)
        resource = schema.AlterConfigsResource(resource_type=_TOPIC_RESOURCE, resource_name=topic, configs=(config,))
        return schema.IncrementalAlterConfigsRequest(resources=(resource,), validate_only=validate_only)

    return administer(ApiKey.INCREMENTAL_ALTER_CONFIGS, make)


def reassign(topic: str, partition: int, replicas: tuple[int, ...] | None) -> Question:
    """An AlterPartitionReassignments of one partition; null gives up the one under way."""

    def make(schema: ModuleType) -> Any:
        of_partition = schema.ReassignablePartition(partition_index=partition, replicas=replicas)
        of_topic = schema.ReassignableTopic(name=topic, partitions=(of_partition,))
        return requests.fitted(
            schema.AlterPartitionReassignmentsRequest,
            timeout=_TIMEOUT,
            allow_replication_factor_change=True,
            topics=(of_topic,),
        )

    return administer(ApiKey.ALTER_PARTITION_REASSIGNMENTS, make)


def elect(topic: str, partition: int, election_type: int) -> Question:
    """An ElectLeaders of one partition."""

    def make(schema: ModuleType) -> Any:
        of_topic = schema.TopicPartitions(topic=topic, partitions=(partition,))
        return schema.ElectLeadersRequest(election_type=election_type, topic_partitions=(of_topic,), timeout=_TIMEOUT)

    return administer(ApiKey.ELECT_LEADERS, make)


def unregister(node_id: int) -> Question:
    """An UnregisterBroker."""
    return administer(ApiKey.UNREGISTER_BROKER, lambda schema: schema.UnregisterBrokerRequest(broker_id=node_id))


def nonsense(api_key: int, api_version: int, size: int) -> Question:
    """A request whose body says nothing."""
    tail = bytes([0, 0, *(index * 7 % 256 for index in range(size))])
    return Question(api_key, api_version, tail, None)
