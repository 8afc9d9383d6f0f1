"""Requests that are rejected in whole or in part, given field by field, and the errors of their responses.

A request has several cases if each of them has its own error. Requests with valid changes set `validate_only`, so that
nothing changes. Sources in addition to those of the requirements: `ControllerApis`, `ReplicationControlManager`,
`ConfigAdminManager`, `ConfigurationControlManager` and `KafkaApis` of Apache Kafka.
"""

from collections.abc import Mapping
from typing import Any, Final

from conformance.requirements.topic_fields import fetch_fields
from conformance.sequential.model.topics import PARTITIONS_PER_REQUEST_MAX, REPLICAS_TOO_MANY, UNKNOWN_BROKER
from conformance.sequential.steps import ApiKey, Broker, Operation, RawRequest

Change = tuple[str, int, str | None]
"""The name of a configuration, the operation and the value."""
Resource = tuple[int, str | Broker, tuple[Change, ...]]

_ONE: Final = Broker(1)
_INVALID_NAME, _INVALID_ASSIGNMENT = "INVALID_TOPIC_EXCEPTION", "INVALID_REPLICA_ASSIGNMENT"
_TOPIC, _BROKER, _NO_RESOURCE = 2, 4, 99


# --- topics


def _creations(*cases: tuple[str, Mapping[str, Any]], errors: tuple[str, ...] | None = None) -> RawRequest:
    """Return a CreateTopics request with one topic per case.

    :param cases: the expected error of each topic, and its fields that differ from those of a valid topic.
    :param errors: all errors of the response, if they are not one for each case.
    """
    usual = {"num_partitions": 1, "replication_factor": 1, "assignments": (), "configs": ()}
    topics = tuple({"name": f"trial-{place}", **usual, **given} for place, (_, given) in enumerate(cases))
    stated = tuple(error for error, _ in cases) if errors is None else errors
    return RawRequest(ApiKey.CREATE_TOPICS, {"topics": topics, "validate_only": True}, stated)


def _placed(*assignments: tuple[int, tuple[Any, ...]], partitions: int = -1, factor: int = -1) -> Mapping[str, Any]:
    placed = tuple({"partition_index": index, "broker_ids": brokers} for index, brokers in assignments)
    return {"num_partitions": partitions, "replication_factor": factor, "assignments": placed}


def _configured(name: str, value: str | None) -> Mapping[str, Any]:
    return {"configs": ({"name": name, "value": value},)}


CREATIONS: Final = (
    _creations(
        *((_INVALID_NAME, {"name": name}) for name in (".", "..", "", "a b", "x" * 250)),
        *(("NONE", {"name": name}) for name in ("x" * 249, "...", "trial-b.c_D9")),
        ("INVALID_REQUEST", {"name": "__cluster_metadata"}),
    ),
    _creations(
        ("INVALID_PARTITIONS", {"num_partitions": 0}),
        ("INVALID_PARTITIONS", {"num_partitions": -2}),
        *(("INVALID_REPLICATION_FACTOR", {"replication_factor": factor}) for factor in (0, -2, REPLICAS_TOO_MANY)),
        ("NONE", {"num_partitions": -1}),
    ),
    _creations(
        ("NONE", _placed((0, (_ONE,)), (1, (_ONE,)))),
        (_INVALID_ASSIGNMENT, _placed((0, (_ONE, _ONE)))),
        (_INVALID_ASSIGNMENT, _placed((0, (UNKNOWN_BROKER,)))),
        (_INVALID_ASSIGNMENT, _placed((0, ()))),
        (_INVALID_ASSIGNMENT, _placed((1, (_ONE,)))),
        (_INVALID_ASSIGNMENT, _placed((0, (_ONE,)), (0, (_ONE,)))),
        ("INVALID_REQUEST", _placed((0, (_ONE,)), partitions=1)),
        ("INVALID_REQUEST", _placed((0, (_ONE,)), factor=1)),
    ),
    _creations(
        ("INVALID_CONFIG", _configured("min.insync.replicas", "0")),
        ("INVALID_CONFIG", _configured("no.such.property", "1")),
        ("INVALID_CONFIG", _configured("retention.ms", None)),
        ("INVALID_CONFIG", _configured("max.message.bytes", "x")),
        ("INVALID_CONFIG", _configured("compression.gzip.level", "0")),
        ("INVALID_CONFIG", _configured("remote.storage.enable", "true")),
        ("NONE", _configured("retention.ms", "1")),
    ),
    _creations(*(("", {"name": "trial-twice"}),) * 2, errors=("INVALID_REQUEST",)),
)
"""Each topic of a request has its own error; a topic that is named twice has one."""
UNEVEN_CREATION: Final = _creations((_INVALID_ASSIGNMENT, _placed((0, (_ONE,)), (1, (_ONE, Broker(2))))))


