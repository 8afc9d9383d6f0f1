"""Requirements that each version of an API has the same effects, results and errors.

Each row is for one API. Its script sends the same requests in each version, in an order that is drawn, and reads their
effects. If a response deviates from the model in all versions, that is no violation here, even if the versions deviate
in different ways: other requirements judge it. Requests that a version cannot hold are left out. `consistency` compares
the responses of APIs that only read field by field, and `versions` judges the form of each response.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from hypothesis import strategies as st

from conformance.requirements import sources
from conformance.requirements.members import JOINED
from conformance.requirements.requirement import KRAFT, Level, Requirement, requirement_of
from conformance.sequential.check import judges_all, sequential
from conformance.sequential.model.unknown import BY_ID_SINCE
from conformance.sequential.steps import (
    EARLIEST,
    LATEST,
    AlterConfigs,
    AlterReassignment,
    ApiKey,
    AwaitTopic,
    Batch,
    CreatePartitions,
    CreateTopic,
    DeleteGroup,
    DeleteRecords,
    DeleteTopic,
    DescribeConfigs,
    ElectLeaders,
    Eventually,
    Fetch,
    Flaw,
    Heartbeat,
    IncrementalAlterConfigs,
    InitProducerId,
    JoinGroup,
    ListGroups,
    ListOffsets,
    Metadata,
    OffsetCommit,
    OffsetFetch,
    OffsetForLeaderEpoch,
    Operation,
    Produce,
    Record,
    Step,
    SyncGroup,
)
from conformance.sequential.strategies import BASE_TIMESTAMP_MS, LEADER_EPOCH_SINCE, placed, script
from fixtures.clients.messages import api_name, known_versions
from fixtures.targets.target import Capability


@dataclass(frozen=True, slots=True)
class _Row:
    """One API with its script.

    :ivar steps: the steps for one version of the API.
    :ivar judged: the fields that are judged, by kind of step.
    """

    api: ApiKey
    before: tuple[Step, ...]
    steps: Callable[[int], tuple[Step, ...]]
    judged: Mapping[type[Step], str]
    sources: tuple[Any, ...] = ()
    since: str | None = None
    nodes_min: int = 1


_NO_PARTITION: Final = 1000
_NONE: Final = "trial-none"
_DESCRIBED: Final = Eventually(
    DescribeConfigs(("max.message.bytes", "retention.ms")), awaited=frozenset({"error", "set"})
)
_ALL_TOPICS_SINCE: Final = 2
"""First version of OffsetFetch that can request all offsets of a group."""


def _one(value: bytes, **fields: Any) -> tuple[Batch, ...]:
    return (Batch((Record(value, timestamp_ms=BASE_TIMESTAMP_MS),), **fields),)


def _produce(version: int) -> tuple[Step, ...]:
    """Return Produce requests to a new topic, requests that are rejected, and requests to topics with settings."""
    first = Batch((Record(b"a"), Record(b"b")), producer=0)
    return (
        CreateTopic(),
        Produce((first,), version=version),
        Produce((first,), acks=1, version=version),
        Produce(_one(b"gap", producer=0, sequence=5), version=version),
        Produce(_one(b"c", producer=0, sequence=2), version=version),
        Produce(_one(b"acks"), acks=1, version=version),
        Produce(_one(b"acks"), acks=2, version=version),
        Produce(_one(b"crc", flaw=Flaw.WRONG_CRC), version=version),
        Produce(_one(b"none"), _NONE, version=version),
        Produce(_one(b"none"), partition=_NO_PARTITION, version=version),
        DeleteRecords(1),
        Produce(_one(b"last"), version=version),
        Fetch(1),
        DeleteTopic(),
        Produce(_one(b"time"), "trial-times", version=version),
        Produce(_one(b"no key"), "trial-compact", version=version),
        Produce(_one(b"x" * 300), "trial-small", version=version),
        Fetch(topic="trial-times"),
        Fetch(topic="trial-small"),
    )


def _fetch(version: int) -> tuple[Step, ...]:
    with_epoch = (Fetch(leader_epoch=5, version=version),) if version >= LEADER_EPOCH_SINCE[ApiKey.FETCH] else ()
    return (
        *(Fetch(offset, version=version) for offset in (0, 1, 2, 4, 6, 7, 1000)),
        Fetch(2, partition_max_bytes=1, version=version),
        Fetch(2, max_bytes=1, version=version),
        Fetch(2, read_committed=True, version=version),
        Fetch(topic=_NONE, version=version),
        Fetch(partition=_NO_PARTITION, version=version),
        Fetch(partition=1, version=version),
        *with_epoch,
    )


def _list_offsets(version: int) -> tuple[Step, ...]:
    with_epoch = (
        (ListOffsets(leader_epoch=5, version=version),) if version >= LEADER_EPOCH_SINCE[ApiKey.LIST_OFFSETS] else ()
    )
    timestamps = (EARLIEST, LATEST, *(BASE_TIMESTAMP_MS + ms for ms in (0, 1, 2, 5)))
    return (
        *(ListOffsets(timestamp, version=version) for timestamp in timestamps),
        ListOffsets(partition=1, version=version),
        ListOffsets(read_committed=True, version=version),
        ListOffsets(topic=_NONE, version=version),
        ListOffsets(partition=_NO_PARTITION, version=version),
        *with_epoch,
    )


def _delete_records(version: int) -> tuple[Step, ...]:
    return (
        *_LOG,
        DeleteRecords(3, version=version),
        DeleteRecords(1000, version=version),
        DeleteRecords(0, version=version),
        DeleteRecords(0, _NONE, version=version),
        DeleteRecords(0, partition=_NO_PARTITION, version=version),
        ListOffsets(EARLIEST),
        Fetch(3),
        DeleteTopic(),
    )


def _offset_for_leader_epoch(version: int) -> tuple[Step, ...]:
    requests = (
        *(OffsetForLeaderEpoch(epoch, version=version) for epoch in (0, 1, 5)),
        OffsetForLeaderEpoch(partition=1, version=version),
        OffsetForLeaderEpoch(partition=_NO_PARTITION, version=version),
        OffsetForLeaderEpoch(topic=_NONE, version=version),
        OffsetForLeaderEpoch(leader_epoch=5, version=version),
    )
    return (*requests, Produce(_one(b"more")), *requests[:1])


def _commit(version: int) -> tuple[Step, ...]:
    return (
        OffsetCommit(5, metadata="five", version=version),
        OffsetCommit(5, partition=_NO_PARTITION, version=version),
        OffsetCommit(5, generation=1, member="unknown", version=version),
        OffsetFetch(),
        OffsetCommit(6, metadata="six", version=version),
        OffsetFetch(version=5),  # another step than the first, because two equal steps are compared with each other
    )


def _fetch_commits(version: int) -> tuple[Step, ...]:
    all_topics = (
        (OffsetFetch(topic=None, version=version),) if _ALL_TOPICS_SINCE <= version < BY_ID_SINCE[OffsetFetch] else ()
    )
    return (
        *(OffsetFetch(partition=partition, version=version) for partition in (0, 1, 2)),
        OffsetFetch("trial-group-none", version=version),
        *all_topics,
    )


def _create_topics(version: int) -> tuple[Step, ...]:
    return (
        CreateTopic("trial", 2, (("max.message.bytes", "3000"),), version=version),
        CreateTopic("trial", version=version),
        CreateTopic("trial-valid", validate_only=True, version=version),
        CreateTopic("trial-bad", partitions=0, version=version),
        CreateTopic("trial-bad", replication_factor=0, version=version),
        CreateTopic("trial-bad", configs=(("retention.ms", "soon"),), version=version),
        CreateTopic("a/b", version=version),
        CreateTopic("trial-placed", -1, replication_factor=-1, assignments=((0, (1,)), (1, (1,))), version=version),
        _DESCRIBED,
        Metadata(("trial", "trial-placed", "trial-valid", "trial-bad")),
        *(DeleteTopic(topic) for topic in ("trial", "trial-placed", "trial-bad", "trial-valid")),
    )


def _delete_topics(version: int) -> tuple[Step, ...]:
    return (
        CreateTopic(),
        DeleteTopic(version=version),
        DeleteTopic(version=version),
        DeleteTopic(_NONE, version=version),
        Eventually(Metadata()),
    )


def _create_partitions(version: int) -> tuple[Step, ...]:
    return (
        CreateTopic(),
        CreatePartitions(4, validate_only=True, version=version),
        CreatePartitions(3, version=version),
        CreatePartitions(2, version=version),
        CreatePartitions(2, _NONE, version=version),
        Eventually(Metadata()),
        DeleteTopic(),
    )


def _set(value: str | None, name: str = "max.message.bytes") -> tuple[tuple[str, Operation, str | None], ...]:
    return ((name, Operation.DELETE if value is None else Operation.SET, value),)


def _incremental_alter_configs(version: int) -> tuple[Step, ...]:
    return (
        IncrementalAlterConfigs(_set("3000"), version=version),
        _DESCRIBED,
        IncrementalAlterConfigs(_set("4000"), validate_only=True, version=version),
        IncrementalAlterConfigs(_set("soon", "retention.ms"), version=version),
        IncrementalAlterConfigs(_set("4000"), _NONE, version=version),
        IncrementalAlterConfigs(_set("700000", "retention.ms"), version=version),
        _DESCRIBED,
        IncrementalAlterConfigs(_set(None), version=version),
        _DESCRIBED,
    )


def _alter_configs(version: int) -> tuple[Step, ...]:
    return (
        AlterConfigs((("max.message.bytes", "3000"),), version=version),
        _DESCRIBED,
        AlterConfigs((("max.message.bytes", "4000"),), validate_only=True, version=version),
        AlterConfigs((("retention.ms", "soon"),), version=version),
        AlterConfigs((("max.message.bytes", "4000"),), _NONE, version=version),
        AlterConfigs((("retention.ms", "700000"),), version=version),
        _DESCRIBED,
    )


def _init_producer_id(version: int) -> tuple[Step, ...]:
    return InitProducerId(version=version), InitProducerId(version=version)


def _metadata(version: int) -> tuple[Step, ...]:
    return (
        Metadata(("trial", "trial-two"), version),
        Metadata((_NONE, "trial-two"), version),
        Metadata(("a/b", "trial"), version),
        Metadata(None, version),
    )


def _delete_groups(version: int) -> tuple[Step, ...]:
    return (
        OffsetCommit(5),
        DeleteGroup(version=version),
        DeleteGroup(version=version),
        OffsetFetch(),
    )


def _elect_leaders(version: int) -> tuple[Step, ...]:
    return (
        placed(1, 2, partitions=2),
        AlterReassignment((2, 1), partition=1),
        ElectLeaders(partition=1, version=version),
        ElectLeaders(version=version),
        ElectLeaders(_NONE, version=version),
        AwaitTopic(),
        DeleteTopic(),
    )


def _alter_reassignments(version: int) -> tuple[Step, ...]:
    return (
        placed(1, 2, partitions=2),
        AlterReassignment((1, 3), partition=1, version=version),
        AlterReassignment((), version=version),
        AlterReassignment(None, version=version),
        AlterReassignment((1, 3), _NONE, version=version),
        AwaitTopic(),
        DeleteTopic(),
    )


def _sync_group(version: int) -> tuple[Step, ...]:
    return (
        SyncGroup(0, version=version),
        SyncGroup(0, assignment=b"later", version=version),
        SyncGroup(0, 2, version=version),
        SyncGroup("unknown", version=version),
    )


def _heartbeat(version: int) -> tuple[Step, ...]:
    return tuple(Heartbeat(member, generation, version=version) for member, generation in _HEARTBEATS)


def _list_groups(version: int) -> tuple[Step, ...]:
    """Return requests with and without filters. Of a version without a filter, only the error is judged."""
    return (
        ListGroups(version=version),
        ListGroups("trial-group", version),
        ListGroups(_NONE, version),
        *(ListGroups(version=version, states=(state,)) for state in ("Empty", "Stable")),
        *(ListGroups(version=version, types=(each,)) for each in ("consumer", "classic")),
    )


def _records(*records: Record) -> Produce:
    return Produce((Batch(records),))


_HEARTBEATS: Final = ((0, 1), (0, 2), ("unknown", 1))
_LOG: Final = (
    CreateTopic(partitions=2),
    _records(Record(b"a", timestamp_ms=BASE_TIMESTAMP_MS), Record(b"b", timestamp_ms=BASE_TIMESTAMP_MS + 2)),
    _records(Record(b"c", timestamp_ms=BASE_TIMESTAMP_MS), Record(b"d", headers=(("h", b"1"),))),
    _records(Record(b"e", b"key", BASE_TIMESTAMP_MS + 1), Record(None, b"key"), Record(b"f")),
    Produce(_one(b"other"), partition=1),
)

_ROWS: Final = (
    _Row(
        ApiKey.PRODUCE,
        (
            CreateTopic("trial-times", configs=(("message.timestamp.type", "LogAppendTime"), ("retention.ms", "-1"))),
            CreateTopic("trial-compact", configs=(("cleanup.policy", "compact"),)),
            CreateTopic("trial-small", configs=(("max.message.bytes", "200"), ("retention.ms", "-1"))),
            InitProducerId(),
        ),
        _produce,
        {
            Produce: "error base_offset log_start_offset log_append_time record_errors",
            Fetch: "error records producers append_times",
        },
        (sources.KIP_98, sources.KIP_32),
    ),
    _Row(
        ApiKey.FETCH,
        (*_LOG, DeleteRecords(1)),
        _fetch,
        {Fetch: "error records high_watermark last_stable_offset log_start_offset leader_epochs"},
        (sources.KIP_74, sources.KIP_320),
    ),
    _Row(
        ApiKey.LIST_OFFSETS,
        (*_LOG, DeleteRecords(1)),
        _list_offsets,
        {ListOffsets: "error offset timestamp leader_epoch"},
        (sources.KIP_79,),
    ),
    _Row(
        ApiKey.DELETE_RECORDS,
        (),
        _delete_records,
        {DeleteRecords: "error low_watermark", ListOffsets: "error offset", Fetch: "error records"},
        (sources.KIP_107,),
    ),
    _Row(
        ApiKey.OFFSET_FOR_LEADER_EPOCH,
        _LOG,
        _offset_for_leader_epoch,
        {OffsetForLeaderEpoch: "error leader_epoch end_offset"},
        (sources.KIP_101,),
    ),
    _Row(
        ApiKey.OFFSET_COMMIT,
        (CreateTopic(),),
        _commit,
        {OffsetCommit: "error", OffsetFetch: "error committed_offset metadata"},
    ),
    _Row(
        ApiKey.OFFSET_FETCH,
        (
            CreateTopic(partitions=3),
            OffsetCommit(5, leader_epoch=0, metadata="five"),
            OffsetCommit(6, partition=1),
        ),
        _fetch_commits,
        {OffsetFetch: "error committed_offset committed_leader_epoch metadata committed"},
    ),
    _Row(
        ApiKey.CREATE_TOPICS,
        (),
        _create_topics,
        {
            CreateTopic: "error num_partitions replication_factor configs",
            DescribeConfigs: "error set",
            Metadata: "topics",
        },
        (sources.KIP_4_METADATA,),
    ),
    _Row(
        ApiKey.DELETE_TOPICS,
        (),
        _delete_topics,
        {DeleteTopic: "error", Metadata: "topics"},
        (sources.KIP_4_METADATA,),
    ),
    _Row(
        ApiKey.CREATE_PARTITIONS,
        (),
        _create_partitions,
        {CreatePartitions: "error", Metadata: "topics"},
        (sources.KIP_195,),
    ),
    _Row(
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        (CreateTopic(),),
        _incremental_alter_configs,
        {IncrementalAlterConfigs: "error", DescribeConfigs: "error set"},
        (sources.KIP_339,),
        KRAFT,
    ),
    _Row(
        ApiKey.ALTER_CONFIGS,
        (CreateTopic(),),
        _alter_configs,
        {AlterConfigs: "error", DescribeConfigs: "error set"},
        (sources.KIP_133,),
        KRAFT,
    ),
    _Row(
        ApiKey.INIT_PRODUCER_ID,
        (CreateTopic(),),
        _init_producer_id,
        {InitProducerId: "error producer producer_epoch"},
        (sources.KIP_98,),
    ),
    _Row(
        ApiKey.METADATA,
        (placed(1, partitions=2), placed(1, topic="trial-two")),
        _metadata,
        {Metadata: "topics leaders partitions unrequested every_broker"},
        (sources.KIP_4_METADATA,),
    ),
    _Row(
        ApiKey.DELETE_GROUPS,
        (CreateTopic(), DeleteGroup(_NONE)),
        _delete_groups,
        {DeleteGroup: "error", OffsetFetch: "error committed_offset"},
        (sources.KIP_229,),
    ),
    _Row(
        ApiKey.SYNC_GROUP,
        (*JOINED, SyncGroup(0)),
        _sync_group,
        {JoinGroup: "error", SyncGroup: "error assignment protocol_name protocol_type"},
        (sources.KIP_394,),
    ),
    _Row(
        ApiKey.HEARTBEAT,
        (*JOINED, SyncGroup(0)),
        _heartbeat,
        {JoinGroup: "error", Heartbeat: "error"},
        (sources.KIP_394,),
    ),
    _Row(
        ApiKey.LIST_GROUPS,
        (*JOINED, SyncGroup(0), OffsetCommit(5, "trial-group")),
        _list_groups,
        {ListGroups: "error listed state type protocol_type"},
        (sources.KIP_518, sources.KIP_848),
    ),
    _Row(
        ApiKey.ELECT_LEADERS,
        (),
        _elect_leaders,
        {ElectLeaders: "error", AwaitTopic: "partitions leader_epochs all_agree"},
        (sources.KIP_183, sources.KIP_460),
        KRAFT,
        nodes_min=3,
    ),
    _Row(
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        (),
        _alter_reassignments,
        {AlterReassignment: "error", AwaitTopic: "partitions all_agree"},
        (sources.KIP_455,),
        KRAFT,
        nodes_min=3,
    ),
)


def _requirement(row: _Row) -> Requirement:
    judged = replace(judges_all(row.judged), compares_versions=True)
    versions = st.permutations(known_versions(row.api))
    steps = versions.map(lambda order: tuple(step for version in order for step in row.steps(version)))
    return Requirement(
        id=requirement_of("compatibility", row.api),
        level=Level.MUST,
        text=f"Each version of {api_name(row.api)} that ApiVersions lists has the effects, results and errors of the "
        "other versions, except for fields that it does not have.",
        sources=(sources.PROTOCOL, sources.KIP_35, *row.sources),
        check=sequential(script(*row.before, steps), judged, cost=5),
        needs=frozenset({Capability.TOPIC_ADMIN, *([Capability.REPLICATION] if row.nodes_min > 1 else ())}),
        nodes_min=row.nodes_min,
        since=row.since,
    )


REQUIREMENTS: Final = tuple(map(_requirement, _ROWS))
