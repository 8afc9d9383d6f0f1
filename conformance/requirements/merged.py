"""Requirements of requests for several partitions, topics or groups.

A response has one result for each of them, the same as that of a request for it alone, whatever the errors of the
others. Where the version of the target has only one group or topic in a request, several requests are sent. Most
requests are sent in each version, in one that is drawn, or in the newest one and an old one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from conformance.requirements import sources
from conformance.requirements.requirement import KRAFT, Level, Requirement, requirement_of
from conformance.sequential.check import judges, judges_all, sequential
from conformance.sequential.requests import api_key
from conformance.sequential.steps import (
    EARLIEST,
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
    DescribeGroup,
    DescribeProducers,
    ElectLeaders,
    Eventually,
    Fetch,
    FindCoordinators,
    IncrementalAlterConfigs,
    InitProducerId,
    JoinGroup,
    ListOffsets,
    Merged,
    Metadata,
    OffsetCommit,
    OffsetDelete,
    OffsetFetch,
    OffsetForLeaderEpoch,
    Operation,
    Produce,
    Record,
    Step,
    SyncGroup,
)
from conformance.sequential.strategies import (
    BASE_TIMESTAMP_MS,
    LEADER_EPOCH_SINCE,
    SEVERAL_PARTITIONS,
    many,
    placed,
    script,
)
from fixtures.clients.messages import api_name, known_versions
from fixtures.clients.requests import LAST_GROUP_VERSION_BY_NAME as _BY_NAME
from fixtures.targets.target import Capability


@dataclass(frozen=True, slots=True)
class _Row:
    """One API with its script.

    :ivar several: what a request is for, as text.
    :ivar parts: the parts of the script, which has `Merged` steps of this API.
    :ivar judged: names of fields of steps that are judged in addition to the responses of `Merged`.
    """

    api: ApiKey
    several: str
    sources: tuple[Any, ...]
    parts: tuple[Any, ...]
    judged: Mapping[type[Step], str]
    nodes_min: int = 1


_NO_PARTITION: Final = 1000
_PARTITIONS: Final = range(SEVERAL_PARTITIONS)
_GROUPS: Final = tuple(f"trial-{name}" for name in ("one", "two", "three", "four", "five", "six"))
"""More groups than brokers, so that a broker coordinates several."""
_TOPICS: Final = ("trial", "trial-two", "trial-three")

_OFFSETS: Final = st.integers(0, 1000)
_COMMITS: Final = (
    CreateTopic(partitions=2),
    *(OffsetCommit(10 + place, group) for place, group in enumerate(_GROUPS)),
    many(st.builds(OffsetCommit, _OFFSETS, group=st.sampled_from(_GROUPS), partition=st.integers(0, 1))),
)
_COMMIT_OF_SEVERAL: Final = (
    CreateTopic(partitions=3),
    CreateTopic("trial-two"),
    Merged(
        (
            OffsetCommit(1, metadata="one", version=_BY_NAME),
            OffsetCommit(2, partition=_NO_PARTITION, version=_BY_NAME),
            OffsetCommit(3, partition=2, version=_BY_NAME),
            OffsetCommit(4, topic="trial-none", version=_BY_NAME),
            OffsetCommit(5, topic="trial-two", metadata="five", version=_BY_NAME),
        )
    ),
    many(_OFFSETS.map(OffsetCommit), at_most=2),
    Merged((OffsetCommit(6, partition=2), OffsetCommit(7, topic="trial-two", leader_epoch=0), OffsetCommit(8))),
)
_COMMITTED: Final = (
    OffsetFetch(),
    OffsetFetch(topic="trial-two"),
    OffsetFetch(partition=1),
    OffsetFetch(partition=2),
)
_RECORDS: Final = (
    CreateTopic(partitions=SEVERAL_PARTITIONS),
    InitProducerId(),
    *(
        Produce((Batch((Record(b"a"),) * (index + 1), producer=0),), partition=index)
        for index in range(SEVERAL_PARTITIONS)
    ),
)
_RECORDS_OF_TWO: Final = (
    *_RECORDS,
    CreateTopic("trial-two", partitions=3),
    *(
        Produce((Batch((Record(b"two", timestamp_ms=BASE_TIMESTAMP_MS),) * (index + 7)),), "trial-two", index)
        for index in range(3)
    ),
    DeleteRecords(2, partition=2),
    DeleteRecords(4, topic="trial-two"),
)
_CREATED: Final = tuple(CreateTopic(topic, partitions=count) for count, topic in enumerate(_TOPICS, 1))
_SET: Final = frozenset({"error", "set"})
_SETTINGS: Final = ("max.message.bytes", "retention.ms", "segment.ms")
_SETTING_NAMES: Final = st.sampled_from(_SETTINGS)


def _in_version(version: int, *steps: Step) -> Merged:
    return Merged(tuple(replace(step, version=version) for step in steps))  # type: ignore[call-arg]


def _in_some_version(*steps: Step) -> SearchStrategy[Merged]:
    """Return a strategy for the merged steps in one version of their API."""
    return st.sampled_from(known_versions(api_key(steps[0]))).map(lambda version: _in_version(version, *steps))


def _merged_commits(version: int) -> tuple[Step, ...]:
    """Return merged commits in one version, and steps that read them."""
    first = 100 * version
    commits = (
        OffsetCommit(first),
        OffsetCommit(first + 1, partition=2),
        OffsetCommit(first + 2, partition=_NO_PARTITION),
        OffsetCommit(first + 3, topic="trial-two"),
    )
    return _in_version(version, *commits), OffsetFetch(), OffsetFetch(topic="trial-two"), OffsetFetch(partition=2)


def _merged_produces(version: int, producer: int | None = None) -> Merged:
    """Return merged Produce requests in one version; acks is 1 in each second version.

    :param producer: producer of the batches, which are the first ones of this producer.
    """
    places = (("trial", 0), ("trial", _NO_PARTITION), ("trial-two", 0), ("trial", 1), ("trial-times", 1))
    return _in_version(
        version,
        *(
            Produce(
                (Batch((Record(b"v%d of %d" % (version, number)),) * number, producer=producer),),
                topic,
                partition,
                acks=1 if version % 2 else -1,
            )
            for number, (topic, partition) in enumerate(places, 1)
        ),
    )


def _merged_fetches(version: int) -> Merged:
    """Return merged Fetch requests of two topics in one version."""
    fetches = (
        Fetch(1),
        Fetch(100, partition=1),
        Fetch(topic="trial-two"),
        Fetch(2, partition=2),
        Fetch(partition=_NO_PARTITION),
        Fetch(topic="trial-two", partition=1),
        *((Fetch(leader_epoch=5, partition=3),) if version >= LEADER_EPOCH_SINCE[ApiKey.FETCH] else ()),
    )
    return _in_version(version, *fetches)


def _merged_list_offsets(version: int) -> Merged:
    """Return merged ListOffsets requests of two topics in one version."""
    lookups = (
        ListOffsets(EARLIEST, partition=2),
        ListOffsets(),
        ListOffsets(EARLIEST, topic="trial-two"),
        ListOffsets(BASE_TIMESTAMP_MS, partition=1),
        ListOffsets(partition=_NO_PARTITION),
        ListOffsets(BASE_TIMESTAMP_MS, topic="trial-two", partition=1),
        *((ListOffsets(leader_epoch=5, partition=3),) if version >= LEADER_EPOCH_SINCE[ApiKey.LIST_OFFSETS] else ()),
    )
    return _in_version(version, *lookups)


def _merged_epoch_ends(version: int) -> Merged:
    """Return merged OffsetForLeaderEpoch requests of two topics in one version."""
    lookups = (
        *(OffsetForLeaderEpoch(0, partition=index) for index in (*_PARTITIONS[::-1], _NO_PARTITION)),
        *(OffsetForLeaderEpoch(0, topic="trial-two", partition=index) for index in (1, 0)),
    )
    return _in_version(version, *lookups, OffsetForLeaderEpoch(leader_epoch=5, topic="trial-two", partition=2))


def _reassigned(first: tuple[int, ...], second: tuple[int, ...], third: tuple[int, ...]) -> tuple[Step, ...]:
    """Return the steps that reassign three of six partitions, with reassignments in between that are rejected."""
    return (
        placed(1, 2, partitions=4),
        placed(2, 3, topic="trial-two", partitions=2),
        Merged(
            (
                AlterReassignment(first, partition=1),
                AlterReassignment((1, 1)),
                AlterReassignment((2, 1), partition=_NO_PARTITION),
                AlterReassignment(second, topic="trial-two", partition=1),
                AlterReassignment((2, 1), topic="trial-none"),
                AlterReassignment(third, partition=3),
            )
        ),
        AwaitTopic(),
        AwaitTopic("trial-two"),
    )


def _set(topic: str, value: str, name: str = "max.message.bytes") -> IncrementalAlterConfigs:
    return IncrementalAlterConfigs(((name, Operation.SET, value),), topic)


_ROWS: Final = (
    _Row(
        ApiKey.PRODUCE,
        "several partitions of several topics",
        (sources.PROTOCOL_ERRORS,),
        (
            CreateTopic(partitions=2),
            CreateTopic("trial-two", partitions=2),
            CreateTopic(
                "trial-times", 2, configs=(("message.timestamp.type", "LogAppendTime"), ("retention.ms", "-1"))
            ),
            *map(_merged_produces, known_versions(ApiKey.PRODUCE)),
            *(
                step
                for number, version in enumerate(known_versions(ApiKey.PRODUCE))
                for step in (InitProducerId(), *(_merged_produces(version, number),) * 2)
            ),
            *(Fetch(topic=topic, partition=index) for topic in ("trial", "trial-two") for index in range(2)),
            Fetch(topic="trial-times", partition=1),
        ),
        {Fetch: "error records producers"},
    ),
    _Row(
        ApiKey.FETCH,
        "several partitions of several topics",
        (sources.PROTOCOL_ERRORS, sources.KIP_320),
        (*_RECORDS_OF_TWO, *map(_merged_fetches, known_versions(ApiKey.FETCH))),
        {},
    ),
    _Row(
        ApiKey.LIST_OFFSETS,
        "several partitions of several topics",
        (sources.PROTOCOL_ERRORS, sources.KIP_320),
        (*_RECORDS_OF_TWO, *map(_merged_list_offsets, known_versions(ApiKey.LIST_OFFSETS))),
        {},
    ),
    _Row(
        ApiKey.OFFSET_FETCH,
        "several partitions of several groups",
        (sources.KIP_709,),
        (
            *_COMMITS,
            Merged(tuple(OffsetFetch(group) for group in _GROUPS[::-1])),
            Merged(tuple(OffsetFetch(group, partition=index) for group in _GROUPS for index in range(2))),
            Merged(tuple(OffsetFetch(group, version=_BY_NAME) for group in _GROUPS)),
            Merged(tuple(OffsetFetch(_GROUPS[0], partition=index, version=7) for index in (1, 0))),
            CreateTopic("trial-two", partitions=2),
            *(OffsetCommit(700 + index, _GROUPS[0], "trial-two", index) for index in range(2)),
            *(
                _in_version(
                    version,
                    *(
                        OffsetFetch(_GROUPS[0], topic, index)
                        for topic, index in (("trial-two", 1), ("trial", 0), ("trial-two", 0), ("trial", 1))
                    ),
                )
                for version in known_versions(ApiKey.OFFSET_FETCH)
            ),
        ),
        {OffsetCommit: "error"},
    ),
    _Row(
        ApiKey.OFFSET_COMMIT,
        "several partitions",
        (sources.PROTOCOL_ERRORS,),
        (
            *_COMMIT_OF_SEVERAL,
            *_COMMITTED,
            *(step for version in known_versions(ApiKey.OFFSET_COMMIT) for step in _merged_commits(version)),
        ),
        {OffsetFetch: "error committed_offset committed_leader_epoch metadata"},
    ),
    _Row(
        ApiKey.OFFSET_DELETE,
        "several partitions",
        (sources.KIP_496,),
        (
            *_COMMIT_OF_SEVERAL,
            Merged(
                (
                    OffsetDelete(),
                    OffsetDelete(partition=_NO_PARTITION),
                    OffsetDelete(topic="trial-two"),
                    OffsetDelete(partition=2),
                )
            ),
            *_COMMITTED,
        ),
        {OffsetFetch: "error committed_offset"},
    ),
    _Row(
        ApiKey.FIND_COORDINATOR,
        "several groups",
        (sources.KIP_699,),
        (*_COMMITS, Eventually(FindCoordinators(_GROUPS)), Eventually(FindCoordinators(_GROUPS[::-2]))),
        {FindCoordinators: "errors differences"},
    ),
    _Row(
        ApiKey.DESCRIBE_GROUPS,
        "several groups",
        (),
        (
            *_COMMITS,
            *(JoinGroup(group=_GROUPS[0]), JoinGroup(0, group=_GROUPS[0]), SyncGroup(0, group=_GROUPS[0])),
            JoinGroup(group=_GROUPS[1]),
            *(
                _in_version(version, *map(DescribeGroup, ("trial-none", *_GROUPS[::-1])))
                for version in known_versions(ApiKey.DESCRIBE_GROUPS)
            ),
        ),
        {},
    ),
    _Row(
        ApiKey.DELETE_GROUPS,
        "several groups",
        (sources.KIP_229,),
        (
            *_COMMITS,
            *(JoinGroup(group=_GROUPS[0]), JoinGroup(0, group=_GROUPS[0]), SyncGroup(0, group=_GROUPS[0])),
            Merged((*map(DeleteGroup, _GROUPS[:5]), DeleteGroup("trial-none"))),
            *map(OffsetFetch, (_GROUPS[0], _GROUPS[5])),
        ),
        {OffsetFetch: "error committed_offset"},
    ),
    _Row(
        ApiKey.CREATE_TOPICS,
        "several topics",
        (sources.KIP_4_METADATA,),
        (
            CreateTopic(),
            _in_some_version(
                CreateTopic("trial-bad", partitions=0),
                CreateTopic("trial-two", partitions=2),
                CreateTopic(),
                CreateTopic("trial-three", partitions=3, configs=(("max.message.bytes", "3000"),)),
            ),
            DescribeConfigs(_SETTINGS, "trial-two"),
            DescribeConfigs(_SETTINGS, "trial-three"),
            Metadata(None),
        ),
        {Metadata: "topics", DescribeConfigs: "error set"},
    ),
    _Row(
        ApiKey.CREATE_PARTITIONS,
        "several topics",
        (sources.KIP_195,),
        (
            *_CREATED,
            _in_some_version(
                CreatePartitions(4, "trial-two"),
                CreatePartitions(1, "trial-three"),
                CreatePartitions(5, "trial-none"),
                CreatePartitions(3),
            ),
            Eventually(Metadata(None)),
        ),
        {Metadata: "topics"},
    ),
    _Row(
        ApiKey.DELETE_TOPICS,
        "several topics",
        (sources.KIP_4_METADATA,),
        (
            *_CREATED,
            _in_some_version(*map(DeleteTopic, ("trial-three", "trial-none", "trial"))),
            Eventually(Metadata(None)),
        ),
        {Metadata: "topics"},
    ),
    _Row(
        ApiKey.DELETE_RECORDS,
        "several partitions",
        (sources.KIP_107,),
        (
            *_RECORDS_OF_TWO,
            many(st.builds(DeleteRecords, st.integers(0, 2), partition=st.integers(1, 5)), at_most=3),
            Merged(
                tuple(DeleteRecords(offset, partition=index) for index, offset in ((5, 4), (0, -1), (2, 9), (4, 3)))
            ),
            Merged((DeleteRecords(0, partition=_NO_PARTITION), DeleteRecords(3, partition=3))),
            *(
                _in_version(
                    version,
                    DeleteRecords(version + 1, partition=5),
                    DeleteRecords(version + 5, topic="trial-two"),
                    DeleteRecords(version + 2, topic="trial-two", partition=2),
                )
                for version in known_versions(ApiKey.DELETE_RECORDS)
            ),
            Merged(
                (
                    ListOffsets(EARLIEST, "trial-two", 2),
                    *(ListOffsets(EARLIEST, partition=index) for index in _PARTITIONS),
                    ListOffsets(EARLIEST, "trial-two"),
                )
            ),
        ),
        {},
    ),
    _Row(
        ApiKey.OFFSET_FOR_LEADER_EPOCH,
        "several partitions",
        (sources.KIP_101,),
        (
            *_RECORDS_OF_TWO,
            many(st.integers(0, 5).map(lambda index: Produce((Batch((Record(b"b"),)),), partition=index)), at_most=4),
            *map(_merged_epoch_ends, known_versions(ApiKey.OFFSET_FOR_LEADER_EPOCH)),
        ),
        {},
    ),
    _Row(
        ApiKey.DESCRIBE_PRODUCERS,
        "several partitions",
        (sources.KIP_664,),
        (
            *_RECORDS,
            CreateTopic("trial-two", partitions=2),
            *(
                Produce((Batch((Record(b"a"),) * 9, producer=0),), topic="trial-two", partition=index)
                for index in range(2)
            ),
            Merged(
                (
                    *(DescribeProducers(partition=index) for index in (*_PARTITIONS[::-1], _NO_PARTITION)),
                    DescribeProducers("trial-two", 1),
                )
            ),
        ),
        {},
    ),
    _Row(
        ApiKey.DESCRIBE_CONFIGS,
        "several topics",
        (sources.KIP_133,),
        (
            *_CREATED,
            many(st.builds(_set, st.sampled_from(_TOPICS), st.sampled_from(["700000", "800000"]), _SETTING_NAMES)),
            Eventually(Merged(tuple(DescribeConfigs(_SETTINGS, topic) for topic in (*_TOPICS[::-1], "trial-none")))),
        ),
        {},
    ),
    _Row(
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        "several topics",
        (sources.KIP_339,),
        (
            *_CREATED,
            _in_version(
                1, _set("trial-three", "3000"), _set("trial-two", "soon", "retention.ms"), _set("trial", "5000")
            ),
            _in_version(0, _set("trial-none", "3000"), _set("trial-two", "6000")),
            *(Eventually(DescribeConfigs(_SETTINGS, topic)) for topic in _TOPICS),
        ),
        {DescribeConfigs: "error set"},
    ),
    _Row(
        ApiKey.ALTER_CONFIGS,
        "several topics",
        (sources.KIP_133,),
        (
            *_CREATED,
            *(
                step
                for version in known_versions(ApiKey.ALTER_CONFIGS)
                for step in (
                    _in_version(
                        version,
                        AlterConfigs((("max.message.bytes", f"{3000 + version}"),), "trial-three"),
                        AlterConfigs((("retention.ms", "soon"),), "trial-two"),
                        AlterConfigs((("max.message.bytes", f"{4000 + version}"),)),
                        AlterConfigs((("max.message.bytes", "5000"),), "trial-none"),
                    ),
                    *(Eventually(DescribeConfigs(_SETTINGS, topic), awaited=_SET) for topic in _TOPICS),
                )
            ),
        ),
        {DescribeConfigs: "error set"},
    ),
    _Row(
        ApiKey.ELECT_LEADERS,
        "several partitions",
        (sources.KIP_183, sources.KIP_460),
        (
            *_reassigned((2, 1), (3, 2), (2, 1)),
            Merged(
                (
                    ElectLeaders(),
                    ElectLeaders(partition=1),
                    ElectLeaders(partition=_NO_PARTITION),
                    ElectLeaders("trial-none"),
                    ElectLeaders("trial-two", 1),
                    ElectLeaders(partition=3),
                )
            ),
            AwaitTopic(),
            AwaitTopic("trial-two"),
        ),
        {AwaitTopic: "partitions leader_epochs all_agree"},
        nodes_min=3,
    ),
    _Row(
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        "several partitions",
        (sources.KIP_455,),
        _reassigned((1, 3), (2, 1), (1, 2, 3)),
        {AwaitTopic: "partitions leader_epochs all_agree"},
        nodes_min=3,
    ),
)


_SINCE_KRAFT: Final = frozenset({ApiKey.INCREMENTAL_ALTER_CONFIGS, ApiKey.ALTER_CONFIGS})


def _requirement(row: _Row) -> Requirement:
    judged = judges("responses", of=Merged) | judges_all(row.judged)
    return Requirement(
        id=requirement_of("merged", row.api),
        level=Level.MUST,
        text=f"A response to {api_name(row.api)} for {row.several} has one result for each of them. This result is the "
        "same as if the request named nothing else, even if other results have an error.",
        sources=(sources.PROTOCOL, *row.sources),
        check=sequential(script(*row.parts), judged, cost=2),
        needs=frozenset({Capability.TOPIC_ADMIN, *([Capability.REPLICATION] if row.nodes_min > 1 else ())}),
        nodes_min=row.nodes_min,
        since=KRAFT if row.api in _SINCE_KRAFT or row.nodes_min > 1 else None,
    )


REQUIREMENTS: Final = tuple(map(_requirement, _ROWS))
