"""What brokers are examined in about topics and partitions, at the listener for clients.

Sources: `ReplicationControlManager`, `Topic.validate`, `KafkaApis` of Kafka 4.3; versions that older clients speak.
"""

from collections.abc import Iterator
from datetime import timedelta
from types import ModuleType
from typing import Any, Final

from chaos.simulation.clients.process import Sleep
from chaos.simulation.examination.exam import (
    HEARD_MS,
    NOBODY,
    NONE,
    NOWHERE,
    Exam,
    Facts,
    Whom,
    always,
    anything,
    schema_for_clients,
)
from fixtures.clients.messages import ApiKey, request_schema
from fixtures.clients.requests import fitted

_TIMEOUT: Final = timedelta(seconds=2)
_LONG_MS: Final = 65_000
"""Longer than Kafka's longest time-outs of a minute."""
_RECORDS_MAX: Final = 10_000
"""Kafka's `MAX_RECORDS_PER_USER_OP`."""


# --- topics


_NAMES: Final = {
    ".": "INVALID_TOPIC_EXCEPTION",
    "..": "INVALID_TOPIC_EXCEPTION",
    "": "INVALID_TOPIC_EXCEPTION",
    "a b": "INVALID_TOPIC_EXCEPTION",
    "x" * 250: "INVALID_TOPIC_EXCEPTION",
    "x" * 249: NONE,
    "...": NONE,
    "a-b.c_D9": NONE,
    "__cluster_metadata": "INVALID_REQUEST",
}


def _topic(schema: ModuleType, name: str, partitions: int = 1, factor: int = 1, **rest: Any) -> Any:
    given = {"assignments": (), "configs": (), **rest}
    return schema.CreatableTopic(name=name, num_partitions=partitions, replication_factor=factor, **given)


def _creations(*topics: Any) -> Any:
    return schema_for_clients(ApiKey.CREATE_TOPICS).CreateTopicsRequest(
        topics=topics, timeout=_TIMEOUT, validate_only=True
    )


def _names(facts: Facts) -> Any:
    schema = schema_for_clients(ApiKey.CREATE_TOPICS)
    return _creations(*(_topic(schema, name) for name in _NAMES), _topic(schema, facts.topic))


def _numbers(facts: Facts) -> Any:
    schema, factor = schema_for_clients(ApiKey.CREATE_TOPICS), len(facts.brokers)
    numbers = ((0, 1), (-2, 1), (1, 0), (1, -2), (1, factor + 1), (-1, -1), (3, factor))
    return _creations(*(_topic(schema, f"n{place}", *each) for place, each in enumerate(numbers)))


_OF_NUMBERS: Final = [
    *("INVALID_PARTITIONS",) * 2,
    *("INVALID_REPLICATION_FACTOR",) * 3,
    *(NONE,) * 2,
]


def _excessive_numbers(facts: Facts) -> Any:
    """Return requests for too many partitions, which are rejected as a whole, even if they are only validated."""
    topics, partitions = schema_for_clients(ApiKey.CREATE_TOPICS), schema_for_clients(ApiKey.CREATE_PARTITIONS)
    count = len(facts.image.topics[facts.topic].partitions) + _RECORDS_MAX + 1
    topic = partitions.CreatePartitionsTopic(name=facts.topic, count=count, assignments=None)
    return [
        _creations(_topic(topics, "n0", _RECORDS_MAX + 1)),
        _creations(_topic(topics, "n0", -5), _topic(topics, "n1", _RECORDS_MAX + 1)),
        partitions.CreatePartitionsRequest(topics=(topic,), timeout=_TIMEOUT, validate_only=True),
    ]


def _assigned(schema: ModuleType, name: str, *assignments: tuple[int, tuple[int, ...]], **numbers: int) -> Any:
    given = tuple(
        schema.CreatableReplicaAssignment(partition_index=index, broker_ids=replicas) for index, replicas in assignments
    )
    return _topic(schema, name, numbers.get("partitions", -1), numbers.get("factor", -1), assignments=given)


def _assignments(facts: Facts) -> Any:
    schema, one = schema_for_clients(ApiKey.CREATE_TOPICS), facts.broker
    return _creations(
        _assigned(schema, "m0", (0, (one,)), (1, (one,))),
        _assigned(schema, "m1", (0, (one, one))),
        _assigned(schema, "m2", (0, (NOBODY,))),
        _assigned(schema, "m3", (0, ())),
        _assigned(schema, "m4", (1, (one,))),
        _assigned(schema, "m5", (0, (one,)), (0, (one,))),
        _assigned(schema, "m6", (0, (one,)), partitions=1),
        _assigned(schema, "m7", (0, (one,)), factor=1),
        _assigned(schema, "m8", (0, (one,)), (1, tuple(facts.brokers[:2]))),
    )


