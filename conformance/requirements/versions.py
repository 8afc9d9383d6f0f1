"""Requirements of each API's range of versions: every version that a broker advertises is served.

Each row is for one API. It has a request that is valid in every version, variants of it with null and empty fields and
lists, and the outcome, which does not depend on the version. The request is sent in every version, and in the newest
one again with tagged fields that the broker does not know (KIP-482). The fields of each response follow the rules of
`field_rules`. A broker that does not advertise the API is not judged.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from conformance.requirements import sources
from conformance.requirements.requirement import KRAFT, Level, Requirement, requirement_of
from conformance.requirements.topic_fields import Fields, fetch_fields, one_partition, partition_indexes
from conformance.sequential.check import judges, sequential
from conformance.sequential.model.topics import UNKNOWN_BROKER
from conformance.sequential.response import INVALID_FIELDS
from conformance.sequential.steps import ApiKey, CreateTopic, Eventually, RawRequest, Step, WithUnknownTags
from conformance.sequential.strategies import placed, script
from fixtures.clients.messages import api_name, known_versions
from fixtures.clients.record_batch import Record, RecordBatch, encode_batch
from fixtures.targets.target import Capability


@dataclass(frozen=True, slots=True)
class _Row:
    """One API with its request.

    :ivar variants: for each further request in the newest version, the fields in which it differs: most are null or
        empty, where the first request has a value.
    :ivar newest: the newest version with this outcome; None if every version has it.
    :ivar names: the names of the request that the response must repeat, in the versions that have fields for them; None
        if they are not judged.
    :ivar has_elements: whether one of the response's lists must have an element.
    """

    api: ApiKey
    request: Fields
    error: str = ""
    or_error: str = ""
    """Another permitted error, if the request has two faults."""
    variants: tuple[Fields, ...] = ()
    newest: int | None = None
    names: tuple[str, ...] | None = None
    has_elements: bool = False
    of_replicas: bool = False
    """Whether the response is about the broker's own replicas, which it creates after it knows the topic."""
    since: str | None = None
    """First Kafka version with this outcome; None if every version has it."""


_TRIAL: Final = ("trial",)
_BATCH: Final = encode_batch(RecordBatch(records=(Record(b"a"),)))
_NO_TOPIC: Final = "UNKNOWN_TOPIC_OR_PARTITION"
_NO_MEMBER: Final = "UNKNOWN_MEMBER_ID"
_NO_GROUP: Final = "GROUP_ID_NOT_FOUND"
_NO_PRODUCER: Final = "INVALID_PRODUCER_ID_MAPPING"
_MEMBER: Final = {"group_id": "trial", "member_id": "unknown", "generation_id": 1}
_TRANSACTION: Final = {"transactional_id": "trial", "producer_id": 7, "producer_epoch": 0}


