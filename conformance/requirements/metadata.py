"""Metadata: which topics there are, under which ids, and who leads their partitions."""

from typing import Final

from hypothesis import strategies as st

from conformance.requirements import sources
from conformance.requirements.requirement import Level, Requirement
from conformance.sequential.check import judges, sequential
from conformance.sequential.steps import CreateTopic, DeleteTopic, Metadata, MetadataById
from conformance.sequential.strategies import many, script
from fixtures.targets.target import Capability

_TOPICS: Final = frozenset({Capability.TOPIC_ADMIN})
_NAMES: Final = ("trial", "trial-two", "trial-none", "a/b", "two words", ".", "..", "x" * 250)

REQUIREMENTS: Final = (
    Requirement(
        id="metadata/topics-are-described",
        level=Level.MUST,
        text="Metadata describes each topic that is asked for: NONE with its partitions, each with a leader, "
        "UNKNOWN_TOPIC_OR_PARTITION where there is none, INVALID_TOPIC_EXCEPTION for an illegal name. Asking creates "
        "nothing where automatic creation is declined.",
        sources=(sources.KIP_4_METADATA, sources.PROTOCOL_ERRORS),
        check=sequential(
            script(
                st.integers(1, 3).map(lambda count: CreateTopic(partitions=count)),
                many(st.lists(st.sampled_from(_NAMES), min_size=1, max_size=4, unique=True).map(tuple).map(Metadata)),
                Metadata(("trial", "trial-none", "a/b")),
            ),
            judges("topics", "leaders", "brokers", of=Metadata),
        ),
        needs=_TOPICS,
    ),
    Requirement(
        id="metadata/null-asks-for-all-and-empty-for-none",
        level=Level.MUST,
        text="Since Metadata v1 a null list of topics asks for all topics and an empty one for none; both name the "
        "brokers.",
        sources=(sources.KIP_4_METADATA,),
        check=sequential(
            script(
                many(st.sampled_from(["trial", "trial-two", "trial-three"]).map(CreateTopic), at_most=3),
                many(st.builds(Metadata, st.sampled_from([None, ()]), st.sampled_from([None, 9, 7, 4, 1]))),
                Metadata(None),
                Metadata(()),
            ),
            judges("topics", "brokers", "strangers", of=Metadata),
        ),
        needs=_TOPICS,
    ),
    Requirement(
        id="metadata/topic-id-names-one-creation",
        level=Level.MUST,
        text="A topic keeps its id while it exists and is found by it; created again it has another, and the old id "
        "is UNKNOWN_TOPIC_ID, as is one that nobody ever had.",
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
            ),
            judges("topic_ids", of=Metadata) | judges("error", "name", of=MetadataById),
        ),
        needs=_TOPICS,
        since="3.1.0",
    ),
)
