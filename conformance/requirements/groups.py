"""Requirements of group offsets, for a group without members."""

from typing import Final

from hypothesis import strategies as st

from conformance.requirements import rejections, sources
from conformance.requirements.requirement import Level, Requirement
from conformance.sequential.check import judges, sequential
from conformance.sequential.steps import (
    ApiKey,
    BrokerSetting,
    CreateTopic,
    DeleteTopic,
    Eventually,
    OffsetCommit,
    OffsetDelete,
    OffsetFetch,
    OnEveryBroker,
    RawRequest,
)
from conformance.sequential.strategies import every_version, many, script
from fixtures.targets.target import Capability

_TOPICS: Final = frozenset({Capability.TOPIC_ADMIN})
_JUDGED: Final = judges("error", of=OffsetCommit) | judges(
    "error", "committed_offset", "committed_leader_epoch", "metadata", of=OffsetFetch
)
_GROUP_NAMES: Final = ("trial", "trial-other")
_GROUPS: Final = st.sampled_from(_GROUP_NAMES)
_OFFSETS: Final = st.integers(0, 1000)
_FETCHES: Final = st.builds(OffsetFetch, group=_GROUPS, partition=st.integers(0, 1))
_COMMITS_FOR_TWO_TOPICS: Final = (
    CreateTopic(partitions=2),
    CreateTopic("trial-two"),
    many(
        st.builds(OffsetCommit, _OFFSETS, group=_GROUPS, partition=st.integers(0, 1))
        | st.builds(OffsetCommit, _OFFSETS, group=_GROUPS, topic=st.just("trial-two")),
    ),
    OffsetCommit(7, partition=1),
)
_STRING_LENGTH_MAX: Final = 2**15 - 1
"""Maximum length of a string in Kafka's protocol."""
_METADATA_LENGTH_MAX: Final = 4096
"""Kafka's default of `offset.metadata.max.bytes`."""


def _commit_with_long_metadata(error: str, partition: int, plus: int = 0) -> RawRequest:
    """Return a commit whose metadata has the length that the broker permits, plus `plus`."""
    length = BrokerSetting(
        "offset.metadata.max.bytes",
        _METADATA_LENGTH_MAX + plus,
        plus,
        at_most=_STRING_LENGTH_MAX,
        stored_within="message.max.bytes",
    )
    committed = {"partition_index": partition, "committed_offset": 8, "committed_metadata": length}
    fields = {
        "group_id": "trial",
        "generation_id": -1,
        "generation_id_or_member_epoch": -1,
        "member_id": "",
        "topics": ({"name": "trial", "topic_id": 0, "partitions": (committed,)},),
    }
    return RawRequest(ApiKey.OFFSET_COMMIT, fields, (error,))