_ROWS: Final = (
    _Row(
        ApiKey.PRODUCE,
        {
            "transactional_id": None,
            "acks": -1,
            "topic_data": one_partition(partitions="partition_data", records=_BATCH),
        },
        names=_TRIAL,
    ),
    _Row(
        ApiKey.FETCH,
        fetch_fields(one_partition(fetch_offset=0, partition_max_bytes=1 << 20)),
        variants=({"topics": ()},),
        names=_TRIAL,
    ),
    _Row(
        ApiKey.LIST_OFFSETS,
        {"replica_id": -1, "isolation_level": 0, "topics": one_partition(timestamp=-1)},
        variants=({"topics": ()},),
        names=_TRIAL,
    ),
    _Row(
        ApiKey.METADATA,
        {
            "topics": ({"name": "trial", "topic_id": None},),
            "allow_auto_topic_creation": False,
            "include_cluster_authorized_operations": False,
            "include_topic_authorized_operations": False,
        },
        variants=({"topics": None}, {"topics": ()}),
        names=_TRIAL,
    ),
    _Row(
        ApiKey.OFFSET_COMMIT,
        {
            "group_id": "trial",
            "generation_id": -1,
            "generation_id_or_member_epoch": -1,
            "member_id": "",
            "topics": one_partition(committed_offset=1, committed_metadata=""),
        },
        variants=({"topics": one_partition(committed_offset=1, committed_metadata=None)},),
        names=_TRIAL,
    ),
    _Row(
        ApiKey.OFFSET_FETCH,
        {
            "group_id": "trial",
            "topics": partition_indexes(field="partition_indexes"),
            "groups": ({"group_id": "trial", "topics": partition_indexes(field="partition_indexes")},),
        },
        variants=({"topics": None, "groups": ({"group_id": "trial", "topics": None},)},),
        names=_TRIAL,
    ),
    _Row(ApiKey.FIND_COORDINATOR, {"key": "trial", "key_type": 0, "coordinator_keys": ("trial",)}, names=_TRIAL),
    _Row(
        ApiKey.API_VERSIONS, {"client_software_name": "kafkatrial", "client_software_version": "1"}, has_elements=True
    ),
    _Row(
        ApiKey.CREATE_TOPICS,
        {
            "topics": (
                {"name": "trial-new", "num_partitions": 1, "replication_factor": 1, "assignments": (), "configs": ()},
            ),
            "validate_only": True,
        },
        names=("trial-new",),
    ),
    _Row(
        ApiKey.DELETE_TOPICS,
        {"topic_names": ("trial-none",), "topics": ({"name": "trial-none", "topic_id": None},)},
        _NO_TOPIC,
        names=("trial-none",),
    ),
    _Row(ApiKey.DELETE_RECORDS, {"topics": one_partition(offset=0)}, variants=({"topics": ()},), names=_TRIAL),
    _Row(ApiKey.INIT_PRODUCER_ID, {"transactional_id": None}),
    _Row(
        ApiKey.OFFSET_FOR_LEADER_EPOCH,
        {"replica_id": -1, "topics": one_partition(leader_epoch=0)},
        variants=({"topics": ()},),
        names=_TRIAL,
    ),
    _Row(
        ApiKey.DESCRIBE_CONFIGS,
        {
            "resources": ({"resource_type": 2, "resource_name": "trial", "configuration_keys": ("retention.ms",)},),
            "include_synonyms": False,
            "include_documentation": False,
        },
        variants=({"resources": ({"resource_type": 2, "resource_name": "trial", "configuration_keys": None},)},),
        names=("trial", "retention.ms"),
    ),
    _Row(
        ApiKey.ALTER_CONFIGS,
        {
            "resources": (
                {
                    "resource_type": 2,
                    "resource_name": "trial",
                    "configs": ({"name": "retention.ms", "value": "1000"},),
                },
            ),
            "validate_only": True,
        },
        variants=({"resources": ()},),
        names=_TRIAL,
    ),
    _Row(
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        {
            "resources": (
                {
                    "resource_type": 2,
                    "resource_name": "trial",
                    "configs": ({"name": "retention.ms", "config_operation": 1, "value": None},),
                },
            ),
            "validate_only": True,
        },
        variants=({"resources": ()},),
        names=_TRIAL,
    ),
    _Row(
        ApiKey.DESCRIBE_LOG_DIRS,
        {"topics": partition_indexes()},
        variants=({"topics": None}, {"topics": ()}),
        names=_TRIAL,
        has_elements=True,
        of_replicas=True,
    ),
    _Row(
        ApiKey.CREATE_PARTITIONS,
        {"topics": ({"name": "trial", "count": 2, "assignments": None},), "validate_only": True},
        variants=({"topics": ()},),
        names=_TRIAL,
    ),
    _Row(
        ApiKey.ELECT_LEADERS,
        {"election_type": 0, "topic_partitions": partition_indexes("trial-none")},
        _NO_TOPIC,
        names=("trial-none",),
    ),
    _Row(
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        {"topics": ({"name": "trial-none", "partitions": ({"partition_index": 0, "replicas": None},)},)},
        _NO_TOPIC,
        names=("trial-none",),
        since=KRAFT,
    ),
    _Row(
        ApiKey.LIST_PARTITION_REASSIGNMENTS,
        {"topics": partition_indexes(field="partition_indexes")},
        variants=({"topics": None}, {"topics": ()}),
    ),
    _Row(
        ApiKey.DESCRIBE_QUORUM,
        {"topics": ({"topic_name": "__cluster_metadata", "partitions": ({"partition_index": 0},)},)},
        names=("__cluster_metadata",),
    ),
    _Row(
        ApiKey.DESCRIBE_CLUSTER,
        {"include_cluster_authorized_operations": False, "include_fenced_brokers": False},
        has_elements=True,
    ),
    _Row(ApiKey.UNREGISTER_BROKER, {"broker_id": UNKNOWN_BROKER}, "BROKER_ID_NOT_REGISTERED"),
    _Row(
        ApiKey.DESCRIBE_TOPIC_PARTITIONS,
        {"topics": ({"name": "trial"},), "cursor": None},
        variants=({"cursor": {"topic_name": "trial", "partition_index": 0}},),
        names=_TRIAL,
    ),
    # --- groups
    _Row(
        ApiKey.JOIN_GROUP,
        {
            **_MEMBER,
            "group_instance_id": None,
            "protocol_type": "consumer",
            "protocols": ({"name": "range", "metadata": b""},),
        },
        _NO_MEMBER,
    ),
    _Row(ApiKey.HEARTBEAT, _MEMBER, _NO_MEMBER),
    _Row(ApiKey.LEAVE_GROUP, {**_MEMBER, "members": ({"member_id": "unknown"},)}, _NO_MEMBER, names=("unknown",)),
    _Row(
        ApiKey.SYNC_GROUP,
        {**_MEMBER, "assignments": (), "protocol_type": "consumer", "protocol_name": "range"},
        _NO_MEMBER,
    ),
    _Row(
        ApiKey.DESCRIBE_GROUPS, {"groups": ("trial",), "include_authorized_operations": False}, newest=5, names=_TRIAL
    ),
    _Row(ApiKey.LIST_GROUPS, {}, variants=({"states_filter": ("Empty", "no such state")},)),
    _Row(ApiKey.DELETE_GROUPS, {"groups_names": ("trial",)}, _NO_GROUP, names=_TRIAL),
    _Row(ApiKey.OFFSET_DELETE, {"group_id": "trial", "topics": one_partition()}, _NO_GROUP),
    _Row(
        ApiKey.CONSUMER_GROUP_HEARTBEAT,
        {"group_id": "trial", "member_id": "unknown", "member_epoch": 5, "topic_partitions": None},
        _NO_GROUP,
    ),
    _Row(
        ApiKey.CONSUMER_GROUP_DESCRIBE,
        {"group_ids": ("trial",), "include_authorized_operations": False},
        _NO_GROUP,
        names=_TRIAL,
    ),
    # --- transactions
    _Row(
        ApiKey.ADD_PARTITIONS_TO_TXN,
        {
            "v3_and_below_transactional_id": "trial",
            "v3_and_below_producer_id": 7,
            "v3_and_below_producer_epoch": 0,
            "v3_and_below_topics": partition_indexes(),
        },
        _NO_PRODUCER,
        newest=3,
        names=_TRIAL,
    ),
    _Row(ApiKey.ADD_OFFSETS_TO_TXN, {**_TRANSACTION, "group_id": "trial"}, _NO_PRODUCER),
    _Row(ApiKey.END_TXN, {**_TRANSACTION, "committed": True}, _NO_PRODUCER, variants=({"committed": False},)),
    _Row(
        ApiKey.TXN_OFFSET_COMMIT,
        {
            **_TRANSACTION,
            "group_id": "trial",
            "topics": one_partition("trial-none", committed_offset=1, committed_metadata=""),
        },
        _NO_TOPIC,
        _NO_PRODUCER,
        names=("trial-none",),
    ),
    _Row(
        ApiKey.DESCRIBE_TRANSACTIONS,
        {"transactional_ids": ("trial",)},
        "TRANSACTIONAL_ID_NOT_FOUND",
        names=_TRIAL,
    ),
    _Row(ApiKey.LIST_TRANSACTIONS, {"state_filters": (), "producer_id_filters": ()}),
    _Row(
        ApiKey.DESCRIBE_PRODUCERS,
        {"topics": partition_indexes(field="partition_indexes")},
        variants=({"topics": ()},),
        names=_TRIAL,
    ),
    # --- administration
    _Row(ApiKey.DESCRIBE_CLIENT_QUOTAS, {"components": (), "strict": False}),
    _Row(
        ApiKey.ALTER_CLIENT_QUOTAS,
        {
            "entries": (
                {
                    "entity": ({"entity_type": "user", "entity_name": "trial"},),
                    "ops": ({"key": "no_such_quota", "value": 1.0, "remove": False},),
                },
            ),
            "validate_only": True,
        },
        "INVALID_REQUEST",
        names=("trial", "user"),
    ),
    _Row(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, {"users": ({"name": "trial"},)}, "RESOURCE_NOT_FOUND", names=_TRIAL),
    _Row(
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        {"deletions": ({"name": "trial", "mechanism": 1},), "upsertions": ()},
        "RESOURCE_NOT_FOUND",
        names=_TRIAL,
    ),
    _Row(
        ApiKey.ALTER_REPLICA_LOG_DIRS,
        {"dirs": ({"path": "/no/such/directory", "topics": partition_indexes()},)},
        "LOG_DIR_NOT_FOUND",
        names=_TRIAL,
    ),
    _Row(ApiKey.LIST_CONFIG_RESOURCES, {}),
    _Row(
        ApiKey.UPDATE_FEATURES,
        {
            "feature_updates": ({"feature": "no.such.feature", "max_version_level": 1, "allow_downgrade": False},),
            "validate_only": True,
        },
        "INVALID_UPDATE_VERSION",
        since=KRAFT,
    ),
)


