"""Requirements of topic administration: creation, deletion, added partitions, sizes, and rejections without effect."""

from typing import Final

from hypothesis import strategies as st

from conformance.requirements import rejections, sources
from conformance.requirements.requirement import KRAFT, Level, Requirement
from conformance.sequential.check import judges, sequential
from conformance.sequential.inheritance_rules import TOPIC_PROPERTIES
from conformance.sequential.model.topics import PARTITIONS_PER_REQUEST_MAX, REPLICAS_TOO_MANY, UNKNOWN_BROKER
from conformance.sequential.steps import (
    AwaitTopic,
    Compression,
    CreatePartitions,
    CreateTopic,
    DeleteTopic,
    DeleteTopicById,
    DescribeConfigs,
    DescribeLogDirs,
    Eventually,
    Fetch,
    ListOffsets,
    Metadata,
    OffsetCommit,
    OffsetFetch,
    On,
    Placement,
    Produce,
    RawRequest,
)
from conformance.sequential.strategies import batches, many, placed, produces, script
from fixtures.targets.target import Capability

_TOPICS: Final = frozenset({Capability.TOPIC_ADMIN})
_REPLICATION: Final = _TOPICS | {Capability.REPLICATION}
_CREATION: Final = judges("error", of=CreateTopic)
_PRESENCE: Final = judges("topics", of=Metadata)
_ERRORS: Final = judges("errors", of=RawRequest)

_ILLEGAL_NAMES: Final = ("", ".", "..", "a/b", "two words", "größe", "x" * 250)
_COLLIDING: Final = ("trial.a.b", "trial_a.b", "trial_a_b")
_BAD: Final = (
    st.builds(CreateTopic, topic=st.sampled_from(_ILLEGAL_NAMES))
    | st.builds(CreateTopic, partitions=st.sampled_from([0, -2]))
    | st.builds(CreateTopic, replication_factor=st.sampled_from([0, -2, REPLICAS_TOO_MANY]))
    | st.builds(
        CreateTopic,
        configs=st.sampled_from([("no.such.property", "1"), ("retention.ms", "soon"), ("cleanup.policy", "burn")]).map(
            lambda pair: (pair,)
        ),
    )
    | st.sampled_from([((0, (UNKNOWN_BROKER,)),), ((1, (UNKNOWN_BROKER,)),)]).map(
        lambda assignment: CreateTopic(partitions=-1, replication_factor=-1, assignments=assignment)
    )
    | st.just(CreateTopic(partitions=2, assignments=((0, (UNKNOWN_BROKER,)),)))
)

