"""Post-run checks with requests of clients that cannot be part of a requirement.

The response to such a request depends on properties that the seed draws, on virtual time, or on whether a group was
ever used. Or the request changes a broker's configuration, which a requirement must not do on an existing cluster. All
other requests of clients are in `conformance/requirements`, which also run on the target `simulation`.
"""

from dataclasses import replace
from typing import Any, Final

from chaos.simulation.post_run_checks.post_run_check import (
    NONE,
    NOWHERE,
    PROPAGATION_MS,
    UNKNOWN_NODE,
    At,
    ClusterState,
    PostRunCheck,
    Receiver,
    always,
    anything,
    schema_for_clients,
)
from chaos.simulation.post_run_checks.quorum_checks import vote
from conformance.fuzz.wire import varint
from fixtures.clients import requests
from fixtures.clients.client_request import encoded
from fixtures.clients.core.process import Sleep
from fixtures.clients.messages import ApiKey, request_schema
from fixtures.clients.record_batch import Record, RecordBatch, encode_batch
from fixtures.clients.requests import fitted
from reference_broker.core.controller.handlers.allocate_producer_ids import PRODUCER_ID_BLOCK_SIZE
from reference_broker.core.dispatch import REQUEST_MAX_BYTES
from reference_broker.core.topic_names import CONSUMER_OFFSETS_TOPIC

_LONG_MS: Final = 65_000
"""Longer than the minute for which a broker tries to forward a request."""
_TOPIC_CREATION_MS: Final = 2_000
_TIMEOUT_MS: Final = 2_000
_MANY_PARTITIONS: Final = 40
_ADMIN_CLIENT_ID: Final = "__admin_client"
"""The client id with which brokers accept records for internal topics."""
_VERSION_OF_A_COMMIT: Final = b"\0\1"
"""Version 1: the first two bytes of the key of a committed offset. The rest of the key is missing."""
_VERSION_WITH_NAMES: Final = 12
"""The newest version of Produce with topic names instead of ids."""
_VERSION_WITHOUT_ZSTD: Final = 6
"""The newest version of Produce in which batches may not be compressed with zstd."""
_RECORDS_MAX: Final = 10_000
_LENGTH_BYTES, _VARINT_BYTES = 4, 4
"""Sizes of the length before a frame, and of a varint that is the length of a value of 2 to 256 MiB."""
_BROKER, _SET = 4, 0
"""Codes of the resource type BROKER and of the operation SET (`ConfigResource.Type`, `AlterConfigOp.OpType`)."""
_PROPERTY, _VALUE = "message.max.bytes", "1048589"
"""A byte more than Kafka's default, so that the logs are reconfigured, but still accept all batches of the trial."""
_GROUPS: Final = (
    "g",
    "exam",
    "\u00e9t\u00e9",
    "\U0001f600",
    "polygenelubricants",
    "billing",
    "inventory",
    "shipping",
    "consumers",
)
"""Names whose Java hash is positive, negative, or the smallest integer. Some have characters of several bytes."""


# --- topics that Metadata creates


def _missing_topic(version: int, *names: str | None, creates: bool) -> Any:
    schema = request_schema(ApiKey.METADATA, version)
    topics = tuple(fitted(schema.MetadataRequestTopic, topic_id=None, name=name) for name in names)
    return fitted(
        schema.MetadataRequest,
        topics=topics,
        allow_auto_topic_creation=creates,
        include_topic_authorized_operations=False,
        include_cluster_authorized_operations=False,
    )


def _created_by_metadata(state: ClusterState) -> Any:
    """Return Metadata requests for a missing topic, which is created if the request and the broker allow it.

    A Metadata request of version 3 or lower always allows it.

    The first request deletes the missing topic, and fails. Its response proves that the broker's connection to the
    controller works. Otherwise a connection that a fault has left half open could delay the creation.
    """
    describe = _missing_topic(12, NOWHERE, creates=False)
    clean = requests.delete_topic(schema_for_clients(ApiKey.DELETE_TOPICS), NOWHERE, timeout_ms=_TIMEOUT_MS)
    return [
        *(clean, describe, Sleep(PROPAGATION_MS), describe),
        *(
            _missing_topic(12, "no/name", NOWHERE, creates=True),
            Sleep(PROPAGATION_MS),
            describe,
            clean,
            Sleep(PROPAGATION_MS),
        ),
        *(_missing_topic(3, NOWHERE, creates=False), Sleep(PROPAGATION_MS), describe, clean, Sleep(PROPAGATION_MS)),
        describe,
    ]


