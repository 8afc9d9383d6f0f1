"""Tamperings: for every sequential requirement, a tampering that violates it.

A check that does not detect the tampering of its requirement is vacuous.
"""

import datetime as dt
import itertools
import typing
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from kio.index import load_response_from_request
from kio.schema.errors import ErrorCode

from conformance.requirements import compatibility, consistency, merged, versions
from conformance.requirements.requirement import requirement_of
from conformance.sequential.merged_requests import LISTS
from fixtures.clients.messages import ApiKey, api_name, known_versions
from fixtures.clients.record_batch import Compression, decode_batches, encode_batch
from reference_broker.core.apis import BROKER_APIS
from tests.conformance.tampering_proxy import (
    NO_FRAME_DEFECTS,
    Forward,
    FrameDefects,
    Tampering,
    altered,
    altered_requests,
    altered_responses,
    api,
    blank,
    pretended,
    suppressed_errors,
    with_errors,
)


@dataclass(frozen=True, slots=True)
class Planted:
    """A tampering that violates a requirement, with the frame defects of its proxy."""

    tampering: Tampering
    frame_defects: FrameDefects = NO_FRAME_DEFECTS


def unchanged(request: Any, forward: Forward) -> Any:
    return forward(request)


_LISTS = (*LISTS, "coordinators")
"""The names that responses have for the list of what was requested."""


def of_several(name: str, change: Callable[[tuple[Any, ...]], tuple[Any, ...]]) -> Tampering:
    """Return a tampering that changes the lists of several partitions, topics or groups in responses of an API."""

    def tampered(part: Any) -> Any:
        lists = {field: getattr(part, field) for field in _LISTS if isinstance(getattr(part, field, None), tuple)}
        elements = {field: tuple(map(tampered, each)) for field, each in lists.items()}
        return replace(part, **{field: change(each) if len(each) > 1 else each for field, each in elements.items()})

    def tamper(request: Any, forward: Forward) -> Any:
        response = forward(request)
        return tampered(response) if api(request) == name and response is not None else response

    return tamper


def described_once(name: str) -> Tampering:
    """Return a tampering that repeats the first leader and leader epoch of each partition in responses of an API."""
    first: dict[tuple[str, int], Any] = {}

    def kept(topic: Any) -> Any:
        return altered(topic, "partitions", lambda part: replace(part, **first_state(topic.name, part)))

    def first_state(topic: str, part: Any) -> dict[str, Any]:
        state = {"leader_id": part.leader_id, "leader_epoch": part.leader_epoch}
        return first.setdefault((topic, part.partition_index), state)

    def tamper(request: Any, forward: Forward) -> Any:
        response = forward(request)
        return altered(response, "topics", kept) if api(request) == name else response

    return tamper


# --- produce


def _responds_to_acks_zero(request: Any, forward: Forward) -> Any:
    return forward(replace(request, acks=1) if getattr(request, "acks", None) == 0 else request)


def _appends_and_rejects(request: Any, forward: Forward) -> Any:
    """Append the batches of a request with invalid acks, and reject it."""
    if getattr(request, "acks", -1) not in {-1, 0, 1}:
        forward(replace(request, acks=1))
    return forward(request)


def _denies_append_time(_request: Any, part: Any) -> Any:
    """Return no log append time where the broker returns one, and one where it returns none."""
    time = None if part.log_append_time else dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
    return replace(part, log_append_time=time)


def records_altered(change: Callable[[list[Any], Any], list[Any]]) -> Tampering:
    """Return a tampering that applies `change(batches, request)` to the batches of each fetched partition."""

    def partition(request: Any, part: Any) -> Any:
        batches = list(decode_batches(part.records or b""))
        return replace(part, records=b"".join(encode_batch(batch) for batch in change(batches, request)))

    return altered_responses("Fetch", partition)


def _sessions_without_changes(request: Any, forward: Forward) -> Any:
    """Create a session, and respond to each later request in it without partitions."""
    if api(request) != "Fetch" or getattr(request, "session_epoch", -1) == -1:
        return forward(request)
    response = forward(replace(request, session_id=0, session_epoch=-1))
    if request.session_epoch == 0:
        return replace(response, session_id=4711)
    return replace(response, session_id=4711, responses=(), error_code=ErrorCode.none)


def max_timestamp_one_more(batches: list[Any], _request: Any) -> list[Any]:
    return [replace(batch, max_timestamp_ms=batch.max_timestamp_ms + 1) for batch in batches]


def _fetch_offset(request: Any) -> int:
    return request.topics[0].partitions[0].fetch_offset


def _filters(batches: list[Any], request: Any) -> list[Any]:
    """Remove the records below the requested offset, which a broker returns with the rest of their batch."""
    offset = _fetch_offset(request)
    kept = [replace(b, records=tuple(r for r in b.records if (r.offset or 0) >= offset)) for b in batches]
    return [replace(b, base_offset=b.records[0].offset or 0, last_offset_delta=None) for b in kept if b.records]


def _loses_headers(batches: list[Any], _request: Any) -> list[Any]:
    """Remove the headers and the key of each record."""
    return [replace(b, records=tuple(replace(r, headers=(), key=None) for r in b.records)) for b in batches]


def _loses_producers(batches: list[Any], _request: Any) -> list[Any]:
    return [replace(batch, producer_id=-1, producer_epoch=-1, base_sequence=-1) for batch in batches]


def _removes_compression(batches: list[Any], _request: Any) -> list[Any]:
    return [replace(batch, compression=Compression.NONE) for batch in batches]


