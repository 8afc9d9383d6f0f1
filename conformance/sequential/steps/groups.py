"""Steps on group offsets."""

from dataclasses import dataclass

from conformance.sequential.steps.base import TOPIC, Step


@dataclass(frozen=True, slots=True)
class OffsetCommit(Step):
    """OffsetCommit of one partition, by default without member and generation."""

    offset: int
    group: str = TOPIC
    topic: str = TOPIC
    partition: int = 0
    leader_epoch: int = -1
    metadata: str = ""
    generation: int = -1
    member: str = ""
    version: int | None = None


@dataclass(frozen=True, slots=True)
class OffsetFetch(Step):
    """OffsetFetch of one partition; topic None fetches all offsets of the group (topics by name, up to version 9)."""

    group: str = TOPIC
    topic: str | None = TOPIC
    partition: int = 0
    version: int | None = None