def _of_assignments(facts: Facts) -> list[str]:
    is_uneven = len(facts.brokers) > 1
    return [
        NONE,
        *("INVALID_REPLICA_ASSIGNMENT",) * 5,
        *("INVALID_REQUEST",) * 2,
        "INVALID_REPLICA_ASSIGNMENT" if is_uneven else NONE,
    ]


def _settings_of_new(facts: Facts) -> Any:
    schema = schema_for_clients(ApiKey.CREATE_TOPICS)
    settings = (
        ("min.insync.replicas", "0"), ("no.such.property", "1"), ("retention.ms", None), ("max.message.bytes", "x"),
        ("remote.storage.enable", "true"), ("retention.ms", "1"),
    )  # fmt: skip
    twice = _topic(schema, "twice")
    return _creations(
        *(
            _topic(schema, f"s{place}", configs=(schema.CreatableTopicConfig(name=name, value=value),))
            for place, (name, value) in enumerate(settings)
        ),
        twice,
        twice,
    )


def _deletions(facts: Facts) -> Any:
    schema, known = schema_for_clients(ApiKey.DELETE_TOPICS), facts.image.topics[facts.topic]
    state = schema.DeleteTopicState
    no_id = facts.image.brokers[facts.broker].incarnation_id
    topics = (
        state(name=None, topic_id=no_id), state(name=None, topic_id=None),
        state(name=known.name, topic_id=known.topic_id), state(name=NOWHERE, topic_id=None),
        state(name=known.name, topic_id=None), state(name=known.name, topic_id=None),
    )  # fmt: skip
    return schema.DeleteTopicsRequest(topics=topics, timeout=_TIMEOUT)


def _additions(facts: Facts) -> Any:
    schema, count = schema_for_clients(ApiKey.CREATE_PARTITIONS), len(facts.image.topics[facts.topic].partitions)
    topic, assignment = schema.CreatePartitionsTopic, schema.CreatePartitionsAssignment

    def asked(*topics: Any) -> Any:
        return schema.CreatePartitionsRequest(topics=topics, timeout=_TIMEOUT, validate_only=True)

    replicas = facts.partition.replicas
    placed = [(replicas,), (replicas, replicas), ((*replicas[1:], NOBODY),), ((),)]
    return [
        asked(topic(name=NOWHERE, count=9, assignments=None), topic(name=facts.topic, count=count, assignments=None)),
        asked(topic(name=facts.topic, count=count - 1, assignments=None)),
        asked(*(topic(name=facts.topic, count=count + 1, assignments=None),) * 2),
        *(
            asked(
                topic(
                    name=facts.topic,
                    count=count + 1,
                    assignments=tuple(assignment(broker_ids=each) for each in assignments),
                )
            )
            for assignments in placed
        ),
    ]


_OF_ADDITIONS: Final = [
    *("UNKNOWN_TOPIC_OR_PARTITION", "INVALID_PARTITIONS", "INVALID_PARTITIONS", "INVALID_REQUEST"),
    *(NONE, *("INVALID_REPLICA_ASSIGNMENT",) * 3),
]


# --- partitions


def _elections(facts: Facts) -> Any:
    schema = schema_for_clients(ApiKey.ELECT_LEADERS)

    def asked(election_type: int, topic: str, *indexes: int) -> Any:
        topics = (schema.TopicPartitions(topic=topic, partitions=indexes),)
        return schema.ElectLeadersRequest(election_type=election_type, topic_partitions=topics, timeout=_TIMEOUT)

    return [asked(0, NOWHERE, 0), asked(0, facts.topic, 99), asked(1, facts.topic, 0), asked(5, facts.topic, 0)]


_OF_ELECTIONS: Final = [
    *(NONE, "UNKNOWN_TOPIC_OR_PARTITION") * 2,
    *(NONE, "ELECTION_NOT_NEEDED"),
    *("INVALID_REQUEST",) * 2,
]


def _movements(facts: Facts) -> Any:
    schema = schema_for_clients(ApiKey.ALTER_PARTITION_REASSIGNMENTS)
    one = facts.broker
    targets = (None, (), (one, one), (NOBODY,), (-1,))

    def asked(topic: str, index: int, replicas: tuple[int, ...] | None, *, may_change: bool = True) -> Any:
        partition = schema.ReassignablePartition(partition_index=index, replicas=replicas)
        topics = (schema.ReassignableTopic(name=topic, partitions=(partition,)),)
        return schema.AlterPartitionReassignmentsRequest(
            timeout=_TIMEOUT, allow_replication_factor_change=may_change, topics=topics
        )

    longer = tuple(facts.brokers) if len(facts.partition.replicas) == 1 else facts.partition.replicas[:1]
    return [
        asked(NOWHERE, 0, (one,)),
        asked(facts.topic, 99, (one,)),
        *(asked(facts.topic, 0, target) for target in targets),
        *([asked(facts.topic, 0, longer, may_change=False)] if len(facts.brokers) > 1 else []),
    ]


