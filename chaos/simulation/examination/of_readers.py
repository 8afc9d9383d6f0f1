"""What brokers are examined in by readers, and in the versions that older clients speak. Source: `KafkaApis` of 4.3."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final
from uuid import UUID

from chaos.simulation.clients.process import Sleep
from chaos.simulation.examination.exam import (
    NOBODY,
    NONE,
    STRANGER,
    Exam,
    Facts,
    Whom,
    always,
    anything,
    schema_for_clients,
)
from fixtures.clients import requests
from fixtures.clients.messages import ApiKey, request_schema
from fixtures.clients.requests import fitted
from reference_broker.core.topic_names import CONSUMER_OFFSETS_TOPIC

_BY_NAME: Final = (4, 7, 9, 11, 12)
_LEADERS_ONLY: Final = (4, 10)
"""Versions of Fetch by consumers that cannot read from followers (before KIP-392)."""
_MAX_BYTES: Final = 1_000
_TOPIC, _BROKER = 2, 4
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
"""By Java's hash positive, negative, the least of all; of one byte a character and of more."""
_TOPIC_MADE_MS: Final = 2_000
_HALF_KNOWN: Final = ((7, -1), (-1, 7))


def _fetch(facts: Facts, version: int | None = None, offset: int = 2**40, **given: Any) -> Any:
    schema = schema_for_clients(ApiKey.FETCH) if version is None else request_schema(ApiKey.FETCH, version)
    topic_id: UUID = given.pop("topic_id", facts.image.topics[facts.topic].topic_id)
    asked = requests.fetch(
        schema,
        facts.topic,
        given.pop("partition", 0),
        offset,
        max_wait_ms=0,
        max_bytes=_MAX_BYTES,
        isolation_level=0,
        leader_epoch=given.pop("leader_epoch", -1),
        topic_id=topic_id,
    )
    return replace(asked, **given)


def _fetches(facts: Facts) -> Any:
    epoch, state = facts.partition.leader_epoch, type(_fetch(facts).replica_state)
    return [
        _fetch(facts),
        _fetch(facts, offset=-1),
        _fetch(facts, topic_id=STRANGER),
        _fetch(facts, partition=99),
        _fetch(facts, leader_epoch=epoch + 1),
        _fetch(facts, leader_epoch=epoch),
        _fetch(facts, session_id=7, session_epoch=3),
        _fetch(facts, replica_state=state(replica_id=NOBODY, replica_epoch=1)),
        _fetch(facts, replica_state=state(replica_id=NOBODY, replica_epoch=1), leader_epoch=epoch),
        *(_fetch(facts, version) for version in _BY_NAME),
    ]


_OF_FETCHES: Final = [
    *(NONE, "OFFSET_OUT_OF_RANGE") * 2,
    *(NONE, "UNKNOWN_TOPIC_ID", NONE, "UNKNOWN_TOPIC_OR_PARTITION", NONE, "UNKNOWN_LEADER_EPOCH"),
    *(NONE, "OFFSET_OUT_OF_RANGE", "FETCH_SESSION_ID_NOT_FOUND"),
    *(NONE, "NOT_LEADER_OR_FOLLOWER", NONE, "UNKNOWN_LEADER_EPOCH"),
    "OFFSET_OUT_OF_RANGE",
    *(NONE, "OFFSET_OUT_OF_RANGE") * (len(_BY_NAME) - 1),
]
"""Version 4 has no error for the whole answer."""


def _only_for_leaders(facts: Facts) -> Any:
    """Return requests that only the leader may serve, with a leader epoch that is right, and without one."""
    ends, epochs = schema_for_clients(ApiKey.LIST_OFFSETS), schema_for_clients(ApiKey.OFFSET_FOR_LEADER_EPOCH)
    deletions, topic = schema_for_clients(ApiKey.DELETE_RECORDS), facts.topic
    return [
        *(_fetch(facts, version, offset=0) for version in _LEADERS_ONLY),
        *(
            request
            for epoch in (-1, facts.partition.leader_epoch)
            for request in (
                requests.list_offsets(ends, topic, 0, -1, leader_epoch=epoch),
                requests.offset_for_leader_epoch(epochs, topic, 0, 0, current_leader_epoch=epoch),
            )
        ),
        requests.delete_records(deletions, topic, 0, 0, timeout_ms=_TOPIC_MADE_MS),
    ]


def _old_ends(facts: Facts) -> Any:
    return [
        requests.list_offsets(request_schema(ApiKey.LIST_OFFSETS, version), facts.topic, 0, timestamp)
        for version, timestamp in ((1, -1), (1, -2), (2, 0), (4, -1), (5, -1), (6, -3), (7, -3), (7, -4), (8, -4))
    ]