def _deletions(*topics: tuple[str | None, int | None], errors: tuple[str, ...]) -> RawRequest:
    states = tuple({"name": name, "topic_id": topic_id} for name, topic_id in topics)
    return RawRequest(ApiKey.DELETE_TOPICS, {"topics": states}, errors, version=6)


DELETIONS: Final = (
    _deletions((None, None), errors=("INVALID_REQUEST",)),
    _deletions((None, -1), ("trial-none", None), errors=("UNKNOWN_TOPIC_ID", "UNKNOWN_TOPIC_OR_PARTITION")),
    _deletions(("trial", 0), errors=("INVALID_REQUEST",)),
    _deletions(("trial", None), ("trial", None), errors=("INVALID_REQUEST",)),
)
"""Topics are deleted by name or by id, never by both, and each once."""


def _additions(*topics: tuple[str, int, Any], errors: tuple[str, ...]) -> RawRequest:
    wanted = tuple({"name": name, "count": count, "assignments": placed} for name, count, placed in topics)
    return RawRequest(ApiKey.CREATE_PARTITIONS, {"topics": wanted, "validate_only": True}, errors)


ADDITIONS: Final = (
    _additions(("trial", 9, None), ("trial", 9, None), errors=("INVALID_REQUEST",)),
    _additions(("trial", 2, ({"broker_ids": ()},)), errors=(_INVALID_ASSIGNMENT,)),
    _additions(
        ("trial-none", 9, None), ("trial", 1, None), errors=("UNKNOWN_TOPIC_OR_PARTITION", "INVALID_PARTITIONS")
    ),
)
"""Additions to `trial`, which has one partition."""
TOO_MANY_PARTITIONS: Final = (
    _creations(("POLICY_VIOLATION", {"num_partitions": PARTITIONS_PER_REQUEST_MAX + 1})),
    _creations(
        ("POLICY_VIOLATION", {"num_partitions": -5}),
        ("POLICY_VIOLATION", {"num_partitions": PARTITIONS_PER_REQUEST_MAX + 1}),
    ),
)


# --- metadata


METADATA_BY_ID_TOO_EARLY: Final = RawRequest(
    ApiKey.METADATA,
    {
        "topics": ({"topic_id": 0, "name": None},),
        "allow_auto_topic_creation": False,
        "include_cluster_authorized_operations": False,
        "include_topic_authorized_operations": False,
    },
    ("INVALID_REQUEST",),
    version=11,
)
"""Versions 10 and 11 have the field `topic_id`, but brokers reject a request that uses it."""
BAD_CURSORS: Final = tuple(
    RawRequest(
        ApiKey.DESCRIBE_TOPIC_PARTITIONS,
        {"topics": ({"name": "trial-a"},), "cursor": {"topic_name": topic, "partition_index": partition}},
        ("INVALID_REQUEST",),
    )
    for topic, partition in (("trial-b", 0), ("trial-a", -1))
)
"""Cursors of a topic that is not requested, and of a negative partition."""


# --- partitions