def _of_movements(facts: Facts) -> list[str]:
    found = [*("UNKNOWN_TOPIC_OR_PARTITION",) * 2, "NO_REASSIGNMENT_IN_PROGRESS", *("INVALID_REPLICA_ASSIGNMENT",) * 4]
    if len(facts.brokers) > 1:
        found.append("INVALID_REPLICATION_FACTOR")
    return [each for error in found for each in (NONE, error)]


def _deleted_records(facts: Facts) -> Any:
    schema = schema_for_clients(ApiKey.DELETE_RECORDS)

    def asked(topic: str, index: int, offset: int) -> Any:
        partition = schema.DeleteRecordsPartition(partition_index=index, offset=offset)
        topics = (schema.DeleteRecordsTopic(name=topic, partitions=(partition,)),)
        return schema.DeleteRecordsRequest(topics=topics, timeout=_TIMEOUT)

    return [
        asked(NOWHERE, 0, 0),
        asked(facts.topic, 99, 0),
        asked(facts.topic, 0, 2**40),
        asked(facts.topic, 0, -2),
    ]


def _of_deleted_records(facts: Facts) -> list[str]:
    policy = facts.image.topic_overrides(facts.topic).get("cleanup.policy", "delete")
    refused = "OFFSET_OUT_OF_RANGE" if "delete" in policy else "POLICY_VIOLATION"
    return [*("UNKNOWN_TOPIC_OR_PARTITION",) * 2, refused, refused]


def _epochs(facts: Facts) -> Any:
    schema, ends = schema_for_clients(ApiKey.OFFSET_FOR_LEADER_EPOCH), schema_for_clients(ApiKey.LIST_OFFSETS)
    current = facts.partition.leader_epoch

    def epoch_end(topic: str, known: int) -> Any:
        partition = schema.OffsetForLeaderPartition(partition=0, current_leader_epoch=known, leader_epoch=0)
        return schema.OffsetForLeaderEpochRequest(
            replica_id=-1, topics=(schema.OffsetForLeaderTopic(topic=topic, partitions=(partition,)),)
        )

    def end(known: int, timestamp: int, times: int = 1) -> Any:
        partition = ends.ListOffsetsPartition(partition_index=0, current_leader_epoch=known, timestamp=timestamp)
        topics = (ends.ListOffsetsTopic(name=facts.topic, partitions=(partition,) * times),)
        return fitted(ends.ListOffsetsRequest, replica_id=-1, isolation_level=0, topics=topics, timeout=_TIMEOUT)

    return [
        epoch_end(NOWHERE, -1), epoch_end(facts.topic, current + 1), epoch_end(facts.topic, current),
        end(current + 1, -2), end(current, -2), end(-1, -99), end(-1, -2, times=2), end(-1, -4), end(-1, -5),
    ]  # fmt: skip


_OF_EPOCHS: Final = [
    *("UNKNOWN_TOPIC_OR_PARTITION", "UNKNOWN_LEADER_EPOCH", NONE),
    *("UNKNOWN_LEADER_EPOCH", NONE, "UNSUPPORTED_VERSION", "INVALID_REQUEST", NONE, NONE),
]


# --- what is told


def _cluster(facts: Facts) -> Any:
    schema = schema_for_clients(ApiKey.DESCRIBE_CLUSTER)
    return [
        schema.DescribeClusterRequest(
            include_cluster_authorized_operations=False, endpoint_type=endpoint_type, include_fenced_brokers=False
        )
        for endpoint_type in (1, 2, 3)
    ]


def _old_metadata(facts: Facts) -> Any:
    """Return Metadata requests of several versions; before v4 none can decline that a topic is created."""
    requests = [request for version in (0, 1, 4, 7, 9, 12) for request in _metadata_of(facts, version)]
    return [*requests, Sleep(HEARD_MS), _deletion(NOWHERE)]


def _metadata_of(facts: Facts, version: int) -> Iterator[Any]:
    schema = request_schema(ApiKey.METADATA, version)
    topics = tuple(fitted(schema.MetadataRequestTopic, topic_id=None, name=name) for name in (facts.topic, NOWHERE))
    for named in (topics, () if version == 0 else None):
        yield fitted(
            schema.MetadataRequest,
            topics=named,
            allow_auto_topic_creation=False,
            include_topic_authorized_operations=False,
            include_cluster_authorized_operations=version > 7,
        )


def _deletion(name: str) -> Any:
    schema = schema_for_clients(ApiKey.DELETE_TOPICS)
    topics = (schema.DeleteTopicState(name=name, topic_id=None),)
    return schema.DeleteTopicsRequest(topics=topics, timeout=_TIMEOUT)