REQUIREMENTS: Final = (
    Requirement(
        id="groups/commit-is-read-back",
        level=Level.MUST,
        text="OffsetFetch returns the offset, leader epoch and metadata of the group's last commit for the partition, "
        "regardless of earlier commits and of the commits of other groups. If there is no such commit, or if the "
        "topic does not exist, it returns offset -1 and no error. Null metadata is returned as an empty text.",
        sources=(sources.KIP_211, sources.KIP_320, sources.CONSUMER_POSITION),
        check=sequential(
            script(
                CreateTopic(partitions=2),
                many(
                    st.builds(
                        OffsetCommit,
                        _OFFSETS,
                        group=_GROUPS,
                        partition=st.integers(0, 1),
                        leader_epoch=st.sampled_from([-1, 0]),
                        metadata=st.sampled_from(["", "x", "größe"]),
                    )
                    | _FETCHES,
                ),
                OffsetCommit(7, metadata="seven"),
                OffsetFetch(),
                OffsetFetch(group="trial-third"),
                OffsetCommit(2**40 + 7, metadata="m" * 90),
                OffsetFetch(),
                OffsetCommit(8, metadata=None),
                OffsetFetch(),
                OffsetFetch(topic="trial-none", version=9),
                OffsetFetch(topic="trial-none", version=5),
            ),
            _JUDGED,
        ),
        needs=_TOPICS,
    ),
    Requirement(
        id="groups/null-topics-fetch-all-offsets",
        level=Level.MUST,
        text="Since OffsetFetch v2 a null list of topics requests every offset that the group has committed. The "
        "response has each partition once, and is empty for a group that has committed none.",
        sources=(sources.PROTOCOL, sources.KIP_709),
        check=sequential(
            script(
                *_COMMITS_FOR_TWO_TOPICS,
                *(
                    OffsetFetch(group, topic=None, version=version)
                    for version in (2, 7, 8, 9)
                    for group in ("trial", "trial-other", "trial-third")
                ),
            ),
            judges("error", of=OffsetCommit) | judges("error", "committed", of=OffsetFetch),
        ),
        needs=_TOPICS,
    ),
    Requirement(
        id="groups/offsets-of-deleted-topic-are-removed",
        level=Level.SHOULD,
        text="When a topic is deleted, its coordinators remove the offsets that groups have committed for it; offsets "
        "of other topics stay. A topic that is created again with this name has no committed offset.",
        sources=(sources.KIP_211, sources.PROTOCOL),
        check=sequential(
            script(
                *_COMMITS_FOR_TWO_TOPICS,
                *(OffsetCommit(8, group, topic="trial-two") for group in _GROUP_NAMES),
                DeleteTopic(),
                CreateTopic(partitions=2),
                *(Eventually(OffsetFetch(group, partition=index)) for group in _GROUP_NAMES for index in range(2)),
                *(OffsetFetch(group, topic="trial-two") for group in _GROUP_NAMES),
            ),
            _JUDGED,
        ),
        needs=_TOPICS,
    ),
    Requirement(
        id="groups/deleted-offsets-are-removed",
        level=Level.MUST,
        text="OffsetDelete removes the committed offset of the partition, if there is one, and no other. It returns "
        "UNKNOWN_TOPIC_OR_PARTITION for a topic or partition that does not exist, and GROUP_ID_NOT_FOUND for a group "
        "that does not exist.",
        sources=(sources.KIP_496, sources.PROTOCOL_ERRORS),
        check=sequential(
            script(
                *_COMMITS_FOR_TWO_TOPICS,
                OffsetCommit(8, topic="trial-two"),
                many(st.just(OffsetDelete()) | st.builds(OffsetCommit, _OFFSETS) | st.just(OffsetFetch()), at_most=4),
                OffsetDelete(topic="trial-none"),
                OffsetDelete(partition=1000),
                OffsetDelete("trial-third"),
                OffsetDelete(),
                OffsetFetch(),
                OffsetFetch(topic=None, version=7),
                OffsetDelete(),
            ),
            _JUDGED | judges("error", of=OffsetDelete) | judges("committed", of=OffsetFetch),
        ),
        needs=_TOPICS,
    ),
    Requirement(
        id="groups/oversize-metadata-is-rejected",
        level=Level.MUST,
        text="A commit with more metadata than offset.metadata.max.bytes (4096 unless DescribeConfigs returns another "
        "value) is rejected with OFFSET_METADATA_TOO_LARGE, and the previous offset stays. A commit with exactly that "
        "much metadata is accepted.",
        sources=(sources.OFFSET_METADATA_MAX, sources.KIP_133, sources.PROTOCOL_ERRORS),
        check=sequential(
            script(
                CreateTopic(partitions=2),
                many(_OFFSETS.map(OffsetCommit), at_most=4),  # without metadata, so that any limit permits it
                _commit_with_long_metadata("NONE", partition=1),
                _commit_with_long_metadata("OFFSET_METADATA_TOO_LARGE", partition=0, plus=1),
                OffsetFetch(),
            ),
            _JUDGED | judges("errors", of=RawRequest),
        ),
        needs=_TOPICS,
    ),
    Requirement(
        id="groups/commit-from-unknown-member-is-rejected",
        level=Level.MUST,
        text="In a group without members, a commit without a generation is accepted, even if it has a member id. A "
        "commit with a generation and a member id is rejected, and nothing is stored: with UNKNOWN_MEMBER_ID if the "
        "group exists, otherwise with ILLEGAL_GENERATION, or since v9 with GROUP_ID_NOT_FOUND.",
        sources=(sources.PROTOCOL_ERRORS, sources.KIP_211),
        check=sequential(
            script(
                CreateTopic(),
                OffsetCommit(1),
                many(
                    st.builds(OffsetCommit, _OFFSETS)
                    | st.builds(OffsetCommit, _OFFSETS, generation=st.integers(-1, 3), member=st.just("unknown")),
                    at_most=4,
                ),
                *every_version(OffsetCommit(9, generation=1, member="unknown")),
                OffsetFetch(),
                *every_version(OffsetCommit(10, member="unknown")),
                OffsetFetch(),
                *every_version(OffsetCommit(11, group="trial-none", generation=1, member="unknown")),
                OffsetFetch(group="trial-none"),
            ),
            _JUDGED,
        ),
        needs=_TOPICS,
    ),
    Requirement(
        id="groups/commit-for-unknown-topic-is-rejected",
        level=Level.MUST,
        text="A commit for a topic or partition that does not exist is rejected with UNKNOWN_TOPIC_OR_PARTITION "
        "(UNKNOWN_TOPIC_ID in the versions that name topics by id).",
        sources=(sources.PROTOCOL_ERRORS, sources.KIP_516),
        check=sequential(
            script(
                CreateTopic(),
                many(
                    st.builds(
                        OffsetCommit,
                        _OFFSETS,
                        topic=st.sampled_from(["trial", "trial-none"]),
                        partition=st.sampled_from([0, 1, 1000]),
                        version=st.sampled_from([None, 9, 6]),
                    )
                ),
                OffsetCommit(3),
                OffsetCommit(1, topic="trial-none"),
                OffsetFetch(),
            ),
            _JUDGED,
        ),
        needs=_TOPICS,
    ),
    Requirement(
        id="groups/unknown-coordinator-type-is-rejected",
        level=Level.MUST,
        text="FindCoordinator with an unknown coordinator type returns INVALID_REQUEST.",
        sources=(sources.PROTOCOL_ERRORS,),
        check=sequential(script(*rejections.UNKNOWN_COORDINATORS), judges("errors", of=RawRequest)),
    ),
    Requirement(
        id="groups/only-the-coordinator-serves",
        level=Level.MUST,
        text="Only a group's coordinator accepts its OffsetCommit and OffsetFetch requests; every other broker returns "
        "NOT_COORDINATOR, in each version, and stores nothing.",
        sources=(sources.PROTOCOL_ERRORS, sources.KIP_211),
        check=sequential(
            script(
                CreateTopic(),
                OnEveryBroker(OffsetCommit(5)),
                OffsetFetch(),
                many(st.builds(OffsetCommit, _OFFSETS, group=_GROUPS).map(OnEveryBroker), at_most=3),
                *map(OnEveryBroker, every_version(OffsetFetch())),
                OnEveryBroker(OffsetFetch(topic=None, version=2)),
                OffsetFetch(),
            ),
            judges("served_by", "other_errors", of=OnEveryBroker) | judges("error", "committed_offset", of=OffsetFetch),
            cost=5,
        ),
        needs=_TOPICS | {Capability.REPLICATION},
        nodes_min=3,
    ),
)