_LISTS_OF_USERS: Final = frozenset({"users", "deletions", "upsertions"})
"""Lists of a request whose elements are named after users."""


def _names_topic(value: Any) -> bool:
    """Whether a request has the script's topic at any depth."""
    if isinstance(value, Mapping):
        named = (value.get(name) for name in ("name", "topic", "resource_name"))
        return "trial" in named or any(_names_topic(value[name]) for name in value.keys() - _LISTS_OF_USERS)
    return isinstance(value, tuple) and any(map(_names_topic, value))


def _steps(row: _Row) -> Sequence[Step]:
    errors = (row.error,) if row.error else ()
    or_errors = (row.or_error,) if row.or_error else None

    def request(version: int | None) -> RawRequest:
        return RawRequest(
            row.api,
            row.request,
            errors,
            version,
            distinct=True,
            names=row.names,
            has_elements=row.has_elements,
            or_errors=or_errors,
        )

    def variant(fields: Fields) -> RawRequest:
        return RawRequest(row.api, {**row.request, **fields}, errors, row.newest, distinct=True)

    topic = placed(1) if row.of_replicas else CreateTopic()
    created = (topic,) if _names_topic(row.request) else ()
    versions = [version for version in known_versions(row.api) if row.newest is None or version <= row.newest]
    ready = (Eventually(request(versions[0])),) if row.of_replicas else ()
    return *created, *ready, *map(request, versions), WithUnknownTags(request(row.newest)), *map(variant, row.variants)


def _requirement(row: _Row) -> Requirement:
    name = api_name(row.api)
    error = f"{row.error} or {row.or_error}" if row.or_error else row.error
    outcome = f"with the error {error}" if error else "without an error"
    variants = " Nullable fields and lists of the request may be null, empty or set." if row.variants else ""
    # Otherwise, other requests determine whether a list such as that of all groups has an element.
    elements = ("has_elements",) if row.has_elements else ()
    return Requirement(
        id=requirement_of("versions", row.api),
        level=Level.MUST,
        text=f"In every version that ApiVersions lists, {name} returns a well-formed response for what was requested, "
        f"{outcome}.{variants} Tagged fields that the broker does not know are ignored. No field of the response has "
        "an impossible value, such as a negative throttle time or an unknown broker.",
        sources=(sources.KIP_35, sources.KIP_482, sources.PROTOCOL),
        check=sequential(script(*_steps(row)), judges("errors", "names", *elements, INVALID_FIELDS, of=RawRequest)),
        needs=frozenset({Capability.TOPIC_ADMIN} if _names_topic(row.request) else ()),
        since=row.since,
    )


REQUIREMENTS: Final = tuple(map(_requirement, _ROWS))
