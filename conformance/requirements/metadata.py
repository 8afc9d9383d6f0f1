"""Requirements of the APIs that describe the cluster: topics, partitions, brokers and the quorum, from any broker."""

from typing import Final

from hypothesis import strategies as st

from conformance.requirements import rejections, sources
from conformance.requirements.requirement import KRAFT, Level, Requirement
from conformance.sequential.check import judges, sequential
from conformance.sequential.steps import (
    TOPIC,
    AlterReassignment,
    AwaitTopic,
    CreatePartitions,
    CreateTopic,
    DeleteTopic,
    DescribeCluster,
    DescribeConfigs,
    DescribeQuorum,
    DescribeTopicPartitions,
    ElectLeaders,
    EndpointType,
    Eventually,
    IncrementalAlterConfigs,
    InitProducerId,
    ListReassignments,
    Metadata,
    MetadataById,
    OffsetFetch,
    On,
    Operation,
    RawRequest,
    Step,
)
from conformance.sequential.strategies import every_version, led_by, many, placed, script
from fixtures.targets.target import Capability

_TOPICS: Final = frozenset({Capability.TOPIC_ADMIN})
_BROKERS: Final = st.integers(1, 3)


def _quorum(broker: int) -> Eventually:
    """Return the step that describes the quorum until every broker is listed.

    A new leader learns of an observer from the observer's first Fetch.
    """
    return Eventually(On(broker, DescribeQuorum()), awaited=frozenset({"every_broker"}))


def _on_each_broker(*steps: Step) -> tuple[Step, ...]:
    """Return the steps, the first sent to broker 1, the second to broker 2 and so on."""
    return tuple(On(broker, step) for broker, step in enumerate(steps, start=1))


def _retention(mebibytes: int) -> IncrementalAlterConfigs:
    return IncrementalAlterConfigs((("retention.bytes", Operation.SET, str(mebibytes << 20)),))


_PAGED_BY_ALL: Final = tuple(Eventually(On(broker, DescribeTopicPartitions())) for broker in (1, 2, 3))
_LED_BY_SECOND: Final = st.sampled_from([led_by(2, 1, partition=index) for index in range(2)])
_NAMES: Final = ("trial", "trial-two", "trial-none", "a/b", "two words", ".", "..", "x" * 250)