def _reverses(batches: list[Any], _request: Any) -> list[Any]:
    return batches[::-1]


def _hard_limit(request: Any, part: Any) -> Any:
    """Return no records if they exceed the limit of the partition, which Kafka ignores for the first batch."""
    limit = request.topics[0].partitions[0].partition_max_bytes
    return part if len(part.records or b"") <= limit else replace(part, records=b"")


# --- idempotence


def _removes_producer_ids(request: Any) -> Any:
    """Remove the producer id, epoch and sequence number from every batch before it is appended."""

    def strip(part: Any) -> Any:
        batches = decode_batches(part.records or b"")
        plain = (replace(batch, producer_id=-1, producer_epoch=-1, base_sequence=-1) for batch in batches)
        return replace(part, records=b"".join(encode_batch(batch) for batch in plain))

    return altered(request, "topic_data.partition_data", strip)


def same_producer_id(_request: Any, part: Any) -> Any:
    return replace(part, producer_id=4711)


# --- offsets and epochs


def _plus_one(name: str, field: str) -> Tampering:
    return altered_responses(name, lambda _request, part: replace(part, **{field: getattr(part, field) + 1}))


def _keeps_records(request: Any, forward: Forward) -> Any:
    """Delete nothing, and return the requested offset as the low watermark in the response to DeleteRecords."""
    if api(request) != "DeleteRecords":
        return forward(request)
    requested = request.topics[0].partitions[0].offset
    response = forward(altered(request, "topics.partitions", lambda part: replace(part, offset=0)))
    return altered(response, "topics.partitions", lambda part: replace(part, low_watermark=max(requested, 0)))


def _ignores_epoch(request: Any, forward: Forward) -> Any:
    if api(request) not in {"Fetch", "ListOffsets", "OffsetForLeaderEpoch"}:
        return forward(request)
    without_epoch = altered(request, "topics.partitions", lambda part: replace(part, current_leader_epoch=-1))
    return forward(without_epoch)


def _begins_at_the_first_record(request: Any, part: Any) -> Any:
    """Return no end offset for the newest epoch unless it is 0, as if an epoch began only with its first record."""
    requested = request.topics[0].partitions[0].leader_epoch
    return replace(part, leader_epoch=-1, end_offset=-1) if part.leader_epoch == requested > 0 else part


def _deletes_on_the_leader_alone() -> Tampering:
    """Return a tampering that returns log start 0 after an election, as if DeleteRecords had not reached followers."""
    elected: set[str] = set()

    def tamper(request: Any, forward: Forward) -> Any:
        if api(request) == "ElectLeaders":
            elected.update(topic.topic for topic in request.topic_partitions or ())
        response = forward(request)
        if api(request) != "ListOffsets":
            return response
        (topic,) = request.topics[:1]
        is_later = topic.name in elected and topic.partitions[0].timestamp == -2
        return altered(response, "topics.partitions.offset", lambda _: 0) if is_later else response

    return tamper


# --- retention


def _ignores_limit(name: str) -> Tampering:
    """Return a tampering that replaces the value of a retention limit by -1 (unlimited) in requests."""

    def change(config: Any) -> Any:
        return replace(config, value="-1") if config.name == name else config

    return altered_requests("IncrementalAlterConfigs", lambda request: altered(request, "resources.configs", change))


def _finds_deleted_records(request: Any, part: Any) -> Any:
    """Return offset 0 for timestamp 0, as if the deleted record with offset 0 were still found."""
    is_of_timestamp_0 = request.topics[0].partitions[0].timestamp == 0
    return replace(part, offset=0) if is_of_timestamp_0 else part


def _deletes_from_compacted_topics(request: Any) -> Any:
    def change(config: Any) -> Any:
        return replace(config, value="compact,delete") if config.value == "compact" else config

    return altered(request, "topics.configs", change)


# --- compaction


def _describes_cleaner(_request: Any, part: Any) -> Any:
    """Describe `log.cleaner.backoff.ms`, as if the reference broker had a log cleaner.

    `Session` requests it together with `log.initial.task.delay.ms` only.
    """
    if {config.name for config in part.configs} <= {"log.initial.task.delay.ms"}:
        kind = next(iter(typing.get_args(typing.get_type_hints(type(part))["configs"])))
        described = replace(blank(kind), name="log.cleaner.backoff.ms", value="300")
        return replace(part, configs=(*part.configs, described))
    return part


_PRETENDS_TO_CLEAN = altered_responses("DescribeConfigs", _describes_cleaner)


# --- quotas


def _quotas_replace_all(request: Any, forward: Forward) -> Any:
    """Advertise the quota APIs, and accept each change.

    A change replaces all quotas of its entity. No client is throttled.
    """
    name = api(request)
    if name == "AlterClientQuotas":
        for entry in request.entries:
            _QUOTAS[entry.entity[0].entity_name if entry.entity else None] = entry.ops
        return blank(load_response_from_request(type(request)))
    if name == "DescribeClientQuotas":
        return _described_quotas(request)
    response = forward(request)
    if name != "ApiVersions":
        return response
    keys = (ApiKey.ALTER_CLIENT_QUOTAS, ApiKey.DESCRIBE_CLIENT_QUOTAS)
    added = (replace(response.api_keys[0], api_key=key, min_version=0, max_version=1) for key in keys)
    return replace(response, api_keys=(*response.api_keys, *added))


_QUOTAS: dict[str | None, Any] = {}
"""For each client id: the operations of the last change of its quotas. None is the default client id."""


