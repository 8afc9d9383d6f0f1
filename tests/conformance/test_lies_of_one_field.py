"""A single field with a false value is a violation of a requirement, and the finding names the field.

`test_every_requirement_can_fail` has one tampering for each requirement. These tests tamper with more of the fields
that a requirement judges, by the same method.
"""

import datetime as dt
import itertools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest
from kio.schema.errors import ErrorCode
from kio.schema.metadata.v12.request import MetadataRequest

from conformance.registry import REQUIREMENTS
from conformance.sequential import timeouts
from fixtures.clients.messages import ApiKey
from fixtures.targets.catalogue import parse_target
from linearizability.judgement import Verdict
from tests.conformance.tampering_proxy import (
    Tampering,
    TamperingProxy,
    altered,
    altered_requests,
    altered_responses,
    api,
    with_errors,
)
from tests.conformance.tamperings import (
    described_as,
    described_once,
    every_nth_response,
    hundred_bytes_more,
    max_timestamp_one_more,
    of_several,
    records_altered,
    resources_listed,
    same_producer_id,
    same_topic_id,
)
from tests.conformance.test_every_requirement_can_fail import BROKERS, check

pytestmark = pytest.mark.sampled(4)

UNKNOWN_BROKER = 77


@dataclass(frozen=True, slots=True)
class Lie:
    """A tampering, and the requirement that detects it.

    :ivar named: text that the reason of the finding must contain.
    """

    requirement: str
    tampering: Tampering
    named: str
    nodes: int = 1
    """Number of nodes that the lie needs, if the requirement needs fewer."""


def whole(name: str, **changes: Any) -> Tampering:
    """Return a tampering that replaces top-level fields in the responses of an API, if the version has them."""

    def tamper(request: Any, forward: Any) -> Any:
        response = forward(request)
        if api(request) != name:
            return response
        return replace(response, **{key: value for key, value in changes.items() if hasattr(response, key)})

    return tamper


def partitions_described(name: str, change: Any) -> Tampering:
    """Return a tampering that applies the change to each partition in the responses of an API."""

    def tamper(request: Any, forward: Any) -> Any:
        response = forward(request)
        return altered(response, "topics.partitions", change) if api(request) == name else response

    return tamper


def configs(change: Any) -> Tampering:
    """Return a tampering that applies the change to each setting in the responses to DescribeConfigs."""
    return altered_responses("DescribeConfigs", lambda _, part: altered(part, "configs", change))


def _each(elements: str, name: str, **changes: Any) -> Tampering:
    """Return a tampering that replaces fields in each element at the path `elements` in the responses of an API."""

    def tamper(request: Any, forward: Any) -> Any:
        response = forward(request)
        return altered(response, elements, lambda each: _changed(each, changes)) if api(request) == name else response

    return tamper


def _finalized_at_99(request: Any, forward: Any) -> Any:
    response = forward(request)
    if not hasattr(response, "finalized_features"):
        return response
    return altered(response, "finalized_features", lambda each: replace(each, max_version_level=99))


def _voter_ahead(request: Any, forward: Any) -> Any:
    """Describe one more voter, with a log that is longer than the leader's."""
    response = forward(request)
    if api(request) != "DescribeQuorum":
        return response

    def change(part: Any) -> Any:
        ahead = tuple(
            replace(each, replica_id=UNKNOWN_BROKER, log_end_offset=each.log_end_offset + 1)
            for each in part.current_voters
            if each.replica_id == part.leader_id
        )
        return replace(part, current_voters=part.current_voters + ahead)

    return altered(response, "topics.partitions", change)


def _topics_permit(operations: int) -> Tampering:
    """Return a tampering that replaces the authorized operations (a bit field) of each topic that has no error."""

    def change(topic: Any) -> Any:
        has_error = topic.error_code != ErrorCode.none
        return topic if has_error else _changed(topic, {"topic_authorized_operations": operations})

    def tamper(request: Any, forward: Any) -> Any:
        response = forward(request)
        has_topics = api(request) in {"Metadata", "DescribeTopicPartitions"}
        return altered(response, "topics", change) if has_topics else response

    return tamper


def _created_with(name: str, **changes: Any) -> Tampering:
    """Return a tampering that replaces fields of one setting in the responses to CreateTopics."""

    def change(config: Any) -> Any:
        return _changed(config, changes) if config.name == name else config

    def topic(_request: Any, part: Any) -> Any:
        return altered(part, "configs", change) if getattr(part, "configs", None) else part

    return altered_responses("CreateTopics", topic)


def _changed(element: Any, changes: Mapping[str, Any]) -> Any:
    """Return the element with these changes, except those of fields that its version lacks."""
    return replace(element, **{key: value for key, value in changes.items() if hasattr(element, key)})


def _log_start_one_more(_request: Any, part: Any) -> Any:
    return replace(part, log_start_offset=part.log_start_offset + 1) if hasattr(part, "log_start_offset") else part


def _append_time_an_hour_later(_request: Any, part: Any) -> Any:
    time = part.log_append_time
    return part if time is None else replace(part, log_append_time=time + dt.timedelta(hours=1))


def _one_replica_more(_request: Any, part: Any) -> Any:
    return replace(part, replication_factor=2) if hasattr(part, "replication_factor") else part


def _source_of_no_synonym(config: Any) -> Any:
    """Describe an inherited setting with the source DYNAMIC_BROKER_LOGGER_CONFIG, which no synonym has."""
    is_inherited = getattr(config, "config_source", 1) != 1
    return replace(config, config_source=6) if is_inherited else config


def _inherited(name: str, **changes: Any) -> Any:
    """Return a function that replaces fields of the setting with this name, unless the topic overrides the setting."""

    def change(config: Any) -> Any:
        return replace(config, **changes) if config.name == name and config.config_source != 1 else config

    return change


def _requires_generation_of_members(request: Any, forward: Any) -> Any:
    """Set generation 1 in each commit with a member id, so that the broker rejects commits without a generation."""
    if api(request) == "OffsetCommit" and getattr(request, "member_id", ""):
        field = next(name for name in ("generation_id", "generation_id_or_member_epoch") if hasattr(request, name))
        return forward(replace(request, **{field: 1}))
    return forward(request)


def _rejects_a_missing_topic(request: Any, forward: Any) -> Any:
    """Return an error for the offset of a topic that does not exist, in the versions for a single group."""
    response = forward(request)
    if api(request) != "OffsetFetch" or not hasattr(response, "topics"):
        return response

    def change(topic: Any) -> Any:
        error = ErrorCode.unknown_topic_or_partition
        is_missing = topic.name.startswith("trial-none")
        return altered(topic, "partitions", lambda part: replace(part, error_code=error)) if is_missing else topic

    return altered(response, "topics", change)


def _listed_twice(request: Any, forward: Any) -> Any:
    response = forward(request)
    if api(request) != "ApiVersions":
        return response
    return replace(response, api_keys=response.api_keys + response.api_keys[:1])