def _created_by_metadata_errors(state: ClusterState) -> list[str]:
    unknown, configuration = "UNKNOWN_TOPIC_OR_PARTITION", state.configuration
    is_created = configuration.value("auto.create.topics.enable") and len(state.brokers) >= configuration.integer(
        "default.replication.factor"
    )
    partitions = configuration.integer("num.partitions")
    found = [*(NONE,) * (1 + partitions), NONE] if is_created else [unknown, unknown]
    return [unknown, unknown, unknown, "INVALID_TOPIC_EXCEPTION", unknown, *found, unknown, *found, unknown]


def _after_a_long_idle_time(state: ClusterState) -> Any:
    """Return a request after an idle time, during which all timeouts of earlier requests expire."""
    return [Sleep(_LONG_MS), _missing_topic(12, state.topic, creates=False)]


def _created_and_deleted(state: ClusterState) -> Any:
    """Return the creation and deletion of a topic. A broker needs several events to delete its replicas.

    If there are two brokers, each leads half of the partitions.
    """
    schema = schema_for_clients(ApiKey.CREATE_TOPICS)
    replicas = _replicas(state)
    creation = requests.create_topic(
        schema,
        NOWHERE,
        partitions=-1,
        replication_factor=-1,
        properties={},
        timeout_ms=_TIMEOUT_MS,
        assignments=(replicas[::-1], replicas) * (_MANY_PARTITIONS // 2),
    )
    deletion = requests.delete_topic(schema_for_clients(ApiKey.DELETE_TOPICS), NOWHERE, timeout_ms=_TIMEOUT_MS)
    return [creation, Sleep(PROPAGATION_MS), deletion]


def _too_large(state: ClusterState) -> Any:
    """Return the creation of a topic that needs one metadata record more than a request may write."""
    schema = schema_for_clients(ApiKey.CREATE_TOPICS)
    return requests.create_topic(
        schema, NOWHERE, partitions=_RECORDS_MAX, replication_factor=1, properties={}, timeout_ms=_TIMEOUT_MS
    )


def _forwarded_without_controller(state: ClusterState) -> Any:
    """Return a request to a broker just after a Vote request with a newer epoch, by which the controller resigns."""
    if state.standby is None:
        return []
    next_epoch = vote(state, voter_id=state.controller, replica_id=state.standby, replica_epoch=state.epoch + 1)
    deletion = requests.delete_topic(schema_for_clients(ApiKey.DELETE_TOPICS), NOWHERE, timeout_ms=_TIMEOUT_MS)
    return [At(Receiver.CONTROLLER, next_epoch), deletion]


def _more_producers_than_a_block(state: ClusterState) -> Any:
    """Return requests for more producer ids than one block has, so that the broker must request another block."""
    request = encoded(requests.init_producer_id(schema_for_clients(ApiKey.INIT_PRODUCER_ID)))
    return [request] * (PRODUCER_ID_BLOCK_SIZE + 1)


def _large_requests(state: ClusterState) -> Any:
    """Return two requests: one exactly as large as the limit (`REQUEST_MAX_BYTES`), and a larger Produce.

    An unknown tagged field makes the first one large. For Produce there is no such limit, but the batch is larger than
    `max.message.bytes`.
    """
    small = encoded(requests.init_producer_id(schema_for_clients(ApiKey.INIT_PRODUCER_ID)))
    tag_count, tag = b"\x01", b"\x64"
    value_bytes = REQUEST_MAX_BYTES - len(small.frame(0)) + _LENGTH_BYTES - len(tag) - _VARINT_BYTES
    value = varint(value_bytes) + bytes(value_bytes)
    batch = encode_batch(RecordBatch((Record(bytes(REQUEST_MAX_BYTES)),)))
    schema = request_schema(ApiKey.PRODUCE, _VERSION_WITH_NAMES)
    return [
        replace(small, tail=small.tail[:-1] + tag_count + tag + value),
        requests.produce(schema, state.topic, 0, batch, acks=1, timeout_ms=_TIMEOUT_MS),
    ]


def _deletion_without_time(state: ClusterState) -> Any:
    """Return requests that create a topic and delete a record in it with a timeout of 0 ms.

    A follower cannot delete the record in that time. So the response has an error if there is a follower.
    """
    creation = requests.create_topic(
        schema_for_clients(ApiKey.CREATE_TOPICS),
        NOWHERE,
        partitions=-1,
        replication_factor=-1,
        properties={"min.insync.replicas": "1", "retention.ms": "-1"},
        timeout_ms=_TIMEOUT_MS,
        assignments=(_replicas(state),),
    )
    batch = encode_batch(RecordBatch((Record(b"x"),)))
    schema = request_schema(ApiKey.PRODUCE, _VERSION_WITH_NAMES)
    return [
        *(creation, Sleep(PROPAGATION_MS)),
        requests.produce(schema, NOWHERE, 0, batch, acks=1, timeout_ms=_TIMEOUT_MS),
        Sleep(PROPAGATION_MS),
        requests.delete_records(schema_for_clients(ApiKey.DELETE_RECORDS), NOWHERE, 0, -1, timeout_ms=0),
        requests.delete_topic(schema_for_clients(ApiKey.DELETE_TOPICS), NOWHERE, timeout_ms=_TIMEOUT_MS),
    ]


def _deletion_without_time_errors(state: ClusterState) -> list[str]:
    return [NONE, NONE, "REQUEST_TIMED_OUT" if len(_replicas(state)) > 1 else NONE, NONE]


def _replicas(state: ClusterState) -> tuple[int, ...]:
    """Return the ids of the receiving broker and of another one, if there is one."""
    return (state.broker, *(broker for broker in state.brokers if broker != state.broker))[:2]


# --- groups


def _coordinators_of_groups(state: ClusterState) -> Any:
    """Return the same FindCoordinator request twice. The first one makes the broker create `__consumer_offsets`.

    If the topic did not exist, because the trial has no group, an invalid record is then written to each partition that
    the broker leads. No coordinator can load a partition with such a record after the next election.
    """
    schema = schema_for_clients(ApiKey.FIND_COORDINATOR)
    request = fitted(schema.FindCoordinatorRequest, key="", coordinator_keys=_GROUPS, key_type=0)
    has_groups = CONSUMER_OFFSETS_TOPIC in state.image.topics
    partitions = 0 if has_groups else state.configuration.integer("offsets.topic.num.partitions")
    return [request, Sleep(_TOPIC_CREATION_MS), request, *map(_undecodable_offset, range(partitions))]


def _undecodable_offset(partition: int) -> Any:
    batch = encode_batch(RecordBatch((Record(b"", _VERSION_OF_A_COMMIT),)))
    schema = request_schema(ApiKey.PRODUCE, _VERSION_WITH_NAMES)
    body = requests.produce(schema, CONSUMER_OFFSETS_TOPIC, partition, batch, acks=-1, timeout_ms=_TIMEOUT_MS)
    return encoded(body, client_id=_ADMIN_CLIENT_ID)


def _offsets_without_coordinator(state: ClusterState) -> Any:
    """Return requests for a group. If `__consumer_offsets` does not exist, no broker is the coordinator."""
    fetched, committed = request_schema(ApiKey.OFFSET_FETCH, 9), request_schema(ApiKey.OFFSET_COMMIT, 9)
    return [
        requests.offset_fetch(fetched, "exam", [(state.topic, 0)]),
        requests.offset_commit(committed, "exam", [(state.topic, [(0, 0, -1)])]),
    ]


def _offsets_without_coordinator_errors(state: ClusterState) -> list[str]:
    return [] if CONSUMER_OFFSETS_TOPIC in state.image.topics else ["NOT_COORDINATOR"] * 2


# --- brokers


def _set_and_delete(state: ClusterState) -> Any:
    """Return requests that set a property and delete it again: first of one broker, then of all brokers."""
    own, schema = str(state.broker), schema_for_clients(ApiKey.DESCRIBE_CONFIGS)
    resource = schema.DescribeConfigsResource(resource_type=_BROKER, resource_name=own, configuration_keys=(_PROPERTY,))
    described = fitted(schema.DescribeConfigsRequest, resources=(resource,), include_synonyms=True)
    return [
        request
        for name in (own, "")
        for api_key, changes in ((ApiKey.INCREMENTAL_ALTER_CONFIGS, (_VALUE,)), (ApiKey.ALTER_CONFIGS, ()))
        for request in (_altered(api_key, name, *changes), Sleep(PROPAGATION_MS), described)
    ]


def _altered(api_key: ApiKey, name: str, *values: str) -> Any:
    schema = schema_for_clients(api_key)
    request = schema.AlterConfigsRequest if api_key == ApiKey.ALTER_CONFIGS else schema.IncrementalAlterConfigsRequest
    configs = tuple(
        fitted(schema.AlterableConfig, name=_PROPERTY, config_operation=_SET, value=each) for each in values
    )
    resource = schema.AlterConfigsResource(resource_type=_BROKER, resource_name=name, configs=configs)
    return request(resources=(resource,), validate_only=False)


def _fetches_of_replicas(state: ClusterState) -> Any:
    """Return Fetch requests of an unknown replica, and of each in-sync follower from an offset above the log end."""
    epoch = state.partition.leader_epoch
    return [
        *(_fetch_of_replica(state, UNKNOWN_NODE, 1, leader_epoch=known) for known in (-1, epoch)),
        *(
            _fetch_of_replica(
                state,
                follower,
                state.image.brokers[follower].broker_epoch,
                leader_epoch=epoch,
                last_fetched_epoch=epoch,
            )
            for follower in _followers(state)
        ),
    ]


def _fetches_of_replicas_errors(state: ClusterState) -> list[str]:
    of_unknown = [NONE, "NOT_LEADER_OR_FOLLOWER", NONE, "UNKNOWN_LEADER_EPOCH"]
    return of_unknown + [NONE, NONE] * len(_followers(state))


def _followers(state: ClusterState) -> list[int]:
    return [broker for broker in state.partition.isr if broker != state.partition.leader]


def _fetch_of_replica(state: ClusterState, replica_id: int, replica_epoch: int, **epochs: int) -> Any:
    schema, topic_id = schema_for_clients(ApiKey.FETCH), state.image.topics[state.topic].topic_id
    request = requests.fetch(
        schema,
        state.topic,
        0,
        2**40,
        max_wait_ms=0,
        max_bytes=1_000,
        isolation_level=0,
        topic_id=topic_id,
        **epochs,
    )
    replica = type(request.replica_state)(replica_id=replica_id, replica_epoch=replica_epoch)
    return replace(request, replica_state=replica)


def _unusual_requests(state: ClusterState) -> Any:
    """Return requests that cause exceptions in Kafka, or to which versions of Kafka respond differently.

    - A partition that is named twice: Kafka 4.3 responds with one partition, and 3.9 with two.
    - Null records, in a version of Produce with support of zstd and in one without: Kafka 4.3 does not respond.
    - A topic with neither name nor id: Kafka 4.3 returns UNKNOWN_SERVER_ERROR.
    """
    request = requests.list_offsets(schema_for_clients(ApiKey.LIST_OFFSETS), state.topic, 0, -2)
    (topic,) = request.topics
    topic_id = state.image.topics[state.topic].topic_id
    return [
        replace(request, topics=(replace(topic, partitions=topic.partitions * 2),)),
        *(
            requests.produce(schema, state.topic, 0, None, acks=1, timeout_ms=_TIMEOUT_MS, topic_id=topic_id)
            for schema in (schema_for_clients(ApiKey.PRODUCE), request_schema(ApiKey.PRODUCE, _VERSION_WITHOUT_ZSTD))
        ),
        _missing_topic(12, None, creates=False),
    ]


CHECKS: Final = (
    PostRunCheck(
        "unusual requests of clients",
        Receiver.LEADER,
        _unusual_requests,
        always("INVALID_REQUEST", "INVALID_RECORD", "INVALID_RECORD", "INVALID_TOPIC_EXCEPTION"),
    ),
    *(
        PostRunCheck(name, receiver, _created_by_metadata, _created_by_metadata_errors, disturbs_cluster=True)
        for name, receiver in (
            ("topics that Metadata creates", Receiver.BROKER),
            ("topics that Metadata creates, at a leader", Receiver.LEADER),
        )
    ),
    PostRunCheck(
        "a topic with many partitions", Receiver.BROKER, _created_and_deleted, always(NONE, NONE), disturbs_cluster=True
    ),
    PostRunCheck("a topic with too many partitions", Receiver.BROKER, _too_large, always("POLICY_VIOLATION")),
    PostRunCheck(
        "more producers than a block of ids",
        Receiver.BROKER,
        _more_producers_than_a_block,
        always(*(NONE,) * (PRODUCER_ID_BLOCK_SIZE + 1)),
        retriable_error="COORDINATOR_LOAD_IN_PROGRESS",
    ),
    PostRunCheck("large requests", Receiver.LEADER, _large_requests, always(NONE, "MESSAGE_TOO_LARGE")),
    PostRunCheck(
        "a deletion of records with a timeout of 0 ms",
        Receiver.BROKER,
        _deletion_without_time,
        _deletion_without_time_errors,
        disturbs_cluster=True,
    ),
    PostRunCheck("coordinators of groups", Receiver.BROKER, _coordinators_of_groups, anything, disturbs_cluster=True),
    PostRunCheck(
        "offsets without a coordinator",
        Receiver.BROKER,
        _offsets_without_coordinator,
        _offsets_without_coordinator_errors,
    ),
    PostRunCheck(
        "a property set and deleted, of one broker and of all", Receiver.BROKER, _set_and_delete, always(*(NONE,) * 8)
    ),
    PostRunCheck("fetches of replicas", Receiver.LEADER, _fetches_of_replicas, _fetches_of_replicas_errors),
    PostRunCheck(
        "a forwarded request without a controller",
        Receiver.BROKER,
        _forwarded_without_controller,
        anything,
        disturbs_cluster=True,
    ),
    PostRunCheck(
        "metadata after a long idle time", Receiver.BROKER, _after_a_long_idle_time, anything, disturbs_cluster=True
    ),
)