def _described_quotas(request: Any) -> Any:
    response = blank(load_response_from_request(type(request)))
    (entry_type, *_) = typing.get_args(typing.get_args(typing.get_type_hints(type(response))["entries"])[0])
    client = request.components[0].match
    entry = blank(entry_type)
    entity = replace(entry.entity[0], entity_type="client-id", entity_name=client)
    values = [replace(entry.values[0], key=op.key, value=op.value) for op in _QUOTAS.get(client, ()) if not op.remove]
    found = (replace(entry, entity=(entity,), values=tuple(values)),) if values else ()
    return replace(response, entries=found)


# --- recovery


def _after_restart(tampering: Tampering) -> Tampering:
    """Return a tampering that begins after the restart of the broker.

    The first step after the restart is the second InitProducerId of each script.
    """
    producers: list[Any] = []

    def tamper(request: Any, forward: Forward) -> Any:
        if api(request) == "CreateTopics":
            producers.clear()
        if api(request) == "InitProducerId":
            producers.append(request)
        return tampering(request, forward) if len(producers) > 1 else forward(request)

    return tamper


def _loses_first_batch(batches: list[Any], _request: Any) -> list[Any]:
    return batches[1:]


def _loses_commits(request: Any, forward: Forward) -> Any:
    response = forward(request)
    if api(request) != "OffsetFetch":
        return response
    path = "groups.topics.partitions" if hasattr(response, "groups") else "topics.partitions"
    return altered(response, path, lambda part: replace(part, committed_offset=-1))


# --- metadata and admin


def _hides_errors_of_topics(_request: Any, part: Any) -> Any:
    return replace(part, error_code=ErrorCode.none)


def _reads_empty_as_all(request: Any) -> Any:
    return replace(request, topics=None) if request.topics == () else request


def same_topic_id(_request: Any, part: Any) -> Any:
    return replace(part, topic_id=uuid.UUID(int=4711)) if hasattr(part, "topic_id") else part


def _returns_unknown_server_error(_request: Any, part: Any) -> Any:
    failed = part.error_code != ErrorCode.none
    return replace(part, error_code=ErrorCode.unknown_server_error) if failed else part


def _drops_validate_only(request: Any) -> Any:
    return replace(request, validate_only=False)


def _shrinks_isr(part: Any) -> Any:
    return replace(part, isr_nodes=part.isr_nodes[:1])


def _metadata_of_partitions(change: Callable[[Any], Any]) -> Tampering:
    """Return a tampering that applies the change to each partition in the responses to Metadata."""

    def tamper(request: Any, forward: Forward) -> Any:
        response = forward(request)
        return altered(response, "topics.partitions", change) if api(request) == "Metadata" else response

    return tamper


def _in_the_first_epoch(part: Any) -> Any:
    return replace(part, leader_epoch=0) if hasattr(part, "leader_epoch") else part


def hundred_bytes_more(_request: Any, part: Any) -> Any:
    """Add 100 bytes to the size of each replica in the response to DescribeLogDirs."""
    return altered(
        part, "results.topics.partitions", lambda each: replace(each, partition_size=each.partition_size + 100)
    )


def _puts_all_on_the_leader(part: Any) -> Any:
    return replace(part, replica_nodes=(part.leader_id, part.leader_id))


def _returns_not_controller(_request: Any, part: Any) -> Any:
    return replace(part, error_code=ErrorCode.not_controller)


def _only_validates(request: Any) -> Any:
    return replace(request, validate_only=True)


def _inherits_all(_request: Any, part: Any) -> Any:
    """Describe each setting with the source DEFAULT_CONFIG."""
    return altered(part, "configs", lambda config: replace(config, config_source=5))


def _throttles_without_delay(request: Any, forward: Any) -> Any:
    """Return a throttle time in each response to Fetch, and delay no response."""
    response = forward(request)
    return replace(response, throttle_time=dt.timedelta(seconds=5)) if api(request) == "Fetch" else response


def described_as(name: str, value: str) -> Tampering:
    """Return a tampering that describes a setting with this value, while the broker continues to apply its own."""

    def change(config: Any) -> Any:
        return replace(config, value=value) if config.name == name else config

    return altered_responses("DescribeConfigs", lambda _, part: altered(part, "configs", change))


def resources_listed(change: Callable[[Any], Any]) -> Tampering:
    """Return a tampering that applies the change to the resources in each response to ListConfigResources with any."""

    def tamper(request: Any, forward: Forward) -> Any:
        response = forward(request)
        if api(request) != "ListConfigResources" or not response.config_resources:
            return response
        return replace(response, config_resources=tuple(change(response.config_resources)))

    return tamper


def _defaults_to_one_day(_request: Any, part: Any) -> Any:
    """Describe one day as the default retention time of topics and of brokers."""
    values = {"retention.ms": "86400000", "log.retention.hours": "24"}
    inherited = {name for name in values if any(each.name == name and each.config_source == 5 for each in part.configs)}

    def change(config: Any) -> Any:
        if config.name not in inherited:
            return config
        value = values[config.name]
        synonyms = tuple(replace(each, value=value) if each.name == config.name else each for each in config.synonyms)
        return replace(config, value=value, synonyms=synonyms)

    return altered(part, "configs", change)


# --- leaders


def _loses_past_epochs(batches: list[Any], _request: Any) -> list[Any]:
    newest = max((batch.leader_epoch for batch in batches), default=0)
    return [batch for batch in batches if batch.leader_epoch == newest]


def _restamps_epochs(batches: list[Any], _request: Any) -> list[Any]:
    newest = max((batch.leader_epoch for batch in batches), default=0)
    return [replace(batch, leader_epoch=newest) for batch in batches]