def _first_epoch(batches: list[Any], _request: Any) -> list[Any]:
    return [replace(batch, producer_epoch=min(batch.producer_epoch, 0)) for batch in batches]


def _sequence_one_more(batches: list[Any], _request: Any) -> list[Any]:
    return [replace(each, base_sequence=each.base_sequence + 1) if each.producer_id >= 0 else each for each in batches]


def _another_coordinator(request: Any, forward: Any) -> Any:
    """Replace each coordinator by the broker that follows it in the response to Metadata."""
    response = forward(request)
    if api(request) != "FindCoordinator":
        return response
    brokers = forward(MetadataRequest(topics=(), include_topic_authorized_operations=False)).brokers

    def change(found: Any) -> Any:
        following = brokers[([each.node_id for each in brokers].index(found.node_id) + 1) % len(brokers)]
        return replace(found, node_id=following.node_id, host=following.host, port=following.port)

    return altered(response, "coordinators", change) if hasattr(response, "coordinators") else change(response)


def _one_resource_more(resource_type: int, name: str) -> Tampering:
    """Return a tampering that adds a resource to each response to ListConfigResources that has any."""
    return resources_listed(
        lambda listed: (*listed, _changed(listed[0], {"resource_type": resource_type, "resource_name": name}))
    )


def _without_last_broker(request: Any, forward: Any) -> Any:
    response = forward(request)
    return replace(response, brokers=response.brokers[:-1]) if api(request) == "Metadata" else response


def _in_version(name: str, version: int, path: str, change: Any) -> Tampering:
    """Return a tampering that changes the value at a path in one version of an API."""

    def tamper(request: Any, forward: Any) -> Any:
        response = forward(request)
        is_tampered = (api(request), request.__version__) == (name, version)
        return altered(response, path, change) if is_tampered else response

    return tamper


def _exchanged(*fields: str) -> Any:
    """Return a function that exchanges the values of fields between the first and the last partition or group."""

    def change(partitions: tuple[Any, ...]) -> Any:
        first, *between, last = partitions
        values = {name: getattr(first, name) for name in fields if hasattr(first, name)}
        return (
            replace(first, **{name: getattr(last, name) for name in values}),
            *between,
            replace(last, **values),
        )

    return change