UNKNOWN_ELECTION: Final = RawRequest(
    ApiKey.ELECT_LEADERS,
    {"election_type": 5, "topic_partitions": ({"topic": "trial", "partitions": (0,)},)},
    ("INVALID_REQUEST", "INVALID_REQUEST"),
)
_PARTITION: Final = {"partition_index": 0, "current_leader_epoch": -1}


def _list_offsets(timestamp: int, error: str, version: int) -> RawRequest:
    topics = ({"name": "trial", "partitions": ({**_PARTITION, "timestamp": timestamp},)},)
    fields = {"replica_id": -1, "isolation_level": 0, "topics": topics}
    return RawRequest(ApiKey.LIST_OFFSETS, fields, (error,), version)


UNKNOWN_TIMESTAMPS: Final = (
    _list_offsets(-99, error="UNSUPPORTED_VERSION", version=7),
    _list_offsets(-3, error="UNSUPPORTED_VERSION", version=6),
    _list_offsets(-4, error="UNSUPPORTED_VERSION", version=7),
    _list_offsets(-1, error="NONE", version=1),
    _list_offsets(-3, error="NONE", version=7),
)
"""Special timestamps: one that no version has, two that only newer versions have, and two that the version has."""
_UNKNOWN_SESSION: Final = 2**31 - 77
"""An id that no session has, whether a broker assigns them at random, as Kafka does, or counts from 1."""
UNKNOWN_SESSIONS: Final = tuple(
    RawRequest(
        ApiKey.FETCH,
        {**fetch_fields(topics=()), "session_id": session_id, "session_epoch": epoch},
        ("FETCH_SESSION_ID_NOT_FOUND",),
        version,
    )
    for session_id, epoch, version in (
        (_UNKNOWN_SESSION, 3, 12),
        (_UNKNOWN_SESSION, 1, 12),
        (2**30, 1, 7),
        (_UNKNOWN_SESSION, 3, None),
    )
)


# --- producers and groups


INCOMPLETE_PRODUCERS: Final = tuple(
    RawRequest(
        ApiKey.INIT_PRODUCER_ID,
        {"transactional_id": None, "producer_id": producer_id, "producer_epoch": epoch},
        ("INVALID_REQUEST",),
        version=4,
    )
    for producer_id, epoch in ((7, -1), (-1, 7))
)
UNKNOWN_COORDINATORS: Final = tuple(
    RawRequest(
        ApiKey.FIND_COORDINATOR,
        {"key": "trial", "key_type": key_type, "coordinator_keys": ("trial",)},
        ("INVALID_REQUEST",),
        version,
    )
    for version, key_type in ((1, 9), (3, 9), (4, 9), (4, 100), (4, -1))
)


# --- configurations


def _altered(api: ApiKey, resources: tuple[Resource, ...], *errors: str) -> RawRequest:
    named = tuple(
        {
            "resource_type": kind,
            "resource_name": name,
            "configs": tuple({"name": key, "config_operation": op, "value": value} for key, op, value in changes),
        }
        for kind, name, changes in resources
    )
    return RawRequest(api, {"resources": named, "validate_only": True}, errors)