def _names_a_leader_with_any_error(_request: Any, part: Any) -> Any:
    if part.error_code == ErrorCode.none or not hasattr(part, "current_leader"):
        return part
    return replace(part, current_leader=replace(part.current_leader, leader_id=1, leader_epoch=0))


def _names_no_leader(_request: Any, part: Any) -> Any:
    if not hasattr(part, "current_leader"):
        return part
    return replace(part, current_leader=replace(part.current_leader, leader_id=-1))


def _reverses_replicas(part: Any) -> Any:
    """Reverse the new replicas of a reassignment, and add broker 1."""
    return part if part.replicas is None else replace(part, replicas=(*part.replicas[::-1], 1))


# --- groups


def _commits_without_member(request: Any) -> Any:
    changes = {"member_id": "", "generation_id_or_member_epoch": -1, "generation_id": -1}
    return replace(request, **{name: value for name, value in changes.items() if hasattr(request, name)})


def _commits_one_more(part: Any) -> Any:
    return replace(part, committed_offset=part.committed_offset + 1)


def _commits_no_epoch(part: Any) -> Any:
    return replace(part, committed_leader_epoch=-1) if hasattr(part, "committed_leader_epoch") else part


# --- negotiation


def _does_not_wait(request: Any) -> Any:
    return replace(request, max_wait=dt.timedelta(0))


def _fetches_without_wait_are_empty(request: Any, part: Any) -> Any:
    return part if request.max_wait else replace(part, records=b"")


def _old_fetches_are_empty(request: Any, part: Any) -> Any:
    return replace(part, records=b"") if request.__version__ < 12 else part


def _valid_client_name(request: Any) -> Any:
    return (
        replace(request, client_software_name="a", client_software_version="1") if request.__version__ >= 3 else request
    )


def _fills_errors(name: str, *fields: str) -> Planted:
    """Plant a tampering that sets these fields to 0 in each part with an error."""

    def change(_request: Any, part: Any) -> Any:
        if part.error_code == ErrorCode.none:
            return part
        return replace(part, **{field: 0 for field in fields if hasattr(part, field)})

    return Planted(altered_responses(name, change))


_ERRORS_SUPPRESSED = Planted(suppressed_errors("Produce", base_offset=0))


def _fails_when_old(key: ApiKey) -> Planted:
    """Plant a tampering that returns UNKNOWN_SERVER_ERROR for every error code in the oldest version of an API."""
    oldest = known_versions(key)[0]

    def tamper(request: Any, forward: Forward) -> Any:
        response = forward(request)
        is_old = (request.__api_key__, request.__version__) == (key, oldest)
        return with_errors(response, ErrorCode.unknown_server_error) if is_old else response

    return Planted(tamper)


def every_nth_response(n: int, name: str, path: str, change: Callable[[Any], Any]) -> Tampering:
    """Return a tampering that changes the value at a path in every nth response of an API.

    A response whose version lacks the path stays as it is.
    """
    counts = itertools.count(1)

    def tamper(request: Any, forward: Forward) -> Any:
        response = forward(request)
        if api(request) == name and next(counts) % n == 0:
            with suppress(AttributeError):
                return altered(response, path, change)
        return response

    return tamper


def _one_more(number: int) -> int:
    return type(number)(number + 1)


def _oldest_removed(listed: Any) -> Any:
    """Advertise only the newest version of DeleteRecords."""
    is_deletion = listed.api_key == ApiKey.DELETE_RECORDS
    return replace(listed, min_version=listed.max_version) if is_deletion else listed


_VARIED: dict[ApiKey, tuple[str, Callable[[Any], Any]]] = {
    ApiKey.FETCH: ("responses.partitions.high_watermark", _one_more),
    ApiKey.LIST_OFFSETS: ("topics.partitions.offset", _one_more),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: ("topics.partitions.end_offset", _one_more),
    ApiKey.METADATA: ("topics.partitions.isr_nodes", _one_more),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: ("topics.partitions.leader_epoch", _one_more),
    ApiKey.DESCRIBE_CLUSTER: ("cluster_id", lambda _: "other"),
    ApiKey.DESCRIBE_QUORUM: ("topics.partitions.leader_epoch", _one_more),
    ApiKey.FIND_COORDINATOR: ("coordinators.node_id", _one_more),
    ApiKey.API_VERSIONS: ("api_keys", _oldest_removed),
    ApiKey.OFFSET_FETCH: ("groups.topics.partitions.metadata", lambda _: "other"),
    ApiKey.DESCRIBE_CONFIGS: ("results.configs.read_only", lambda read_only: not read_only),
    ApiKey.DESCRIBE_LOG_DIRS: ("results.topics.partitions.partition_size", _one_more),
    ApiKey.LIST_CONFIG_RESOURCES: ("error_code", lambda _: ErrorCode.unknown_server_error),
}
"""For each API of the reference broker that only reads: the path to a value, and a function that changes the value."""


_OF_MEMBERS = (
    "groups/only-member-leads-its-group",
    "groups/member-commits-in-its-generation",
    "groups/member-that-left-is-unknown",
    "groups/silent-member-is-removed",
    "groups/state-is-described",
    "consistency/describe-groups",
    "consistency/list-groups",
    "merged/describe-groups",
    "merged/delete-groups",
    "compatibility/sync-group",
    "compatibility/heartbeat",
    "compatibility/list-groups",
)
_MEMBER_APIS = (
    ApiKey.JOIN_GROUP,
    ApiKey.SYNC_GROUP,
    ApiKey.HEARTBEAT,
    ApiKey.LEAVE_GROUP,
    ApiKey.DESCRIBE_GROUPS,
    ApiKey.LIST_GROUPS,
    ApiKey.DELETE_GROUPS,
)