def _all_fail(parts: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return for all partitions the first error that one of them has. Topics that have partitions have no error."""
    errors = [part.error_code for part in parts if getattr(part, "error_code", ErrorCode.none) != ErrorCode.none]
    return tuple(replace(part, error_code=errors[0]) for part in parts) if errors else parts


def _long_values_are_cut(batches: list[Any], _request: Any) -> list[Any]:
    return [
        replace(batch, records=tuple(replace(each, value=(each.value or b"")[:4096]) for each in batch.records))
        if any(len(each.value or b"") > 4096 for each in batch.records)
        else batch
        for batch in batches
    ]


def _late_offsets(_request: Any, part: Any) -> Any:
    """Return base offsets that are one too large, from offset 500 on."""
    return replace(part, base_offset=part.base_offset + 1) if part.base_offset >= 500 else part


def _with_synonyms(request: Any, forward: Any) -> Any:
    """Return synonyms whether or not they are requested."""
    return forward(replace(request, include_synonyms=True) if api(request) == "DescribeConfigs" else request)


def _settings_kept() -> Tampering:
    """Return a tampering that creates a topic without settings with those of the last topic of the same name."""
    last: dict[str, Any] = {}

    def with_settings(topic: Any) -> Any:
        if topic.configs:
            last[topic.name] = topic.configs
        return replace(topic, configs=last.get(topic.name, ()))

    return altered_requests("CreateTopics", lambda request: altered(request, "topics", with_settings))


def _earliest_in_the_newest_epoch(request: Any, forward: Any) -> Any:
    """Return the earliest offset with the leader epoch of the latest one."""
    response = forward(request)
    if api(request) != "ListOffsets" or {part.timestamp for each in request.topics for part in each.partitions} != {-2}:
        return response
    latest = forward(altered(request, "topics.partitions.timestamp", lambda _: -1))
    epoch = latest.topics[0].partitions[0].leader_epoch
    return altered(response, "topics.partitions", lambda part: replace(part, leader_epoch=epoch))


def _reassigned_alone(request: Any, forward: Any) -> Any:
    """Forward only the first of several partitions of a topic to reassign, and return its result for each of them."""
    if api(request) != "AlterPartitionReassignments" or len(request.topics[0].partitions) < 2:
        return forward(request)
    response = forward(altered(request, "topics", lambda each: replace(each, partitions=each.partitions[:1])))
    indexes = [each.partition_index for each in request.topics[0].partitions]
    (first,) = response.responses[0].partitions
    results = tuple(replace(first, partition_index=index) for index in indexes)
    return altered(response, "responses", lambda each: replace(each, partitions=results))


def _duplicates_of_deleted_topics() -> Tampering:
    """Return a tampering that acknowledges a batch of a deleted topic as a duplicate in the topic created again."""
    produced: dict[Any, Any] = {}
    deleted: set[str] = set()
    names: dict[Any, Any] = {}

    def tamper(request: Any, forward: Any) -> Any:
        if api(request) == "DeleteTopics":
            deleted.update(str(each.name) for each in getattr(request, "topics", ()))
            deleted.update(map(str, getattr(request, "topic_names", ())))
        if api(request) in {"Metadata", "CreateTopics"}:
            response = forward(request)
            names.update({each.topic_id: each.name for each in response.topics if hasattr(each, "topic_id")})
            return response
        if api(request) != "Produce" or request.acks == 0:
            return forward(request)
        topic = request.topic_data[0]
        name = str(topic.name if hasattr(topic, "name") else names[topic.topic_id])
        batch = name, topic.partition_data[0].records
        if name in deleted and batch in produced:
            return _renamed(produced[batch], topic)
        produced[batch] = forward(request)
        return produced[batch]

    return tamper


def _renamed(response: Any, topic: Any) -> Any:
    """Return a Produce response for the topic with this name or id."""
    field = "topic_id" if hasattr(topic, "topic_id") else "name"
    return altered(response, "responses", lambda each: replace(each, **{field: getattr(topic, field)}))


def _last_topic_lost(version: int) -> Tampering:
    """Return a tampering that acknowledges the last of several topics in a version of Produce, but appends nothing."""

    def tamper(request: Any, forward: Any) -> Any:
        is_lost = api(request) == "Produce" and request.__version__ == version and len(request.topic_data) > 1
        if not is_lost:
            return forward(request)
        *kept, lost = request.topic_data
        response = forward(replace(request, topic_data=tuple(kept)))
        last = response.responses[0]
        acknowledged = tuple(replace(last.partition_responses[0], index=each.index) for each in lost.partition_data)
        field = "topic_id" if hasattr(last, "topic_id") else "name"
        added = replace(last, partition_responses=acknowledged, **{field: getattr(lost, field)})
        return replace(response, responses=(*response.responses, added))

    return tamper


def _epoch_decreases() -> Tampering:
    """Return a tampering that lowers the epoch of the finalized features in every third response of a broker."""
    calls = itertools.count(1)

    def change(epoch: Any) -> Any:
        return epoch - 5 if next(calls) % 3 == 0 else epoch

    def tamper(request: Any, forward: Any) -> Any:
        response = forward(request)
        if not hasattr(response, "finalized_features_epoch"):
            return response
        return altered(response, "finalized_features_epoch", change)

    return tamper


def _first_epoch_of_later_partitions(part: Any) -> Any:
    return _changed(part, {"leader_epoch": 0}) if part.partition_index > 0 else part


def _empty_is_none_in_v0(request: Any, forward: Any) -> Any:
    """Describe no topic if Metadata v0 requests all topics by an empty list."""
    response = forward(request)
    is_of_all = api(request) == "Metadata" and request.__version__ == 0 and not request.topics
    return replace(response, topics=()) if is_of_all else response


def _two_replicas_for_three(request: Any, forward: Any) -> Any:
    if api(request) != "CreateTopics":
        return forward(request)
    fewer = altered(
        request, "topics", lambda each: replace(each, replication_factor=2) if each.replication_factor == 3 else each
    )
    return forward(fewer)


def _without_delete_records(response: Any) -> Any:
    return replace(
        response, api_keys=tuple(each for each in response.api_keys if each.api_key != ApiKey.DELETE_RECORDS)
    )


def _returns_requested_epoch(request: Any, forward: Any) -> Any:
    response = forward(request)
    if api(request) != "OffsetForLeaderEpoch":
        return response
    requested = {part.partition: part.leader_epoch for topic in request.topics for part in topic.partitions}

    def change(part: Any) -> Any:
        has_epoch = hasattr(part, "leader_epoch") and part.end_offset >= 0
        return replace(part, leader_epoch=requested[part.partition]) if has_epoch else part

    return altered(response, "topics.partitions", change)


LIES = {
    "replicas of a new topic": Lie(
        "admin/replicas-are-spread", _two_replicas_for_three, "Placement: replication_factors was (2,), not (3,)"
    ),
    "an API in every 20th response": Lie(
        "consistency/api-versions", every_nth_response(20, "ApiVersions", "", _without_delete_records), "api_keys"
    ),
    "epoch without records": Lie(
        "epochs/past-epochs-ended-where-the-next-began",
        _returns_requested_epoch,
        "OffsetForLeaderEpoch: leader_epoch was ",
    ),
    "last topic in Produce v5": Lie("merged/produce", _last_topic_lost(5), "Merged: responses was base_offset "),
    "last topic in Produce v11": Lie("merged/produce", _last_topic_lost(11), "Merged: responses was base_offset "),
    "error of another partition in ElectLeaders": Lie(
        "merged/elect-leaders",
        of_several("ElectLeaders", _exchanged("error_code")),
        "Merged: responses was error ",
    ),
    "offset of a second topic in ListOffsets v3": Lie(
        "consistency/list-offsets",
        _in_version(
            "ListOffsets",
            3,
            "topics",
            lambda topic: (
                altered(topic, "partitions.offset", lambda offset: offset + 1)
                if topic.name.startswith("trial-two")
                else topic
            ),
        ),
        "topics[trial-two].partitions[0].offset was 3 in v1 of broker ",
    ),
    "epoch of the finalized features": Lie(
        "consistency/api-versions", _epoch_decreases(), "finalized_features_epoch was "
    ),
    "old leader in DescribeTopicPartitions": Lie(
        "metadata/paged-partitions-have-new-leaders",
        described_once("DescribeTopicPartitions"),
        "DescribeTopicPartitions: partitions was ",
    ),
    "old epoch of a later partition": Lie(
        "epochs/every-leader-has-a-new-epoch",
        partitions_described("Metadata", _first_epoch_of_later_partitions),
        "AwaitTopic: leader_epochs was ",
    ),
    "empty list in Metadata v0": Lie(
        "metadata/null-lists-all-topics-and-empty-none", _empty_is_none_in_v0, "Metadata: topics was (), not "
    ),
    "missing documentation": Lie(
        "configs/documentation-is-returned-if-requested",
        altered_requests("DescribeConfigs", lambda request: replace(request, include_documentation=False)),
        "DescribeConfigs: documented was ()",
    ),
    "unrequested documentation": Lie(
        "configs/documentation-is-returned-if-requested",
        altered_requests("DescribeConfigs", lambda request: replace(request, include_documentation=True)),
        "DescribeConfigs: documented was (",
    ),
    "later partition of a reassignment": Lie("reassignment/replicas-are-moved", _reassigned_alone, "AwaitTopic: "),
    "duplicate of a deleted topic": Lie(
        "idempotence/duplicate-is-acknowledged-once", _duplicates_of_deleted_topics(), "Fetch: records was "
    ),
    "settings of a deleted topic": Lie("configs/changes-leave-the-rest", _settings_kept(), "DescribeConfigs: "),
    "epoch of the earliest offset": Lie(
        "epochs/records-keep-their-epoch", _earliest_in_the_newest_epoch, "ListOffsets: leader_epoch was "
    ),
    "records of another partition": Lie(
        "fetch/log-is-read-in-append-order",
        of_several("Fetch", _exchanged("records")),
        "Merged: responses was records ",
    ),
    "base offset of another partition": Lie(
        "fetch/log-is-read-in-append-order",
        of_several("Produce", _exchanged("base_offset")),
        "Merged: responses was base_offset ",
    ),
    "offset of another partition": Lie(
        "offsets/earliest-and-latest-are-the-logs-ends",
        of_several("ListOffsets", _exchanged("offset")),
        "Merged: responses was offset ",
    ),
    "offsets of another group": Lie(
        "merged/offset-fetch",
        of_several("OffsetFetch", _exchanged("group_id")),
        "Merged: responses was committed_offset ",
    ),
    "error of another partition in OffsetCommit": Lie(
        "merged/offset-commit",
        of_several("OffsetCommit", _all_fail),
        "Merged: responses was error UNKNOWN_TOPIC_OR_PARTITION in number 1, not error NONE in number 1",
    ),
    "coordinator of another group": Lie(
        "merged/find-coordinator",
        of_several("FindCoordinator", _exchanged("key")),
        " is not the coordinator of trial-",
        nodes=3,
    ),
    "missing coordinator": Lie(
        "merged/find-coordinator",
        of_several("FindCoordinator", lambda groups: groups[:-1]),
        "malformed response: the response has 5 coordinators",
    ),
    "error of another topic": Lie(
        "merged/create-topics",
        of_several("CreateTopics", _exchanged("error_code")),
        "Merged: responses was error NONE in number 1, not error INVALID_PARTITIONS in number 1",
    ),
    "settings of another topic": Lie(
        "merged/describe-configs", of_several("DescribeConfigs", _exchanged("configs")), "Merged: responses was "
    ),
    "low watermark of another partition": Lie(
        "merged/delete-records",
        of_several("DeleteRecords", _exchanged("low_watermark")),
        "Merged: responses was low_watermark ",
    ),
    "end offset of another partition": Lie(
        "merged/offset-for-leader-epoch",
        of_several("OffsetForLeaderEpoch", _exchanged("end_offset")),
        "Merged: responses was end_offset ",
    ),
    "missing partition": Lie(
        "fetch/log-is-read-in-append-order",
        of_several("Fetch", lambda partitions: partitions[:-1]),
        "partitions, topics or groups; 6 were requested",
    ),
    "error of another partition in Produce": Lie(
        "produce/unknown-topic-is-rejected",
        of_several("Produce", _all_fail),
        "Merged: responses was error UNKNOWN_TOPIC_OR_PARTITION in number 2, not error NONE in number 2",
    ),
    "error of another partition in Fetch": Lie(
        "fetch/unknown-topic-is-rejected",
        of_several("Fetch", _all_fail),
        "Merged: responses was error UNKNOWN_TOPIC_OR_PARTITION in number 2, not error NONE in number 2",
    ),
    "cut value": Lie(
        "produce/every-codec-round-trips", records_altered(_long_values_are_cut), "Fetch: records was value b'xxx"
    ),
    "base offset from 500 on": Lie(
        "produce/offsets-are-dense", altered_responses("Produce", _late_offsets), "Produce: base_offset was 60"
    ),
    "missing controller": Lie(
        "metadata/cluster-is-described",
        whole("Metadata", controller_id=-1),
        "Metadata: controller_is_broker was False, not True",
    ),
    "removed replicas": Lie(
        "reassignment/ongoing-reassignment-is-listed",
        partitions_described("ListPartitionReassignments", lambda part: replace(part, removing_replicas=())),
        "ListReassignments: ongoing was",
    ),
    "replicas of an ongoing reassignment": Lie(
        "reassignment/ongoing-reassignment-is-listed",
        partitions_described("ListPartitionReassignments", lambda part: replace(part, replicas=part.replicas[::-1])),
        "ListReassignments: ongoing was",
    ),
    "throttle time": Lie(
        "versions/offset-fetch",
        whole("OffsetFetch", throttle_time=dt.timedelta(milliseconds=-1)),
        "throttle_time_ms -1",
    ),
    "offset of a missing topic": Lie(
        "groups/commit-is-read-back",
        _rejects_a_missing_topic,
        "OffsetFetch: error was UNKNOWN_TOPIC_OR_PARTITION, not NONE",
    ),
    "unknown controller": Lie("versions/metadata", whole("Metadata", controller_id=UNKNOWN_BROKER), "controller_id 77"),
    "fetch session": Lie("versions/fetch", whole("Fetch", session_id=7), "session_id 7"),
    "eligible leader replicas": Lie(
        "versions/describe-topic-partitions",
        partitions_described(
            "DescribeTopicPartitions", lambda part: replace(part, eligible_leader_replicas=part.isr_nodes)
        ),
        "eligible_leader_replicas",
    ),
    "type of a setting": Lie(
        "versions/describe-configs",
        configs(lambda config: replace(config, config_type=1) if hasattr(config, "config_type") else config),
        "config_type 1",
    ),
    "source of a setting": Lie(
        "configs/description-includes-sources", configs(_source_of_no_synonym), "synonyms_in_order"
    ),
    "types of all settings": Lie(
        "configs/description-includes-sources",
        configs(lambda config: replace(config, config_type=2) if hasattr(config, "config_type") else config),
        "cleanup.policy of type STRING, not LIST",
    ),
    "synonyms that were not requested": Lie(
        "versions/describe-configs",
        _with_synonyms,
        "retention.ms with synonyms",
    ),
    "inherited value": Lie(
        "configs/description-includes-sources",
        configs(_inherited("retention.ms", value="86400000")),
        "retention.ms 86400000, but log.retention.ms is None, log.retention.minutes is None",
    ),
    "inherited source": Lie(
        "configs/description-includes-sources",
        configs(_inherited("segment.ms", config_source=3)),
        "source of segment.ms DYNAMIC_DEFAULT_BROKER_CONFIG, but that of log.roll.ms is DEFAULT_CONFIG",
    ),
    "inherited synonyms": Lie(
        "configs/description-includes-sources",
        configs(_inherited("index.interval.bytes", synonyms=())),
        "synonyms of index.interval.bytes [], but those of log.index.interval.bytes are",
    ),
    "broker's value of an inherited setting": Lie(
        "configs/description-includes-sources",
        configs(_inherited("log.segment.delete.delay.ms", value="1")),
        "file.delete.delay.ms 60000, but log.segment.delete.delay.ms is 1",
    ),
    "default of the topic": Lie(
        "configs/defaults-are-those-of-kafka",
        configs(_inherited("segment.index.bytes", value="5")),
        "segment.index.bytes 5 DEFAULT_CONFIG, but the default is 10485760",
    ),
    "default of the broker": Lie(
        "configs/defaults-are-those-of-kafka",
        configs(_inherited("message.max.bytes", value="1000000")),
        "message.max.bytes 1000000 DEFAULT_CONFIG, but the default is 1048588",
    ),
    "cleanup policy of the broker": Lie(
        "configs/described-defaults-are-applied",
        described_as("log.cleanup.policy", "compact"),
        "log.cleanup.policy compact, but Produce of a record without a key returned NONE",
    ),
    "compression type of the broker": Lie(
        "configs/described-defaults-are-applied",
        described_as("compression.type", "zstd"),
        "compression.type zstd, but an uncompressed batch was stored with codec none",
    ),
    "timestamp type of the broker": Lie(
        "configs/described-defaults-are-applied",
        described_as("log.message.timestamp.type", "LogAppendTime"),
        "log.message.timestamp.type LogAppendTime, but a batch was stored with CreateTime",
    ),
    "largest message of the broker": Lie(
        "configs/described-defaults-are-applied",
        described_as("message.max.bytes", "2000000"),
        "message.max.bytes 2000000, but Produce of a batch of 2000000 bytes returned MESSAGE_TOO_LARGE",
    ),
    "bound of late timestamps of the broker": Lie(
        "configs/described-defaults-are-applied",
        described_as("log.message.timestamp.before.max.ms", "86400000"),
        "log.message.timestamp.before.max.ms 86400000, but Produce of a record -86700000 ms from now returned NONE",
    ),
    "bound of early timestamps of the topic": Lie(
        "configs/described-defaults-are-applied",
        described_as("message.timestamp.after.max.ms", "7200000"),
        "'message.timestamp.after.max.ms 7200000, but Produce of a record +6900000 ms from now returned INVALID",
    ),
    "automatic creation of topics": Lie(
        "configs/described-switches-are-applied",
        described_as("auto.create.topics.enable", "true"),
        "auto.create.topics.enable true, but Metadata did not create a topic",
    ),
    "deletion of topics": Lie(
        "configs/described-switches-are-applied",
        described_as("delete.topic.enable", "false"),
        "delete.topic.enable false, but DeleteTopics returned NONE",
    ),
    "id of the broker": Lie(
        "configs/brokers-describe-themselves", described_as("node.id", "77"), "node.id 77 of broker 1"
    ),
    "advertised address": Lie(
        "configs/brokers-describe-themselves",
        described_as("advertised.listeners", "CLIENT://localhost:1"),
        "advertised.listeners CLIENT://localhost:1, but Metadata returned 127.0.0.1:",
    ),
    "log directory": Lie(
        "configs/brokers-describe-themselves",
        _each("results", "DescribeLogDirs", log_dir="/other"),
        "log directory '/other' of broker 1, but its directories are ",
    ),
    "empty log directory": Lie(
        "versions/describe-log-dirs", _each("results", "DescribeLogDirs", log_dir=""), "log_dir ''"
    ),
    "added topic": Lie(
        "configs/resources-are-listed", _one_resource_more(2, "ghost"), "topic ghost is listed, but does not exist"
    ),
    "added client metrics": Lie(
        "configs/resources-are-listed",
        _one_resource_more(16, "ghost"),
        "client metrics ghost is listed, but does not exist",
    ),
    "type of a resource": Lie(
        "configs/resources-are-listed",
        resources_listed(lambda listed: (_changed(each, {"resource_type": 8}) for each in listed)),
        "broker logger 1 is listed 2 times",
    ),
    "missing broker": Lie("metadata/topics-are-described", _without_last_broker, "every_broker was False, not True"),
    "error of the settings of a new topic": Lie(
        "admin/creation-is-described",
        _each("topics", "CreateTopics", topic_config_error_code=29),
        "DescribeConfigs returned the settings, CreateTopics error code 29",
    ),
    "larger limit of offset metadata": Lie(
        "groups/oversize-metadata-is-rejected",
        configs(_inherited("offset.metadata.max.bytes", value="5000")),
        "errors was ('OFFSET_METADATA_TOO_LARGE',), not ('NONE',)",
    ),
    "smaller limit of offset metadata": Lie(
        "groups/oversize-metadata-is-rejected",
        configs(_inherited("offset.metadata.max.bytes", value="4000")),
        "errors was ('NONE',), not ('OFFSET_METADATA_TOO_LARGE',)",
    ),
    "log start offset": Lie(
        "offsets/delete-records-moves-log-start",
        altered_responses("Produce", _log_start_one_more),
        "log_start_offset",
    ),
    "append time": Lie(
        "produce/log-append-time-is-set-by-the-broker",
        altered_responses("Produce", _append_time_an_hour_later),
        "append_times was others (at offset 0, Produce returned ",
    ),
    "cluster id": Lie(
        "metadata/cluster-is-described",
        whole("DescribeCluster", cluster_id="another"),
        "cluster_id was 1 (another), not 0 (",
    ),
    "rack": Lie(
        "metadata/cluster-is-described",
        _each("brokers", "DescribeCluster", rack="r1"),
        "racks was 1 (1: r1), not 0 (1: None)",
    ),
    "finalized feature": Lie(
        "versions/api-versions",
        _finalized_at_99,
        "metadata.version finalized at 99, of ",
    ),
    "log end of a voter": Lie(
        "metadata/quorum-is-described", _voter_ahead, "leader_log_is_longest was False, not True"
    ),
    "addresses of voters": Lie(
        "metadata/quorum-is-described", whole("DescribeQuorum", nodes=()), "nodes_vote was False, not True"
    ),
    "repeated voter": Lie(
        "metadata/quorum-is-described",
        partitions_described("DescribeQuorum", lambda part: replace(part, current_voters=part.current_voters * 2)),
        "listed_twice was (",
    ),
    "leader epoch of a described topic": Lie(
        "metadata/partitions-are-paged",
        partitions_described("DescribeTopicPartitions", lambda part: replace(part, leader_epoch=7)),
        "leader_epochs was (7",
    ),
    "group of fetched offsets": Lie(
        "groups/commit-is-read-back",
        _in_version("OffsetFetch", 9, "groups.group_id", lambda _: "another"),
        "OffsetFetch: malformed response: the response has other groups than the requested one",
    ),
    "name of a deleted topic": Lie(
        "admin/deleted-topic-is-gone",
        altered_responses("DeleteTopics", lambda _, part: replace(part, name="another")),
        "DeleteTopic: malformed response: the response has another topic than the requested one",
    ),
    "id of a deleted topic": Lie(
        "admin/topics-are-deleted-by-id",
        altered_responses("DeleteTopics", same_topic_id),
        "DeleteTopicById: malformed response: the response has another topic than the requested one",
    ),
    "endpoint type": Lie("versions/describe-cluster", whole("DescribeCluster", endpoint_type=2), "endpoint_type 2"),
    "fenced broker": Lie(
        "versions/describe-cluster",
        _each("brokers", "DescribeCluster", is_fenced=True),
        "broker 1 with is_fenced",
    ),
    "operations of a topic": Lie(
        "metadata/topics-are-described",
        _topics_permit(1 << 3),
        "Metadata: operations was some, not True",
    ),
    "operations that were not requested": Lie(
        "versions/metadata", _topics_permit(1 << 8), "topic_authorized_operations 256 without include_topic"
    ),
    "operations of a described topic": Lie(
        "versions/describe-topic-partitions", _topics_permit(0), "topic_authorized_operations 0, without DESCRIBE"
    ),
    "setting of a new topic": Lie(
        "admin/creation-is-described",
        _created_with("segment.index.bytes", value="5"),
        "segment.index.bytes: DescribeConfigs returned 10485760 DEFAULT_CONFIG, CreateTopics 5 DEFAULT_CONFIG",
    ),
    "source of a setting of a new topic": Lie(
        "admin/creation-is-described",
        _created_with("index.interval.bytes", config_source=4),
        "index.interval.bytes: DescribeConfigs returned 4096 DEFAULT_CONFIG, CreateTopics 4096 STATIC_BROKER_CONFIG",
    ),
    "read-only setting of a new topic": Lie(
        "versions/create-topics",
        _created_with("segment.ms", read_only=True),
        "segment.ms of a topic with read_only",
    ),
    "throttle time of a client without a quota": Lie(
        "quotas/throttled-connection-is-muted",
        whole("ListOffsets", throttle_time=dt.timedelta(seconds=5)),
        "ListOffsets: muted was too short (5000 ms of throttle time, next response after ",
    ),
    "API that is listed twice": Lie(
        "negotiation/api-versions-falls-back-to-version-0",
        _listed_twice,
        "ApiVersions: listed_once was False, not True",
    ),
    "throttle time of every tenth fetch": Lie(
        "quotas/throttled-connection-is-muted",
        every_nth_response(10, "Fetch", "throttle_time", lambda _: dt.timedelta(minutes=1)),
        "Fetch: muted was too short (60000 ms of throttle time, next response after ",
    ),
    "producer epoch": Lie("idempotence/batches-keep-their-producer", records_altered(_first_epoch), "producers"),
    "topic id": Lie(
        "metadata/topic-id-names-one-creation",
        altered_responses("CreateTopics", same_topic_id),
        "(AAAAAAAAAAAAAAAAAAASZw)",
    ),
    "producer id": Lie(
        "idempotence/producer-ids-are-unique",
        altered_responses("InitProducerId", same_producer_id),
        "producer was 0 (4711), not 1 (an id not seen before)",
    ),
    "replication factor": Lie(
        "admin/creation-is-described", altered_responses("CreateTopics", _one_replica_more), "replication_factor"
    ),
    "sequence": Lie("idempotence/batches-keep-their-producer", records_altered(_sequence_one_more), "producers"),
    "coordinator": Lie("groups/only-the-coordinator-serves", _another_coordinator, "NOT_COORDINATOR"),
    "generation of commits with a member": Lie(
        "groups/commit-from-unknown-member-is-rejected",
        _requires_generation_of_members,
        "OffsetCommit: error was UNKNOWN_MEMBER_ID, not NONE",
    ),
    "maximum timestamp": Lie(
        "fetch/max-timestamp-is-that-of-newest-record",
        records_altered(max_timestamp_one_more),
        "max_timestamps was others (at offset 0, the batch has 1700000000001, its newest record 1700000000000",
    ),
    "size of a replica": Lie(
        "admin/replicas-have-the-size-of-the-log",
        altered_responses("DescribeLogDirs", hundred_bytes_more),
        "size was another (Fetch returned ",
    ),
    "offline replicas": Lie(
        "metadata/every-broker-returns-the-same",
        partitions_described(
            "Metadata",
            lambda part: replace(part, offline_replicas=part.isr_nodes) if hasattr(part, "offline_replicas") else part,
        ),
        "offline_replicas",
    ),
    "type of an altered resource": Lie(
        "versions/incremental-alter-configs",
        altered_responses("IncrementalAlterConfigs", lambda _, part: replace(part, resource_type=4)),
        "resource_type 4",
    ),
    "documentation of a setting": Lie(
        "versions/describe-configs",
        configs(lambda each: _changed(each, {"documentation": "text"})),
        "retention.ms with documentation",
    ),
    "leader epoch in one version": Lie(
        "consistency/metadata",
        _in_version("Metadata", 9, "topics.partitions.leader_epoch", lambda epoch: epoch + 1),
        "topics[trial].partitions[0].leader_epoch was 0 in v7 of broker 1, 1 in v9 of broker 1",
    ),
    "setting in one version": Lie(
        "consistency/describe-configs",
        _in_version("DescribeConfigs", 2, "results.configs", _inherited("message.max.bytes", value="1000")),
        "].configs[message.max.bytes].value was '1048588' in v1 of broker 1, '1000' in v2 of broker 1",
    ),
    "rack in every second response": Lie(
        "consistency/describe-cluster",
        every_nth_response(2, "DescribeCluster", "brokers.rack", lambda _: "r1"),
        "brokers[1].rack was ",
    ),
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES.keys())
def test_a_lie_of_one_field_is_a_violation_that_names_it(lie, request, tmp_path, monkeypatch):
    monkeypatch.setattr(timeouts, "EFFECT_TIMEOUT_S", 0.5)
    monkeypatch.setattr(timeouts, "FIRST_CHECK_MS", 0)  # the reference broker checks its logs without an initial delay
    monkeypatch.setattr(timeouts, "READY_TIMEOUT_S", 3.0)
    (requirement,) = (each for each in REQUIREMENTS if each.id == lie.requirement)
    target = request.getfixturevalue(BROKERS[max(lie.nodes, requirement.nodes_min)])
    with TamperingProxy(target, lie.tampering) as proxy:
        finding = check(requirement, proxy, tmp_path)
    assert finding.verdict is Verdict.VIOLATION, finding.reason
    assert lie.named in finding.reason


def test_a_rare_lie_about_the_leader_of_a_replicated_topic_is_a_violation(cluster, tmp_path, monkeypatch):
    monkeypatch.setattr(timeouts, "EFFECT_TIMEOUT_S", 0.5)
    (requirement,) = (each for each in REQUIREMENTS if each.id == "consistency/metadata")
    responses = itertools.count(1)

    def follower_leads(_request: Any, topic: Any) -> Any:
        if next(responses) % 10:
            return topic
        return altered(
            topic, "partitions", lambda part: replace(part, leader_id=(*part.replica_nodes[1:], part.leader_id)[0])
        )

    with TamperingProxy(cluster, altered_responses("Metadata", follower_leads)) as proxy:
        finding = check(requirement, proxy, tmp_path)
    assert finding.verdict is Verdict.VIOLATION, finding.reason
    assert ".leader_id was " in finding.reason


LIMITS = {
    "group.min.session.timeout.ms": "groups/session-timeout-out-of-bounds-is-rejected",
    "group.max.session.timeout.ms": "groups/session-timeout-out-of-bounds-is-rejected",
    "transaction.max.timeout.ms": "transactions/too-long-timeout-is-rejected",
}
"""Limits that the reference broker lacks, each with the requirement that compares the limit with its effect."""


@pytest.mark.java
def test_a_false_limit_of_apache_kafka_is_a_violation(tmp_path):
    requirements = {each.id: each for each in REQUIREMENTS}
    with parse_target("apache-kafka:4.3.1", nodes=1) as kafka:
        for name, requirement in LIMITS.items():
            for factor in (0.5, 2):
                described = configs(_multiplied(name, factor))
                with TamperingProxy(kafka, described) as proxy:
                    finding = check(requirements[requirement], proxy, tmp_path)
                assert finding.verdict is Verdict.VIOLATION, (name, factor)


def _not_strict(request: Any, forward: Any) -> Any:
    return forward(replace(request, strict=False) if api(request) == "DescribeClientQuotas" else request)


def _in_the_first_epoch(request: Any) -> Any:
    """Begin a new session in place of continuing one."""
    return replace(request, session_id=0, session_epoch=0) if request.session_epoch > 0 else request


LIES_OF_KAFKA = {
    "strict": Lie("quotas/altered-quotas-are-described", _not_strict, "DescribeClientQuotas: others was 1, not 0"),
    "missing client metrics": Lie(
        "configs/resources-are-listed",
        resources_listed(lambda listed: (each for each in listed if getattr(each, "resource_type", 16) != 16)),
        "client metrics trial-metrics-",
    ),
    "id before KRaft": Lie(
        "configs/brokers-describe-themselves", described_as("broker.id", "77"), "broker.id 77 of broker 1"
    ),
    "forgotten partition of a fetch session": Lie(
        "fetch/session-returns-changed-partitions",
        altered_requests("Fetch", lambda request: replace(request, forgotten_topics_data=())),
        "SessionFetch: partitions was ",
    ),
    "epoch of a fetch session": Lie(
        "fetch/session-returns-changed-partitions",
        altered_requests("Fetch", _in_the_first_epoch),
        "SessionFetch: error was NONE, not INVALID_FETCH_SESSION_EPOCH",
    ),
    "state of another group": Lie(
        "merged/describe-groups", of_several("DescribeGroups", _exchanged("group_id")), "Merged: responses was "
    ),
    "deletion of another group": Lie(
        "merged/delete-groups",
        of_several("DeleteGroups", _exchanged("error_code")),
        "Merged: responses was error ",
    ),
    "producers of another partition": Lie(
        "merged/describe-producers",
        of_several("DescribeProducers", _exchanged("active_producers")),
        "Merged: responses was producers ",
    ),
}
"""Lies about APIs and settings that the reference broker lacks, except those in `LIES_ABOUT_MEMBERS`."""


@pytest.mark.java
def test_a_lie_of_apache_kafka_is_a_violation_that_names_it(tmp_path):
    requirements = {each.id: each for each in REQUIREMENTS}
    with parse_target("apache-kafka:4.3.1", nodes=1) as kafka:
        for name, lie in LIES_OF_KAFKA.items():
            with TamperingProxy(kafka, lie.tampering) as proxy:
                finding = check(requirements[lie.requirement], proxy, tmp_path)
            assert finding.verdict is Verdict.VIOLATION, (name, finding.reason)
            assert lie.named in finding.reason, name


def _first_joined(**changes: Any) -> Tampering:
    """Return a tampering that replaces fields in each response to JoinGroup that has no error."""

    def tamper(request: Any, forward: Any) -> Any:
        response = forward(request)
        has_joined = api(request) == "JoinGroup" and response.error_code == ErrorCode.none
        return replace(response, **changes) if has_joined else response

    return tamper


def _another_metadata(request: Any, forward: Any) -> Any:
    response = forward(request)
    if api(request) != "JoinGroup":
        return response
    return altered(response, "members", lambda each: replace(each, metadata=each.metadata + b"x"))


def _required_id_altered(request: Any, forward: Any) -> Any:
    response = forward(request)
    is_new = api(request) == "JoinGroup" and response.error_code == ErrorCode.member_id_required
    return replace(response, member_id=f"{response.member_id}x") if is_new else response


def _remains(request: Any, forward: Any) -> Any:
    """Respond to LeaveGroup as if the members had left, but keep them in the group."""
    if api(request) != "LeaveGroup":
        return forward(request)
    left = forward(replace(request, members=tuple(replace(each, member_id="unknown") for each in request.members)))
    named = tuple(
        replace(each, member_id=ours.member_id) for each, ours in zip(left.members, request.members, strict=True)
    )
    return with_errors(replace(left, members=named), ErrorCode.none)


def _ignores_generation(request: Any, forward: Any) -> Any:
    """Set generation 1 in each commit of a member, so that the broker ignores the generation of the request."""
    if api(request) != "OffsetCommit" or not request.member_id:
        return forward(request)
    field = next(name for name in ("generation_id", "generation_id_or_member_epoch") if hasattr(request, name))
    return forward(replace(request, **{field: 1}))


def _without_assignment(request: Any, forward: Any) -> Any:
    response = forward(request)
    if api(request) != "DescribeGroups":
        return response
    return altered(response, "groups.members", lambda each: replace(each, member_assignment=b""))


def _unfiltered(*filters: str) -> Tampering:
    """Return a tampering that removes these filters from requests to ListGroups and ListTransactions."""

    def tamper(request: Any, forward: Any) -> Any:
        is_listing = api(request) in {"ListGroups", "ListTransactions"}
        known = [name for name in filters if is_listing and hasattr(request, name)]
        return forward(replace(request, **dict.fromkeys(known, ())))

    return tamper


def _lists_another_group(request: Any, forward: Any) -> Any:
    response = forward(request)
    if api(request) != "ListGroups" or not response.groups:
        return response
    return replace(response, groups=(*response.groups, replace(response.groups[-1], group_id="another")))


def _syncs_in_any_generation(request: Any, forward: Any) -> Any:
    response = forward(request)
    is_illegal = getattr(response, "error_code", None) == ErrorCode.illegal_generation
    return replace(response, error_code=ErrorCode.none) if api(request) == "SyncGroup" and is_illegal else response


def _left_as_another_instance(request: Any, forward: Any) -> Any:
    response = forward(request)
    if api(request) != "LeaveGroup":
        return response
    return altered(response, "members", lambda each: replace(each, group_instance_id="x"))


def _producers(field: str) -> Tampering:
    """Return a tampering that adds 1 to a field of each producer in the responses to DescribeProducers."""
    return _in_version("DescribeProducers", 0, f"topics.partitions.active_producers.{field}", lambda n: type(n)(n + 1))


def _offsets_stay(request: Any, forward: Any) -> Any:
    """Respond to OffsetDelete as if the committed offsets had been deleted, but keep them."""
    if api(request) != "OffsetDelete":
        return forward(request)
    response = forward(altered(request, "topics.partitions.partition_index", lambda index: type(index)(index + 1000)))
    index = request.topics[0].partitions[0].partition_index
    return with_errors(altered(response, "topics.partitions.partition_index", lambda _: index), ErrorCode.none)


def _deletes_no_group(request: Any, forward: Any) -> Any:
    """Respond to DeleteGroups as if each group had been deleted, but keep the groups."""
    if api(request) != "DeleteGroups":
        return forward(request)
    response = forward(replace(request, groups_names=tuple(f"{name}-other" for name in request.groups_names)))
    results = zip(response.results, request.groups_names, strict=True)
    named = tuple(replace(each, group_id=name, error_code=ErrorCode.none) for each, name in results)
    return replace(response, results=named)


_TRANSACTIONS = "transactions/initial-state-is-listed"
_LEADS, _COMMITS, _LEAVES, _STATE = (
    "groups/only-member-leads-its-group",
    "groups/member-commits-in-its-generation",
    "groups/member-that-left-is-unknown",
    "groups/state-is-described",
)
_SILENT = "groups/silent-member-is-removed"


def _accepts_heartbeats_of_the_removed(request: Any, forward: Any) -> Any:
    """Respond to each Heartbeat as if the member were in the group."""
    response = forward(request)
    return replace(response, error_code=ErrorCode.none) if api(request) == "Heartbeat" else response


LIES_ABOUT_MEMBERS = {
    "heartbeat of a removed member": Lie(
        _SILENT, _accepts_heartbeats_of_the_removed, "Heartbeat: error was NONE, not UNKNOWN_MEMBER_ID"
    ),
    "long session": Lie(
        _SILENT,
        altered_requests("JoinGroup", lambda join: replace(join, session_timeout=dt.timedelta(minutes=1))),
        "AwaitSessionTimeout: removed was late",
    ),
    "id of a new member": Lie(_LEADS, _required_id_altered, "step 4, JoinGroup: error was UNKNOWN_MEMBER_ID, not NONE"),
    "member id": Lie(
        _LEADS, _first_joined(member_id="another"), "JoinGroup: member was 1 (another), not 0 (kafkatrial-"
    ),
    "leader": Lie(_LEADS, _first_joined(leader="another"), "JoinGroup: leader was 1 (another), not 0 (kafkatrial-"),
    "generation": Lie(_LEADS, _first_joined(generation_id=7), "JoinGroup: generation was 7, not 1"),
    "members": Lie(_LEADS, _first_joined(members=()), "JoinGroup: members was (), not ((0, b"),
    "metadata": Lie(_LEADS, _another_metadata, "JoinGroup: members was ((0 (kafkatrial-"),
    "protocol": Lie(_LEADS, _first_joined(protocol_name="other"), "JoinGroup: protocol_name was other, not r"),
    "assignment": Lie(_LEADS, whole("SyncGroup", assignment=b"other"), "SyncGroup: assignment was b'other', not b'"),
    "generation of a commit": Lie(
        _COMMITS, _ignores_generation, "OffsetCommit: error was NONE, not ILLEGAL_GENERATION"
    ),
    "state of a group": Lie(
        _STATE, _each("groups", "DescribeGroups", group_state="Stable"), "DescribeGroup: state was Stable, not Empty"
    ),
    "group without members": Lie(
        _STATE,
        _each("groups", "DescribeGroups", group_state="Empty", members=()),
        "DescribeGroup: state was Empty, not ",
    ),
    "described protocol": Lie(
        _STATE, _each("groups", "DescribeGroups", protocol_data="x"), "DescribeGroup: protocol was x, not "
    ),
    "described assignment": Lie(_STATE, _without_assignment, "DescribeGroup: members was ((0 (kafkatrial-"),
    "listed state": Lie(
        _STATE, _each("groups", "ListGroups", group_state="Stable"), "ListGroups: state was Stable, not "
    ),
    "listed protocol type": Lie(
        _STATE, _each("groups", "ListGroups", protocol_type="x"), "ListGroups: protocol_type was x, not kafkatrial"
    ),
    "unlisted group": Lie(_STATE, whole("ListGroups", groups=()), "ListGroups: listed was 0, not 1"),
    "listed type": Lie(
        _STATE, _each("groups", "ListGroups", group_type="consumer"), "ListGroups: type was consumer, not classic"
    ),
    "state filter": Lie(_STATE, _unfiltered("states_filter"), "ListGroups: listed was 1, not 0"),
    "type filter": Lie(_STATE, _unfiltered("types_filter"), "ListGroups: listed was 1, not 0"),
    "added group": Lie(_STATE, _lists_another_group, "ListedGroups: not_described was ('another',), not ()"),
    "client id": Lie(
        _STATE,
        _each("groups.members", "DescribeGroups", client_id="x"),
        "DescribeGroup: clients was (('x', True),), not (('kafkatrial', True),)",
    ),
    "client host": Lie(
        _STATE, _each("groups.members", "DescribeGroups", client_host="x"), "DescribeGroup: clients was (('kafkatrial',"
    ),
    "described instance id": Lie(
        _STATE, _each("groups.members", "DescribeGroups", group_instance_id="x"), "DescribeGroup: instances was ('x',)"
    ),
    "instance id": Lie(
        _LEADS, _each("members", "JoinGroup", group_instance_id="x"), "JoinGroup: instances was ('x',), not ("
    ),
    "generation of SyncGroup": Lie(
        _LEAVES, _syncs_in_any_generation, "step 6, SyncGroup: error was NONE, not ILLEGAL_GENERATION"
    ),
    "missing instance id": Lie(
        _LEADS, _each("members", "JoinGroup", group_instance_id=None), "JoinGroup: instances was (None,), not ("
    ),
    "instance id of a member that left": Lie(
        _LEAVES, _left_as_another_instance, "other members than the one that leaves"
    ),
    "authorized operations": Lie(
        _STATE, _each("groups", "DescribeGroups", authorized_operations=8), "DescribeGroup: operations was 8, without "
    ),
    "protocol type of an empty group": Lie(
        _STATE, _each("groups", "DescribeGroups", protocol_type="kafkatrial"), "protocol_type was kafkatrial, not "
    ),
    "member in one version": Lie(
        "consistency/describe-groups",
        _in_version("DescribeGroups", 4, "groups.members.client_id", lambda _: "x"),
        "].client_id was 'kafkatrial' in v0 of broker 1, ",
    ),
    "listed group in one version": Lie(
        "consistency/list-groups",
        _in_version("ListGroups", 3, "groups.protocol_type", lambda _: "x"),
        "groups[trial].protocol_type was 'kafkatrial' in v0 of broker 1, 'x' in v3 of broker 1",
    ),
    "last sequence": Lie(
        "idempotence/active-producers-are-described",
        _producers("last_sequence"),
        "DescribeProducers: producers was (",
    ),
    "last timestamp": Lie(
        "idempotence/active-producers-are-described",
        _producers("last_timestamp"),
        "DescribeProducers: producers was (",
    ),
    "deleted offset": Lie(
        "groups/deleted-offsets-are-removed",
        _offsets_stay,
        "committed_offset was ",
    ),
    "producer of a transaction": Lie(
        _TRANSACTIONS,
        _in_version("ListTransactions", 2, "transaction_states.producer_id", lambda id_: type(id_)(id_ + 1000)),
        "ListTransactions: producer was ",
    ),
    "state filter of transactions": Lie(
        _TRANSACTIONS, _unfiltered("state_filters"), "ListTransactions: listed was 1, not 0"
    ),
    "producer filter of transactions": Lie(
        _TRANSACTIONS, _unfiltered("producer_id_filters"), "ListTransactions: listed was 1, not 0"
    ),
    "quota in one version": Lie(
        "consistency/describe-client-quotas",
        _in_version("DescribeClientQuotas", 0, "entries.values.value", lambda value: type(value)(value + 1)),
        ".value was 6001.0 in v0 of broker 1, 6000.0 in v1 of broker 1",
    ),
    "deleted group": Lie(_STATE, _deletes_no_group, "ListGroups: listed was 1, not 0"),
    "member that left": Lie(_LEAVES, _remains, "was NONE, not UNKNOWN_MEMBER_ID"),
}
"""Lies about members of groups, and about other state that the reference broker does not have."""


@pytest.fixture(scope="module")
def kafka():
    with parse_target("apache-kafka:4.3.1", nodes=1) as target:
        yield target


@pytest.mark.java
@pytest.mark.sampled(10)
@pytest.mark.parametrize("name", LIES_ABOUT_MEMBERS)
def test_a_lie_about_a_member_is_a_violation_that_names_it(kafka, name, tmp_path):
    requirements = {each.id: each for each in REQUIREMENTS}
    lie = LIES_ABOUT_MEMBERS[name]
    with TamperingProxy(kafka, lie.tampering) as proxy:
        finding = check(requirements[lie.requirement], proxy, tmp_path)
    assert finding.verdict is Verdict.VIOLATION, finding.reason
    assert lie.named in finding.reason


def _multiplied(name: str, factor: float) -> Any:
    def change(config: Any) -> Any:
        return replace(config, value=str(int(int(config.value) * factor))) if config.name == name else config

    return change