_OF_OLD_ENDS: Final = [*(NONE,) * 5, "UNSUPPORTED_VERSION", NONE, "UNSUPPORTED_VERSION", NONE]


def _producer_ids(facts: Facts) -> Any:
    asked = [requests.init_producer_id(request_schema(ApiKey.INIT_PRODUCER_ID, version)) for version in (0, 2, 3, 4)]
    return [*asked, *(replace(asked[-1], producer_id=known, producer_epoch=epoch) for known, epoch in _HALF_KNOWN)]


def _properties(facts: Facts) -> Any:
    return [request for version in range(1, 5) for request in _properties_of(facts, version)]


def _properties_of(facts: Facts, version: int) -> Iterator[Any]:
    schema = request_schema(ApiKey.DESCRIBE_CONFIGS, version)
    for kind, name in ((_TOPIC, facts.topic), (_TOPIC, "a b"), (_BROKER, str(NOBODY)), (_BROKER, "x"), (99, "x")):
        resource = schema.DescribeConfigsResource(
            resource_type=kind, resource_name=name, configuration_keys=("retention.ms", "log.retention.ms")
        )
        yield fitted(schema.DescribeConfigsRequest, resources=(resource,), include_synonyms=version > 1)


def _directories(facts: Facts) -> Any:
    schema = schema_for_clients(ApiKey.DESCRIBE_LOG_DIRS)
    topic = schema.DescribableLogDirTopic(topic=facts.topic, partitions=(0, 99))
    return [schema.DescribeLogDirsRequest(topics=topics) for topics in (None, (), (topic,))]


def _coordinators(facts: Facts) -> Any:
    """Of a kind that there is not, since asking for a group's makes the topic of groups."""
    asked = []
    for version in (1, 2, 3, 4, 6):
        schema = request_schema(ApiKey.FIND_COORDINATOR, version)
        asked.append(fitted(schema.FindCoordinatorRequest, key="exam", coordinator_keys=("exam",), key_type=9))
    return asked


def _coordinators_of_groups(facts: Facts) -> Any:
    """Asked twice: the first who asks for one has the topic of groups made."""
    schema = schema_for_clients(ApiKey.FIND_COORDINATOR)
    asked = fitted(schema.FindCoordinatorRequest, key="", coordinator_keys=_GROUPS, key_type=0)
    return [asked, Sleep(_TOPIC_MADE_MS), asked]


def _offsets_without_coordinator(facts: Facts) -> Any:
    """Return requests for a group before any broker is a coordinator: the topic of groups may not exist."""
    fetched, committed = request_schema(ApiKey.OFFSET_FETCH, 9), request_schema(ApiKey.OFFSET_COMMIT, 9)
    return [
        requests.offset_fetch(fetched, "exam", {facts.topic: [0]}),
        requests.offset_commit(committed, "exam", [(facts.topic, [(0, 0, -1)])]),
    ]


def _of_offsets_without_coordinator(facts: Facts) -> list[str]:
    return [] if CONSUMER_OFFSETS_TOPIC in facts.image.topics else ["NOT_COORDINATOR"] * 2


def _versions(facts: Facts) -> Any:
    found = []
    for version in range(5):
        schema = request_schema(ApiKey.API_VERSIONS, version)
        found.append(fitted(schema.ApiVersionsRequest, client_software_name="exam", client_software_version="1.0-rc2"))
    name = "client_software_name"
    newest = [replace(found[-1], **{name: wrong}) for wrong in ("", "a b", "-a")]
    return [*found, *newest]


EXAMS: Final = (
    Exam("fetches that cannot be", Whom.LEADER, _fetches, always(*_OF_FETCHES)),
    Exam(
        "what only leaders serve",
        Whom.FOLLOWER,
        _only_for_leaders,
        always("NOT_LEADER_OR_FOLLOWER", NONE, *("NOT_LEADER_OR_FOLLOWER",) * 6),
    ),
    Exam("ends, for old clients", Whom.LEADER, _old_ends, always(*_OF_OLD_ENDS)),
    Exam("ids of producers", Whom.BROKER, _producer_ids, always(*(NONE,) * 4, *("INVALID_REQUEST",) * 2)),
    Exam("properties", Whom.BROKER, _properties, anything),
    Exam("directories", Whom.BROKER, _directories, anything),
    Exam("coordinators of nothing", Whom.BROKER, _coordinators, always(*("INVALID_REQUEST",) * 5)),
    Exam("coordinators of groups", Whom.BROKER, _coordinators_of_groups, anything, unsettles=True),
    Exam("offsets without a coordinator", Whom.BROKER, _offsets_without_coordinator, _of_offsets_without_coordinator),
    Exam("versions", Whom.BROKER, _versions, always(*(NONE,) * 5, *("INVALID_REQUEST",) * 3)),
)