_VERSION_IDS = {requirement.id for requirement in versions.REQUIREMENTS}
_OF_VERSIONS = {id_: key for key in ApiKey if (id_ := requirement_of("versions", key)) in _VERSION_IDS}
"""Ids of the requirements `versions/…`, each with its API."""
_CONSISTENCY_IDS = {requirement.id for requirement in consistency.REQUIREMENTS}
_MERGED_IDS = {requirement.id for requirement in merged.REQUIREMENTS}
_MERGED = [key for key in ApiKey if requirement_of("merged", key) in _MERGED_IDS]
_COMPATIBILITY_IDS = {requirement.id for requirement in compatibility.REQUIREMENTS}
_COMPATIBILITY = [key for key in ApiKey if requirement_of("compatibility", key) in _COMPATIBILITY_IDS]
_READ_ONLY = [key for key in ApiKey if requirement_of("consistency", key) in _CONSISTENCY_IDS]

NOT_ON_REFERENCE: dict[str, ApiKey | str] = {
    **{id_: key for id_, key in _OF_VERSIONS.items() if key not in BROKER_APIS},
    **{requirement_of("consistency", key): key for key in _READ_ONLY if key not in BROKER_APIS},
    **{requirement_of("merged", key): key for key in _MERGED if key not in BROKER_APIS},
    **{requirement_of("compatibility", key): key for key in _COMPATIBILITY if key not in BROKER_APIS},
    "fetch/session-returns-changed-partitions": "fetch sessions",
    "groups/session-timeout-out-of-bounds-is-rejected": ApiKey.JOIN_GROUP,
    "groups/new-member-receives-its-id-first": ApiKey.JOIN_GROUP,
    **dict.fromkeys(_OF_MEMBERS, ApiKey.JOIN_GROUP),
    "groups/state-is-described": ApiKey.DESCRIBE_GROUPS,
    "transactions/initial-state-is-listed": ApiKey.LIST_TRANSACTIONS,
    "transactions/fenced-producer-is-rejected": ApiKey.ADD_PARTITIONS_TO_TXN,
    "transactions/too-long-timeout-is-rejected": ApiKey.END_TXN,
    "transactions/empty-id-is-rejected": ApiKey.END_TXN,
    "groups/deleted-offsets-are-removed": ApiKey.OFFSET_DELETE,
    "idempotence/active-producers-are-described": ApiKey.DESCRIBE_PRODUCERS,
    "consistency/describe-client-quotas": ApiKey.ALTER_CLIENT_QUOTAS,
    "consistency/describe-user-scram-credentials": ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
    "security/scram-credentials-are-described": ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
    "security/bad-scram-credential-is-rejected": ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
    "quotas/altered-quotas-are-described": ApiKey.DESCRIBE_CLIENT_QUOTAS,
    "quotas/bad-change-is-rejected": ApiKey.ALTER_CLIENT_QUOTAS,
    "quotas/exceeded-quota-throttles": ApiKey.ALTER_CLIENT_QUOTAS,
    "quotas/exceeded-consumer-quota-throttles": ApiKey.ALTER_CLIENT_QUOTAS,
    **{
        f"compaction/{name}": "this cleanup"
        for name in (
            "newest-record-of-each-key-stays",
            "active-segment-stays",
            "old-tombstones-are-removed",
            "emptied-batches-keep-their-producer",
        )
    },
}
"""Ids of the requirements that are not applicable to the reference broker, each with what the broker lacks.

That is an API, or the words after `does not offer` in the reason. The tampering pretends that the broker offers it.
"""