_SET, _DELETE, _APPEND, _SUBTRACT = map(int, Operation)
_VALID: Final[Change] = ("message.max.bytes", _SET, "1048588")
_BROKER_CHANGES: Final[tuple[tuple[str, str | Broker, tuple[Change, ...]], ...]] = (
    ("NONE", "", (_VALID,)),
    ("NONE", _ONE, (_VALID,)),
    ("NONE", _ONE, ()),
    ("NONE", _ONE, (("plug.in", _SET, "x"),)),
    *(("INVALID_REQUEST", name, (_VALID,)) for name in (str(UNKNOWN_BROKER), "abc", "-1")),
    ("INVALID_REQUEST", _ONE, (("node.id", _SET, "7"),)),
    ("INVALID_REQUEST", _ONE, (("log.dirs", _SET, "/x"),)),
    ("INVALID_REQUEST", _ONE, (("message.max.bytes", _SET, "-5"),)),
    ("INVALID_REQUEST", _ONE, (("message.max.bytes", _SET, None),)),
    ("INVALID_REQUEST", _ONE, (_VALID, _VALID)),
)
BROKER_CHANGES: Final = (
    _altered(ApiKey.INCREMENTAL_ALTER_CONFIGS, ((_BROKER, _ONE, (_VALID,)),) * 2, "INVALID_REQUEST", "INVALID_REQUEST"),
    *(
        request
        for api in (ApiKey.INCREMENTAL_ALTER_CONFIGS, ApiKey.ALTER_CONFIGS)
        for request in (
            *(
                _altered(api, ((_BROKER, name, changes),), error)
                for error, name, changes in _BROKER_CHANGES
                if name or api is ApiKey.INCREMENTAL_ALTER_CONFIGS
            ),
            _altered(api, ((_NO_RESOURCE, _ONE, ()), (_BROKER, _ONE, (_VALID,))), "INVALID_REQUEST", "NONE"),
        )
    ),
)
"""AlterConfigs is left out where Apache Kafka differs (docs/findings.md): it never responds to a request that names
a resource twice, and 4.3 rejects a request for the whole cluster that would remove `min.insync.replicas`.
"""
_OPERATIONS: Final[tuple[tuple[str, int, str | Broker, tuple[Change, ...]], ...]] = (
    ("INVALID_CONFIG", _BROKER, _ONE, (("message.max.bytes", _APPEND, "1"),)),
    ("INVALID_REQUEST", _BROKER, _ONE, (("message.max.bytes", 7, "1"),)),
    ("NONE", _BROKER, _ONE, (("message.max.bytes", _DELETE, None),)),
    ("NONE", _BROKER, _ONE, (("log.cleanup.policy", _APPEND, "compact"),)),
    ("NONE", _TOPIC, "trial", (("cleanup.policy", _APPEND, "compact"),)),
    ("INVALID_CONFIG", _TOPIC, "trial", (("retention.ms", _SUBTRACT, "1"),)),
    ("INVALID_CONFIG", _TOPIC, "trial", (("no.such.property", _SET, "1"),)),
    ("NONE", _TOPIC, "trial", (("no.such.property", _DELETE, None),)),
    ("INVALID_REQUEST", _TOPIC, "trial", (("retention.ms", _SET, "5"), ("retention.ms", _DELETE, None))),
    ("INVALID_CONFIG", _TOPIC, "trial", (("min.compaction.lag.ms", _SET, "5"), ("max.compaction.lag.ms", _SET, "4"))),
    ("UNKNOWN_TOPIC_OR_PARTITION", _TOPIC, "trial-none", (("retention.ms", _SET, "5"),)),
    ("INVALID_TOPIC_EXCEPTION", _TOPIC, ".", (("retention.ms", _SET, "5"),)),
    ("INVALID_REQUEST", _TOPIC, "", (("retention.ms", _SET, "5"),)),
)
OPERATIONS: Final = tuple(
    _altered(ApiKey.INCREMENTAL_ALTER_CONFIGS, ((kind, name, changes),), error)
    for error, kind, name, changes in _OPERATIONS
)


def _described(*resources: tuple[str, int, str]) -> RawRequest:
    named = tuple({"resource_type": kind, "resource_name": name} for _, kind, name in resources)
    errors = tuple(error for error, _, _ in resources)
    return RawRequest(ApiKey.DESCRIBE_CONFIGS, {"resources": named}, errors)


UNKNOWN_RESOURCES: Final = (
    _described(
        ("NONE", _TOPIC, "trial"),
        ("UNKNOWN_TOPIC_OR_PARTITION", _TOPIC, "trial-none"),
        *((_INVALID_NAME, _TOPIC, name) for name in (".", "", "a b")),
        ("NONE", _BROKER, ""),
        *(("INVALID_REQUEST", _BROKER, name) for name in (str(UNKNOWN_BROKER), "abc", "-1")),
    ),
    _described(("INVALID_REQUEST", _NO_RESOURCE, "trial")),
)
"""Resources that exist, and others that do not, in one request; and a type that does not exist."""