def _missing_topic(version: int, *names: str, creates: bool) -> Any:
    schema = request_schema(ApiKey.METADATA, version)
    topics = tuple(fitted(schema.MetadataRequestTopic, topic_id=None, name=name) for name in names)
    return fitted(
        schema.MetadataRequest,
        topics=topics,
        allow_auto_topic_creation=creates,
        include_topic_authorized_operations=False,
        include_cluster_authorized_operations=False,
    )


def _created_by_metadata(facts: Facts) -> Any:
    """Return requests for a missing topic: it is created if the request and the broker allow it (v0 to v3: always)."""
    look, clean = _missing_topic(12, NOWHERE, creates=False), _deletion(NOWHERE)
    return [
        *(look, Sleep(HEARD_MS), look),
        *(_missing_topic(12, "no/name", NOWHERE, creates=True), Sleep(HEARD_MS), look, clean, Sleep(HEARD_MS)),
        *(_missing_topic(3, NOWHERE, creates=False), Sleep(HEARD_MS), look, clean, Sleep(HEARD_MS)),
        look,
    ]


def _created_by_metadata_errors(facts: Facts) -> list[str]:
    unknown, configuration = "UNKNOWN_TOPIC_OR_PARTITION", facts.configuration
    is_created = configuration.value("auto.create.topics.enable") and len(facts.brokers) >= configuration.integer(
        "default.replication.factor"
    )
    partitions = configuration.integer("num.partitions")
    found = [*(NONE,) * (1 + partitions), NONE] if is_created else [unknown, unknown]
    return [unknown, unknown, "INVALID_TOPIC_EXCEPTION", unknown, *found, unknown, *found, unknown]


def _after_a_long_while(facts: Facts) -> Any:
    """Nothing happens meanwhile: every time-out that somebody forgot to lift comes."""
    return [Sleep(_LONG_MS), *_metadata_of(facts, 12)]


def _topics_by_id(facts: Facts) -> Any:
    schema, known = schema_for_clients(ApiKey.METADATA), facts.image.topics[facts.topic].topic_id
    ids = (known, facts.image.brokers[facts.broker].incarnation_id)
    topics = tuple(schema.MetadataRequestTopic(topic_id=topic_id, name=None) for topic_id in ids)
    return schema.MetadataRequest(
        topics=topics, allow_auto_topic_creation=False, include_topic_authorized_operations=False
    )


EXAMS: Final = (
    Exam("names of topics", Whom.BROKER, _names, always(*_NAMES.values(), "TOPIC_ALREADY_EXISTS")),
    Exam("numbers of new topics", Whom.BROKER, _numbers, always(*_OF_NUMBERS)),
    Exam("replicas of new topics", Whom.BROKER, _assignments, _of_assignments),
    Exam(
        "settings of new topics",
        Whom.BROKER,
        _settings_of_new,
        always(*("INVALID_CONFIG",) * 5, NONE, "INVALID_REQUEST"),
    ),
    Exam(
        "topics that cannot be deleted",
        Whom.BROKER,
        _deletions,
        always("UNKNOWN_TOPIC_ID", *("INVALID_REQUEST",) * 2, "UNKNOWN_TOPIC_OR_PARTITION", "INVALID_REQUEST"),
    ),
    Exam("partitions that cannot be added", Whom.BROKER, _additions, always(*_OF_ADDITIONS)),
    Exam("elections that are not needed", Whom.BROKER, _elections, always(*_OF_ELECTIONS)),
    Exam("movements that cannot be", Whom.BROKER, _movements, _of_movements),
    Exam("records that cannot be deleted", Whom.LEADER, _deleted_records, _of_deleted_records),
    Exam("epochs and ends", Whom.LEADER, _epochs, always(*_OF_EPOCHS)),
    Exam(
        "the cluster",
        Whom.BROKER,
        _cluster,
        always(NONE, "MISMATCHED_ENDPOINT_TYPE", "UNSUPPORTED_ENDPOINT_TYPE"),
    ),
    Exam("what old clients are told", Whom.BROKER, _old_metadata, anything, unsettles=True),
    Exam(
        "topics that Metadata creates", Whom.BROKER, _created_by_metadata, _created_by_metadata_errors, unsettles=True
    ),
    Exam("what is told after a long while", Whom.BROKER, _after_a_long_while, anything, unsettles=True),
    Exam("topics by their ids", Whom.BROKER, _topics_by_id, anything),
    Exam(
        "topics that Metadata creates, at a leader",
        Whom.LEADER,
        _created_by_metadata,
        _created_by_metadata_errors,
        unsettles=True,
    ),
    Exam("too many partitions", Whom.BROKER, _excessive_numbers, always(*("POLICY_VIOLATION",) * 4)),
)