TAMPERINGS: dict[str, Planted] = {
    **{
        id_: Planted(
            _PRETENDS_TO_CLEAN if isinstance(missing, str) else pretended(ErrorCode.unknown_server_error, missing)
        )
        for id_, missing in NOT_ON_REFERENCE.items()
    },
    **dict.fromkeys(_OF_MEMBERS, Planted(pretended(ErrorCode.unknown_server_error, *_MEMBER_APIS))),
    "consistency/describe-client-quotas": Planted(
        pretended(ErrorCode.unknown_server_error, ApiKey.ALTER_CLIENT_QUOTAS, ApiKey.DESCRIBE_CLIENT_QUOTAS)
    ),
    **dict.fromkeys(
        (
            "consistency/describe-user-scram-credentials",
            "security/scram-credentials-are-described",
            "security/bad-scram-credential-is-rejected",
        ),
        Planted(
            pretended(
                ErrorCode.unknown_server_error,
                ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
                ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
            )
        ),
    ),
    "transactions/fenced-producer-is-rejected": Planted(
        pretended(
            ErrorCode.unknown_server_error, ApiKey.ADD_PARTITIONS_TO_TXN, ApiKey.ADD_OFFSETS_TO_TXN, ApiKey.END_TXN
        )
    ),
    "quotas/altered-quotas-are-described": Planted(_quotas_replace_all),
    "quotas/bad-change-is-rejected": Planted(_quotas_replace_all),
    "quotas/exceeded-quota-throttles": Planted(_quotas_replace_all),
    "quotas/exceeded-consumer-quota-throttles": Planted(_quotas_replace_all),
    "quotas/throttled-connection-is-muted": Planted(_throttles_without_delay),
    **{id_: _fails_when_old(key) for id_, key in _OF_VERSIONS.items() if key in BROKER_APIS},
    **{requirement_of("compatibility", key): _fails_when_old(key) for key in _COMPATIBILITY if key in BROKER_APIS},
    **{
        requirement_of("consistency", key): Planted(every_nth_response(2, api_name(key), *_VARIED[key]))
        for key in _READ_ONLY
        if key in BROKER_APIS
    },
    **{
        requirement_of("merged", key): Planted(of_several(api_name(key), lambda elements: elements[:1]))
        for key in _MERGED
        if key in BROKER_APIS
    },
    "produce/offsets-are-dense": Planted(_plus_one("Produce", "base_offset")),
    "produce/corrupt-batch-is-rejected": _ERRORS_SUPPRESSED,
    "produce/malformed-batch-is-rejected": _ERRORS_SUPPRESSED,
    "produce/invalid-acks-are-rejected": Planted(
        altered_requests("Produce", lambda request: request if request.acks in {-1, 0, 1} else replace(request, acks=1))
    ),
    "produce/acks-zero-has-no-response": Planted(_responds_to_acks_zero),
    "produce/oversize-batch-is-rejected": _ERRORS_SUPPRESSED,
    "produce/compacted-topic-needs-keys": _ERRORS_SUPPRESSED,
    "produce/invalid-records-are-named": Planted(
        altered_responses("Produce", lambda _, part: replace(part, record_errors=()))
    ),
    "produce/unknown-topic-is-rejected": _ERRORS_SUPPRESSED,
    "produce/late-timestamp-is-rejected": _ERRORS_SUPPRESSED,
    "produce/early-timestamp-is-rejected": _ERRORS_SUPPRESSED,
    "produce/topic-compression-type-is-applied": Planted(records_altered(_removes_compression)),
    "produce/zstd-needs-a-new-version": _ERRORS_SUPPRESSED,
    "produce/log-append-time-is-set-by-the-broker": Planted(altered_responses("Produce", _denies_append_time)),
    "produce/every-codec-round-trips": Planted(records_altered(_loses_headers)),
    "produce/deleted-topic-id-is-rejected": _ERRORS_SUPPRESSED,
    "produce/rejected-request-leaves-no-record": Planted(_appends_and_rejects),
    "fetch/log-is-read-in-append-order": Planted(records_altered(_reverses)),
    "fetch/max-timestamp-is-that-of-newest-record": Planted(records_altered(max_timestamp_one_more)),
    "fetch/out-of-range-offset-is-rejected": Planted(suppressed_errors("Fetch", high_watermark=0)),
    "fetch/watermarks-are-those-of-the-log": Planted(_plus_one("Fetch", "high_watermark")),
    "fetch/mid-batch-offset-returns-its-batch": Planted(records_altered(_filters)),
    "fetch/size-limits-are-soft": Planted(altered_responses("Fetch", _hard_limit)),
    "fetch/unknown-topic-is-rejected": Planted(suppressed_errors("Fetch", high_watermark=0)),
    "fetch/unknown-session-is-rejected": Planted(
        altered_requests("Fetch", lambda request: replace(request, session_id=0, session_epoch=-1))
    ),
    "fetch/session-returns-changed-partitions": Planted(_sessions_without_changes),
    "fetch/without-wait-returns-what-is-there": Planted(altered_responses("Fetch", _fetches_without_wait_are_empty)),
    "fetch/waiting-fetch-completes-when-data-arrives": Planted(altered_requests("Fetch", _does_not_wait)),
    "produce/errors-have-no-offset": _fills_errors("Produce", "base_offset", "log_start_offset"),
    "fetch/errors-have-no-watermarks": _fills_errors("Fetch", "high_watermark"),
    "offsets/errors-have-no-offset": _fills_errors("ListOffsets", "offset"),
    "epochs/errors-have-no-end-offset": _fills_errors("OffsetForLeaderEpoch", "end_offset"),
    "idempotence/duplicate-is-acknowledged-once": Planted(altered_requests("Produce", _removes_producer_ids)),
    "idempotence/batches-keep-their-producer": Planted(records_altered(_loses_producers)),
    "idempotence/evicted-duplicate-is-rejected": Planted(altered_requests("Produce", _removes_producer_ids)),
    "idempotence/sequence-gap-is-rejected": Planted(altered_requests("Produce", _removes_producer_ids)),
    "idempotence/new-epoch-begins-at-zero": Planted(altered_requests("Produce", _removes_producer_ids)),
    "idempotence/older-epoch-is-fenced": Planted(altered_requests("Produce", _removes_producer_ids)),
    "idempotence/sequences-wrap-to-zero": Planted(altered_requests("Produce", _removes_producer_ids)),
    "idempotence/incomplete-producer-id-is-rejected": Planted(suppressed_errors("InitProducerId")),
    "idempotence/producer-ids-are-unique": Planted(altered_responses("InitProducerId", same_producer_id)),
    "offsets/earliest-and-latest-are-the-logs-ends": Planted(_plus_one("ListOffsets", "offset")),
    "offsets/ends-have-no-timestamp": Planted(_plus_one("ListOffsets", "timestamp")),
    "offsets/by-timestamp-is-the-first-not-earlier": Planted(_plus_one("ListOffsets", "timestamp")),
    "offsets/max-timestamp-is-the-newest-record": Planted(_plus_one("ListOffsets", "timestamp")),
    "offsets/untiered-log-is-local": Planted(_plus_one("ListOffsets", "offset")),
    "offsets/unknown-timestamp-is-rejected": Planted(suppressed_errors("ListOffsets", offset=0)),
    "offsets/unknown-partition-is-rejected": Planted(suppressed_errors("ListOffsets", offset=0)),
    "offsets/delete-records-moves-log-start": Planted(_keeps_records),
    "offsets/delete-records-stops-at-high-watermark": Planted(suppressed_errors("DeleteRecords", low_watermark=0)),
    "retention/size-deletes-oldest-segments": Planted(_ignores_limit("retention.bytes")),
    "retention/time-deletes-expired-segments": Planted(_ignores_limit("retention.ms")),
    "retention/deleted-offsets-are-not-used-again": Planted(altered_responses("ListOffsets", _finds_deleted_records)),
    "retention/producers-outlive-their-records": Planted(altered_requests("Produce", _removes_producer_ids)),
    "retention/nothing-else-is-deleted": Planted(altered_requests("CreateTopics", _deletes_from_compacted_topics)),
    "storage/records-outlive-a-kill": Planted(_after_restart(records_altered(_loses_first_batch))),
    "storage/sequences-outlive-a-kill": Planted(_after_restart(altered_requests("Produce", _removes_producer_ids))),
    "storage/producer-ids-outlive-a-kill": Planted(altered_responses("InitProducerId", same_producer_id)),
    "storage/commits-outlive-a-kill": Planted(_after_restart(_loses_commits)),
    "storage/configs-outlive-a-kill": Planted(_after_restart(altered_responses("DescribeConfigs", _inherits_all))),
    "storage/topic-ids-outlive-a-kill": Planted(_after_restart(altered_responses("Metadata", same_topic_id))),
    "epochs/end-offset-of-an-epoch": Planted(_plus_one("OffsetForLeaderEpoch", "end_offset")),
    "epochs/unknown-leader-epoch-is-rejected": Planted(_ignores_epoch),
    "epochs/responses-carry-the-epoch": Planted(
        altered_responses(
            "ListOffsets", lambda _, part: replace(part, leader_epoch=-1) if hasattr(part, "leader_epoch") else part
        )
    ),
    "epochs/old-epoch-is-fenced": Planted(_ignores_epoch),
    "epochs/past-epochs-ended-where-the-next-began": Planted(_plus_one("OffsetForLeaderEpoch", "end_offset")),
    "epochs/epoch-begins-at-log-end": Planted(altered_responses("OffsetForLeaderEpoch", _begins_at_the_first_record)),
    "epochs/records-keep-their-epoch": Planted(records_altered(_restamps_epochs)),
    "epochs/newest-record-keeps-its-epoch": Planted(_plus_one("ListOffsets", "leader_epoch")),
    "epochs/every-leader-has-a-new-epoch": Planted(_metadata_of_partitions(_in_the_first_epoch)),
    "epochs/commits-carry-the-epoch": Planted(
        altered_requests("OffsetCommit", lambda request: altered(request, "topics.partitions", _commits_no_epoch))
    ),
    "leadership/only-the-leader-serves": Planted(suppressed_errors("ListOffsets", offset=0)),
    "leadership/current-leader-is-returned": Planted(altered_responses("Produce", _names_no_leader)),
    "leadership/no-leader-with-other-errors": Planted(altered_responses("Fetch", _names_a_leader_with_any_error)),
    "leadership/preferred-leader-is-elected": Planted(
        altered_requests("ElectLeaders", lambda request: replace(request, election_type=1))
    ),
    "leadership/deleted-records-stay-deleted": Planted(_deletes_on_the_leader_alone()),
    "leadership/producers-outlive-a-leader": Planted(altered_requests("Produce", _removes_producer_ids)),
    "leadership/records-outlive-a-leader": Planted(records_altered(_loses_past_epochs)),
    "metadata/topics-are-described": Planted(altered_responses("Metadata", _hides_errors_of_topics)),
    "metadata/null-lists-all-topics-and-empty-none": Planted(altered_requests("Metadata", _reads_empty_as_all)),
    "metadata/topic-id-names-one-creation": Planted(altered_responses("Metadata", same_topic_id)),
    "metadata/every-broker-returns-the-same": Planted(_metadata_of_partitions(_shrinks_isr)),
    "metadata/any-broker-serves-admin-requests": Planted(
        altered_responses("CreatePartitions", _returns_not_controller)
    ),
    "metadata/partitions-are-paged": Planted(
        altered_requests("DescribeTopicPartitions", lambda request: replace(request, response_partition_limit=2000))
    ),
    "metadata/paged-partitions-have-new-leaders": Planted(described_once("DescribeTopicPartitions")),
    "metadata/cluster-is-described": Planted(
        altered_requests("DescribeCluster", lambda request: replace(request, endpoint_type=1))
    ),
    "metadata/quorum-is-described": Planted(
        altered_responses("DescribeQuorum", lambda _, part: replace(part, leader_id=4711))
    ),
    "groups/commit-is-read-back": Planted(
        altered_requests("OffsetCommit", lambda request: altered(request, "topics.partitions", _commits_one_more))
    ),
    "groups/null-topics-fetch-all-offsets": Planted(
        altered_requests("OffsetCommit", lambda request: altered(request, "topics.partitions", _commits_one_more))
    ),
    "groups/offsets-of-deleted-topic-are-removed": Planted(
        altered_requests("OffsetCommit", lambda request: altered(request, "topics.partitions", _commits_one_more))
    ),
    "groups/oversize-metadata-is-rejected": Planted(suppressed_errors("OffsetCommit")),
    "groups/commit-from-unknown-member-is-rejected": Planted(altered_requests("OffsetCommit", _commits_without_member)),
    "groups/commit-for-unknown-topic-is-rejected": Planted(suppressed_errors("OffsetCommit")),
    "groups/unknown-coordinator-type-is-rejected": Planted(
        altered_requests("FindCoordinator", lambda request: replace(request, key_type=0))
    ),
    "groups/only-the-coordinator-serves": Planted(suppressed_errors("OffsetCommit")),
    "admin/bad-topic-is-not-created": Planted(altered_responses("CreateTopics", _returns_unknown_server_error)),
    "admin/errors-have-a-message": Planted(
        altered_responses("CreateTopics", lambda _, part: replace(part, error_message=None))
    ),
    "admin/existing-topic-is-not-created-again": Planted(suppressed_errors("CreateTopics")),
    "admin/colliding-topic-is-not-created": Planted(suppressed_errors("CreateTopics")),
    "admin/validate-only-creates-nothing": Planted(altered_requests("CreateTopics", _drops_validate_only)),
    "admin/creation-is-described": Planted(_plus_one("CreateTopics", "num_partitions")),
    "admin/deleted-topic-is-gone": Planted(suppressed_errors("DeleteTopics")),
    "admin/topics-are-deleted-by-id": Planted(suppressed_errors("DeleteTopics")),
    "admin/partitions-are-added": Planted(suppressed_errors("CreatePartitions")),
    "admin/added-partitions-use-the-assignment": Planted(
        altered_requests(
            "CreatePartitions",
            lambda request: altered(request, "topics", lambda topic: replace(topic, assignments=None)),
        )
    ),
    "admin/too-many-partitions-are-rejected": Planted(suppressed_errors("CreatePartitions")),
    "admin/replicas-are-spread": Planted(_metadata_of_partitions(_puts_all_on_the_leader)),
    "admin/replicas-have-the-size-of-the-log": Planted(altered_responses("DescribeLogDirs", hundred_bytes_more)),
    "configs/changes-leave-the-rest": Planted(altered_requests("IncrementalAlterConfigs", _only_validates)),
    "configs/changes-are-applied": Planted(
        altered_requests("IncrementalAlterConfigs", lambda request: replace(request, validate_only=True))
    ),
    "configs/lists-are-appended-to": Planted(altered_requests("IncrementalAlterConfigs", _only_validates)),
    "configs/bad-change-changes-nothing": Planted(suppressed_errors("IncrementalAlterConfigs")),
    "configs/bad-broker-change-is-rejected": Planted(suppressed_errors("AlterConfigs")),
    "configs/validate-only-changes-nothing": Planted(altered_requests("IncrementalAlterConfigs", _drops_validate_only)),
    "configs/alter-configs-replaces-all": Planted(altered_requests("AlterConfigs", _only_validates)),
    "configs/description-includes-sources": Planted(altered_responses("DescribeConfigs", _inherits_all)),
    "configs/documentation-is-returned-if-requested": Planted(
        altered_requests("DescribeConfigs", lambda request: replace(request, include_documentation=True))
    ),
    "configs/unknown-resource-is-not-described": Planted(suppressed_errors("DescribeConfigs")),
    "configs/defaults-are-those-of-kafka": Planted(altered_responses("DescribeConfigs", _defaults_to_one_day)),
    "configs/described-defaults-are-applied": Planted(described_as("message.max.bytes", "900000")),
    "configs/described-default-numbers-are-used": Planted(described_as("num.partitions", "7")),
    "configs/described-switches-are-applied": Planted(described_as("delete.topic.enable", "false")),
    "configs/brokers-describe-themselves": Planted(described_as("node.id", "77")),
    "configs/resources-are-listed": Planted(resources_listed(lambda listed: listed[1:])),
    "reassignment/replicas-are-moved": Planted(
        altered_requests(
            "AlterPartitionReassignments", lambda request: altered(request, "topics.partitions", _reverses_replicas)
        )
    ),
    "reassignment/records-move-along": Planted(records_altered(_loses_past_epochs)),
    "reassignment/invalid-reassignment-is-rejected": Planted(suppressed_errors("AlterPartitionReassignments")),
    "reassignment/replication-factor-change-can-be-disallowed": Planted(
        altered_requests(
            "AlterPartitionReassignments", lambda request: replace(request, allow_replication_factor_change=True)
        )
    ),
    "reassignment/ongoing-reassignment-is-listed": Planted(
        altered_responses("ListPartitionReassignments", lambda _, part: replace(part, adding_replicas=()))
    ),
    "reassignment/brokers-hold-their-own-replicas": Planted(
        altered_responses("DescribeLogDirs", lambda _, part: replace(part, results=()))
    ),
    "negotiation/every-version-is-served": Planted(altered_responses("Fetch", _old_fetches_are_empty)),
    "negotiation/api-versions-falls-back-to-version-0": Planted(unchanged, FrameDefects(rejects_unreadable=True)),
    "negotiation/malformed-client-name-is-rejected": Planted(altered_requests("ApiVersions", _valid_client_name)),
    "negotiation/responses-are-in-request-order": Planted(unchanged, FrameDefects(reverses=True)),
    "negotiation/unknown-tagged-fields-are-ignored": Planted(unchanged, FrameDefects(rejects_unreadable=True)),
    "negotiation/unknown-api-key-closes-one-connection": Planted(unchanged, FrameDefects(keeps_garbage_open=True)),
    "negotiation/broken-requests-are-survived": Planted(unchanged, FrameDefects(closes_all=True)),
    "negotiation/malformed-bytes-close-one-connection": Planted(unchanged, FrameDefects(keeps_garbage_open=True)),
}