REQUIREMENTS: Final = (
    Requirement(
        id="admin/bad-topic-is-not-created",
        level=Level.MUST,
        text="CreateTopics rejects an illegal name with INVALID_TOPIC_EXCEPTION, a partition count below 1 with "
        "INVALID_PARTITIONS, a replication factor below 1 or above the number of brokers with "
        "INVALID_REPLICATION_FACTOR, an unknown or illegal property with INVALID_CONFIG, an assignment to an unknown "
        "broker with INVALID_REPLICA_ASSIGNMENT, and an assignment together with a partition count or replication "
        "factor with INVALID_REQUEST; none of these topics is created. A partition count of -1 is valid: it means the "
        "broker's default. Each topic of a request has its own error.",
        sources=(sources.KIP_4_METADATA, sources.PROTOCOL_ERRORS),
        check=sequential(script(many(_BAD), Metadata(), *rejections.CREATIONS), _CREATION | _PRESENCE | _ERRORS),
        needs=_TOPICS,
        since=KRAFT,
    ),
    Requirement(
        id="admin/existing-topic-is-not-created-again",
        level=Level.MUST,
        text="CreateTopics of a topic that exists returns TOPIC_ALREADY_EXISTS, and the topic and its records do not "
        "change.",
        sources=(sources.PROTOCOL_ERRORS,),
        check=sequential(
            script(
                CreateTopic(),
                produces(),
                many(st.builds(CreateTopic, partitions=st.integers(1, 3)), at_most=3),
                Metadata(),
                Fetch(),
            ),
            _CREATION | _PRESENCE | judges("error", "records", of=Fetch),
        ),
        needs=_TOPICS,
    ),
    Requirement(
        id="admin/colliding-topic-is-not-created",
        level=Level.SHOULD,
        text="Two topics whose names differ only in periods and underscores would have the same metrics. CreateTopics "
        "of the second one returns INVALID_TOPIC_EXCEPTION, until the first one is deleted.",
        sources=(sources.PROTOCOL_ERRORS, sources.KAFKA_2337),
        check=sequential(
            script(
                many(st.sampled_from(_COLLIDING).map(CreateTopic)),
                *map(CreateTopic, _COLLIDING),
                Metadata(_COLLIDING),
                *(step for name in _COLLIDING for step in (DeleteTopic(name), Eventually(Metadata((name,))))),
                *map(CreateTopic, reversed(_COLLIDING)),
                Metadata(_COLLIDING),
            ),
            _CREATION | _PRESENCE,
            cost=2,
        ),
        needs=_TOPICS,
        since="3.3.2",
    ),
    Requirement(
        id="admin/validate-only-creates-nothing",
        level=Level.MUST,
        text="CreateTopics with validate_only returns the same response as without it, and creates nothing.",
        sources=(sources.KIP_4_METADATA,),
        check=sequential(
            script(
                many(
                    st.builds(CreateTopic, partitions=st.integers(1, 3), validate_only=st.just(True)),
                    at_most=3,
                ),
                Metadata(),
                st.sampled_from([(), (CreateTopic(), CreateTopic(validate_only=True))]),
            ),
            _CREATION | _PRESENCE,
        ),
        needs=_TOPICS,
    ),
    Requirement(
        id="admin/creation-is-described",
        level=Level.SHOULD,
        text="Since CreateTopics v5 the response has the numbers of partitions and replicas and the settings of the "
        "new topic, as Metadata and DescribeConfigs return them. Only a client that may not describe settings gets an "
        "error in their place.",
        sources=(sources.KIP_525,),
        check=sequential(
            script(
                st.builds(
                    CreateTopic,
                    partitions=st.integers(1, 4),
                    configs=st.sampled_from(
                        [
                            (("retention.ms", "-1"),),
                            (("cleanup.policy", "compact"),),
                            (("retention.ms", "-1"), ("max.message.bytes", "5000")),
                        ]
                    ),
                ),
                Metadata(),
                Eventually(DescribeConfigs(TOPIC_PROPERTIES)),
            ),
            judges("error", "num_partitions", "replication_factor", "configs", of=CreateTopic)
            | _PRESENCE
            | judges("as_created", of=DescribeConfigs),
        ),
        needs=_TOPICS,
    ),
    Requirement(
        id="admin/deleted-topic-is-gone",
        level=Level.MUST,
        text="A deleted topic is unknown to Metadata, Produce and ListOffsets; if it is created again, it is empty and "
        "begins at offset 0. DeleteTopics of a topic that does not exist returns UNKNOWN_TOPIC_OR_PARTITION.",
        sources=(sources.KIP_4_METADATA, sources.PROTOCOL_ERRORS),
        check=sequential(
            script(
                CreateTopic(),
                many(produces(), at_most=3),
                DeleteTopic(),
                many(st.sampled_from([DeleteTopic(), Metadata(), ListOffsets()]) | produces(), at_most=3),
                DeleteTopic(),
                Metadata(),
                CreateTopic(),
                ListOffsets(),
                produces(),
            ),
            judges("error", of=DeleteTopic)
            | _PRESENCE
            | judges("error", "offset", of=ListOffsets)
            | judges("error", "base_offset", of=Produce),
        ),
        needs=_TOPICS,
    ),
    Requirement(
        id="admin/topics-are-deleted-by-id",
        level=Level.MUST,
        text="Since v6 DeleteTopics deletes the topic that has the given id. An id that no topic has, such as that of "
        "a deleted topic, returns UNKNOWN_TOPIC_ID, and a new topic with the name of the deleted one is not deleted. A "
        "topic without name and id, with both, or named twice, returns INVALID_REQUEST.",
        sources=(sources.KIP_516, sources.PROTOCOL_ERRORS),
        check=sequential(
            script(
                CreateTopic(),
                *rejections.DELETIONS,
                DeleteTopicById(-1),
                st.sampled_from([DeleteTopicById(0), DeleteTopic()]),
                many(st.sampled_from([DeleteTopicById(0), Metadata()]), at_most=2),
                CreateTopic(),
                DeleteTopicById(0),
                Metadata(),
                DeleteTopicById(1),
                Metadata(),
            ),
            judges("error", of=DeleteTopicById) | _PRESENCE | _ERRORS,
            cost=3,
        ),
        needs=_TOPICS,
        since="3.1.0",
    ),
    Requirement(
        id="admin/partitions-are-added",
        level=Level.MUST,
        text="CreatePartitions increases a topic's number of partitions to the given count: the new ones are empty, "
        "the others keep their records. A count that is not above the current one is rejected with INVALID_PARTITIONS, "
        "an unknown topic with UNKNOWN_TOPIC_OR_PARTITION, and validate_only adds nothing.",
        sources=(sources.KIP_195,),
        check=sequential(
            script(
                CreateTopic(partitions=2),
                produces(),
                many(
                    st.builds(CreatePartitions, st.integers(0, 6), validate_only=st.booleans()).map(
                        lambda step: (step, AwaitTopic())
                    ),
                    at_most=3,
                ),
                CreatePartitions(2),
                CreatePartitions(7),
                AwaitTopic(),
                CreatePartitions(8, topic="trial-none"),
                CreatePartitions(9, validate_only=True),
                produces(partition=st.integers(0, 6)),
                produces(partition=st.just(6)),
                Fetch(partition=6),
                OffsetCommit(3, partition=6),
                OffsetFetch(partition=6),
                Fetch(),
                ListOffsets(),
                ListOffsets(partition=6),
                Metadata(),
            ),
            judges("error", of=CreatePartitions)
            | judges("error", "base_offset", of=Produce)
            | judges("error", "records", of=Fetch)
            | judges("error", "offset", of=ListOffsets)
            | judges("error", of=OffsetCommit)
            | judges("error", "committed_offset", of=OffsetFetch)
            | _PRESENCE,
            cost=5,
        ),
        needs=_TOPICS,
    ),
    Requirement(
        id="admin/added-partitions-use-the-assignment",
        level=Level.MUST,
        text="CreatePartitions with assignments puts each new partition on the given brokers, and the first of them is "
        "its leader. If an assignment is missing, or its number of different brokers is not the topic's replication "
        "factor, the request returns INVALID_REPLICA_ASSIGNMENT. A topic that is named twice returns INVALID_REQUEST.",
        sources=(sources.KIP_195, sources.PROTOCOL_ERRORS),
        check=sequential(
            script(
                placed(1, 2),
                rejections.UNEVEN_CREATION,
                *rejections.ADDITIONS,
                many(
                    st.sampled_from(
                        [
                            CreatePartitions(2, assignments=((1, 2), (2, 3))),
                            CreatePartitions(3, assignments=((1, 2),)),
                            CreatePartitions(2, assignments=((1, 1),)),
                            CreatePartitions(2, assignments=((1, UNKNOWN_BROKER),)),
                            CreatePartitions(2, assignments=((1, 2, 3),)),
                            CreatePartitions(2, assignments=((3, 1),), validate_only=True),
                        ]
                    ),
                    at_most=4,
                ),
                CreatePartitions(2, assignments=((1,),)),
                CreatePartitions(3, assignments=((2, 3), (3, 1))),
                AwaitTopic(),
            ),
            judges("error", of=CreatePartitions) | judges("partitions", "all_agree", of=AwaitTopic) | _ERRORS,
            cost=5,
        ),
        needs=_REPLICATION,
        nodes_min=3,
    ),
    Requirement(
        id="admin/too-many-partitions-are-rejected",
        level=Level.MAY,
        text="A request for more than 10,000 new partitions is rejected as a whole, even with validate_only. "
        "CreateTopics returns POLICY_VIOLATION for it.",
        sources=(sources.PROTOCOL_ERRORS,),
        check=sequential(
            script(
                CreateTopic(),
                *rejections.TOO_MANY_PARTITIONS,
                CreatePartitions(PARTITIONS_PER_REQUEST_MAX + 2, validate_only=True),
            ),
            _ERRORS | judges("error", of=CreatePartitions),
        ),
        needs=_TOPICS,
        since="3.5.0",
    ),
    Requirement(
        id="admin/replicas-are-spread",
        level=Level.SHOULD,
        text="If the cluster chooses a topic's replicas, each partition has as many as were requested, on different "
        "brokers, and leaders and replicas are spread evenly.",
        sources=(sources.REPLICATION,),
        check=sequential(
            script(
                st.builds(
                    CreateTopic, partitions=st.sampled_from([3, 6]), replication_factor=st.sampled_from([1, 2, 3])
                ),
                Placement(),
                CreateTopic("trial-two", partitions=3, replication_factor=3),
                Placement("trial-two"),
                CreateTopic("trial-three", partitions=3, replication_factor=2),
                Placement("trial-three"),
            ),
            judges(
                "replication_factors",
                "replicas_are_distinct",
                "leaders_unevenness",
                "replicas_unevenness",
                of=Placement,
            ),
            cost=5,
        ),
        needs=_REPLICATION,
        nodes_min=3,
    ),
    Requirement(
        id="admin/replicas-have-the-size-of-the-log",
        level=Level.SHOULD,
        text="If nothing was deleted or compacted, DescribeLogDirs eventually returns the same size for each replica: "
        "that of all batches that Fetch returns.",
        sources=(sources.KIP_113, sources.PROTOCOL),
        check=sequential(
            script(
                placed(1, 2, 3),
                many(produces(batches(compression=st.sampled_from(Compression))), at_most=4),
                Fetch(),
                *(Eventually(On(broker, DescribeLogDirs())) for broker in (1, 2, 3)),
            ),
            judges("error", "replicas", "size", of=DescribeLogDirs),
            cost=5,
        ),
        needs=_REPLICATION,
        nodes_min=3,
    ),
)
