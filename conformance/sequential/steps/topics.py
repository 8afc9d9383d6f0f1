"""Steps on topics: create, delete and describe."""

from dataclasses import dataclass

from conformance.sequential.steps.base import TOPIC, Step


@dataclass(frozen=True, slots=True)
class CreateTopic(Step):
    """CreateTopics of one topic.

    An assignment is (partition, (broker, …)); with assignments, `partitions` and `replication_factor` must be -1. After
    the response NONE, the script waits until every broker knows the topic and each partition's leader serves.
    """

    topic: str = TOPIC
    partitions: int = 1
    configs: tuple[tuple[str, str], ...] = (("retention.ms", "-1"),)
    """Unlimited retention by default: the timestamps of a script are fixed, and old."""
    replication_factor: int = 1
    assignments: tuple[tuple[int, tuple[int, ...]], ...] = ()
    validate_only: bool = False
    version: int | None = None


@dataclass(frozen=True, slots=True)
class DeleteTopic(Step):
    """DeleteTopics of one topic by name. After the response NONE, the script waits until no broker has it."""

    topic: str = TOPIC
    version: int | None = None


@dataclass(frozen=True, slots=True)
class DeleteTopicById(Step):
    """DeleteTopics by id (KIP-516). The id is an index as in `MetadataById`. The wait is as after `DeleteTopic`."""

    topic_id: int = 0


@dataclass(frozen=True, slots=True)
class Metadata(Step):
    """Metadata without automatic creation, of the topics with these names; None requests all, an empty tuple none."""

    topics: tuple[str, ...] | None = (TOPIC,)
    version: int | None = None
    with_operations: bool = False
    """Whether the permitted operations are requested (KIP-430): of the topics, and of the cluster in v8 to v10."""


@dataclass(frozen=True, slots=True)
class MetadataById(Step):
    """Metadata by topic id (KIP-516). `topic_id` is an index into the ids that the script has seen; -1: unknown."""

    topic_id: int = 0