REQUIREMENTS: Final = (
    Requirement(
        id="metadata/topics-are-described",
        level=Level.MUST,
        text="Metadata describes each topic of the request. An existing topic has the error NONE and its partitions, "
        "each with a leader; a topic that does not exist has UNKNOWN_TOPIC_OR_PARTITION, and an illegal name has "
        "INVALID_TOPIC_EXCEPTION. Without allow_auto_topic_creation no topic is created: CreateTopics of the same name "
        "succeeds afterwards. Permitted operations are returned if they are requested (since v8). Each response lists "
        "every broker.",
        sources=(sources.KIP_4_METADATA, sources.PROTOCOL_ERRORS, sources.KIP_430),
        check=sequential(
            script(
                st.integers(1, 3).map(lambda count: CreateTopic(partitions=count)),
                many(st.lists(st.sampled_from(_NAMES), min_size=1, max_size=4, unique=True).map(tuple).map(Metadata)),
                Metadata(("trial", "trial-none", "a/b")),
                *(Metadata(version=version, with_operations=wanted) for version in (8, 12) for wanted in (True, False)),
                CreateTopic("trial-none"),
            ),
            judges("topics", "leaders", "every_broker", "operations", of=Metadata) | judges("error", of=CreateTopic),
        ),
        needs=_TOPICS,
    ),
    Requirement(
        id="metadata/null-lists-all-topics-and-empty-none",
        level=Level.MUST,
        text="Since Metadata v1 a null list of topics requests all topics, and an empty list requests none; in v0, "
        "which has no null, an empty list requests all. Each response lists the brokers, and only the topics of "
        "Kafka's coordinators are internal.",
        sources=(sources.KIP_4_METADATA,),
        check=sequential(
            script(
                many(st.sampled_from(["trial", "trial-two", "trial-three"]).map(CreateTopic), at_most=3),
                many(st.builds(Metadata, st.sampled_from([None, ()]), st.sampled_from([None, 9, 7, 4, 1]))),
                OffsetFetch(),
                *(Metadata(topics, version) for topics in (None, ()) for version in (None, 11, 10)),
                Metadata(None, version=0),
            ),
            judges("topics", "every_broker", "unrequested", "internal", of=Metadata),
        ),
        needs=_TOPICS,
    ),
    Requirement(
        id="metadata/topic-id-names-one-creation",
        level=Level.MUST,
        text="A topic keeps its id while it exists, and Metadata describes it by that id. A topic that is created "
        "again has another id, and the old id returns UNKNOWN_TOPIC_ID, as does an id that was never assigned. Before "
        "v12 a request by id returns INVALID_REQUEST.",
        sources=(sources.KIP_516,),
        check=sequential(
            script(
                CreateTopic(),
                many(st.sampled_from([Metadata(), MetadataById(0)]), at_most=2),
                DeleteTopic(),
                CreateTopic(),
                many(st.sampled_from([-1, 0, 1]).map(MetadataById) | st.just(Metadata()), at_most=4),
                Metadata(),
                MetadataById(0),
                MetadataById(1),
                rejections.METADATA_BY_ID_TOO_EARLY,
            ),
            judges("topic_ids", of=Metadata)
            | judges("error", "name", of=MetadataById)
            | judges("errors", of=RawRequest),
        ),
        needs=_TOPICS,
        since="3.1.0",
    ),
    Requirement(
        id="metadata/every-broker-returns-the-same",
        level=Level.MUST,
        text="A topic that was created through any broker is eventually described by all brokers in the same way: its "
        "id, its partitions with leader, replicas and in-sync replicas. Each broker describes the topic by name and "
        "by id.",
        sources=(sources.KIP_4_METADATA, sources.KIP_516),
        check=sequential(
            script(
                st.sampled_from([(1, 2), (2, 3), (3, 1)]).map(lambda brokers: placed(*brokers, partitions=2)),
                AwaitTopic(),
                many(st.builds(On, _BROKERS, st.sampled_from([Metadata(), MetadataById(0)])), at_most=2),
                CreateTopic(
                    "trial-two", -1, replication_factor=-1, assignments=((1, (2, 3)), (0, (3, 1)), (2, (1, 2)))
                ),
                AwaitTopic("trial-two"),
                *led_by(2, 1, partition=1),
                *(
                    On(broker, step)
                    for broker in (1, 2, 3)
                    for step in (Metadata(("trial", "trial-two")), Metadata(("trial-two", "trial")), MetadataById(0))
                ),
                *every_version(Metadata(("trial", "trial-two"))),
                DeleteTopic(),
                *(On(broker, MetadataById(0)) for broker in (1, 2, 3)),
                *every_version(Metadata(("trial", "trial-two"))),
            ),
            judges("partitions", "all_agree", "offline_replicas", of=AwaitTopic)
            | judges("topics", "topic_ids", "partitions", of=Metadata)
            | judges("error", "name", of=MetadataById),
            cost=5,
        ),
        needs=_TOPICS | {Capability.REPLICATION},
        nodes_min=3,
        since=KRAFT,
    ),
    Requirement(
        id="metadata/any-broker-serves-admin-requests",
        level=Level.MUST,
        text="A request that changes the cluster may be sent to any broker, whichever node is the active controller: "
        "each broker creates, changes and deletes topics, reassigns replicas, elects leaders, assigns producer ids and "
        "lists reassignments.",
        sources=(sources.KIP_590,),
        check=sequential(
            script(
                *_on_each_broker(*(placed(1, 2, topic=topic) for topic in (TOPIC, "trial-two", "trial-three"))),
                AwaitTopic(),
                *_on_each_broker(*(CreatePartitions(count, assignments=((2, 3),)) for count in (2, 3, 4))),
                AwaitTopic(),
                *(
                    step
                    for change in _on_each_broker(*map(_retention, (1, 2, 3)))
                    for step in (change, Eventually(DescribeConfigs(("retention.bytes",))))
                ),
                *(
                    step
                    for broker, order in ((1, (2, 1)), (2, (1, 2)), (3, (2, 1)))
                    for step in (
                        On(broker, AlterReassignment(order)),
                        Eventually(On(broker, ListReassignments())),
                        On(broker, ElectLeaders()),
                        AwaitTopic(),
                    )
                ),
                *(On(broker, InitProducerId()) for broker in (1, 2, 3)),
                *_on_each_broker(*map(DeleteTopic, (TOPIC, "trial-two", "trial-three"))),
                *(Eventually(Metadata((topic,))) for topic in (TOPIC, "trial-two", "trial-three")),
            ),
            judges("error", of=CreateTopic)
            | judges("partitions", of=AwaitTopic)
            | judges("error", of=CreatePartitions)
            | judges("error", of=IncrementalAlterConfigs)
            | judges("set", of=DescribeConfigs)
            | judges("error", of=AlterReassignment)
            | judges("error", of=ElectLeaders)
            | judges("error", "producer", of=InitProducerId)
            | judges("error", "ongoing", of=ListReassignments)
            | judges("error", of=DeleteTopic)
            | judges("topics", of=Metadata),
            cost=7,
        ),
        needs=_TOPICS | {Capability.REPLICATION},
        nodes_min=3,
        since=KRAFT,
    ),
    Requirement(
        id="metadata/partitions-are-paged",
        level=Level.MUST,
        text="DescribeTopicPartitions lists topics by name and partitions by index, at most as many as the limit, but "
        "at least one. If there are more, the response has a cursor, and a request with this cursor lists the "
        "partitions that follow, none twice. A cursor of a topic that is not requested, or of a negative partition, "
        "returns INVALID_REQUEST.",
        sources=(sources.KIP_966,),
        check=sequential(
            script(
                placed(1, topic="trial-a", partitions=2),
                placed(1, topic="trial-b", partitions=3),
                many(
                    st.builds(
                        DescribeTopicPartitions,
                        st.permutations(["trial-a", "trial-b", "trial-c"]).map(tuple),
                        st.integers(1, 6),
                        st.none() | st.tuples(st.sampled_from(["trial-a", "trial-b"]), st.integers(0, 2)),
                    ),
                    at_most=4,
                ),
                DescribeTopicPartitions(("trial-b", "trial-a"), 3),
                DescribeTopicPartitions(("trial-b", "trial-a"), 3, ("trial-b", 1)),
                DescribeTopicPartitions(("trial-b", "trial-a"), 2),
                DescribeTopicPartitions(("trial-b", "trial-a"), 0),
                DescribeTopicPartitions(("trial-none",)),
                *rejections.BAD_CURSORS,
            ),
            judges(
                "topics",
                "topic_ids",
                "internal",
                "listed",
                "partitions",
                "leader_epochs",
                "next",
                of=DescribeTopicPartitions,
            )
            | judges("errors", of=RawRequest),
            cost=3,
        ),
        needs=_TOPICS,
        since="3.9.0",
    ),
    Requirement(
        id="metadata/paged-partitions-have-new-leaders",
        level=Level.MUST,
        text="After a change of leader, DescribeTopicPartitions returns the new leader and its epoch, through each "
        "broker, and the same as before for the other partitions. It returns added partitions, no deleted topic, and "
        "the new id of a topic that is created again.",
        sources=(sources.KIP_966, sources.KIP_320),
        check=sequential(
            script(
                placed(1, 2, partitions=2),
                DescribeTopicPartitions(),
                _LED_BY_SECOND,
                _LED_BY_SECOND,
                *led_by(2, 1, partition=1),
                *_PAGED_BY_ALL,
                CreatePartitions(3, assignments=((3, 1),)),
                AwaitTopic(),
                *_PAGED_BY_ALL,
                DeleteTopic(),
                *_PAGED_BY_ALL,
                placed(2, 3),
                *_PAGED_BY_ALL,
            ),
            judges("topics", "topic_ids", "partitions", "leader_epochs", of=DescribeTopicPartitions),
            cost=5,
        ),
        needs=_TOPICS | {Capability.REPLICATION},
        nodes_min=3,
        since="3.9.0",
    ),
    Requirement(
        id="metadata/cluster-is-described",
        level=Level.MUST,
        text="DescribeCluster returns the same brokers, racks and cluster id as Metadata, and the brokers' addresses "
        "for clients. Its controller, like that of Metadata, is one of the brokers. Since v1 a broker returns "
        "MISMATCHED_ENDPOINT_TYPE for a request for controllers, and UNSUPPORTED_ENDPOINT_TYPE for an unknown "
        "endpoint type.",
        sources=(sources.KIP_700, sources.KIP_919),
        check=sequential(
            script(
                Metadata(()),
                many(st.sampled_from(EndpointType).map(DescribeCluster), at_most=2),
                *map(DescribeCluster, EndpointType),
                DescribeCluster(with_operations=True),
                On(2, DescribeCluster()),
                On(3, Metadata(())),
            ),
            judges(
                "error",
                "cluster_id",
                "racks",
                "every_broker",
                "addresses",
                "controller_is_broker",
                "operations",
                of=DescribeCluster,
            )
            | judges("cluster_id", "racks", "controller_is_broker", of=Metadata),
            cost=5,
        ),
        since="3.7.0",
    ),
    Requirement(
        id="metadata/quorum-is-described",
        level=Level.MUST,
        text="DescribeQuorum of the metadata partition returns, through any broker, a leader that is one of the "
        "voters, its epoch and a high watermark. The high watermark and the log end offsets of the other voters are "
        "not above the leader's log end offset. Each broker is a voter or an observer, and listed once; the addresses "
        "of the response (since v2) are those of the voters. Any other partition returns UNKNOWN_TOPIC_OR_PARTITION.",
        sources=(sources.KIP_595, sources.KIP_853),
        check=sequential(
            script(
                _BROKERS.map(_quorum),
                *map(_quorum, (1, 2, 3)),
                DescribeQuorum("trial-none"),
            ),
            judges(
                "error",
                "leader_is_voter",
                "has_epoch",
                "high_watermark_is_reached",
                "leader_log_is_longest",
                "listed_twice",
                "every_broker",
                "nodes_vote",
                of=DescribeQuorum,
            ),
            cost=5,
        ),
        since="3.3.0",
    ),
)
