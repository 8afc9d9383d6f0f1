"""Model of the errors for a topic or partition that does not exist, requested by name or by id (KIP-516)."""

from collections.abc import Mapping
from typing import Any, Final

from conformance.sequential.expectation import OneOf
from conformance.sequential.model.cluster import ModelCluster
from conformance.sequential.steps import Fetch, OffsetCommit, OffsetFetch, Produce, Step

_NO_PARTITION: Final = "UNKNOWN_TOPIC_OR_PARTITION"
_NO_ID: Final = "UNKNOWN_TOPIC_ID"
_EITHER: Final = OneOf((_NO_PARTITION, _NO_ID), "requested by name, or by id in newer versions (KIP-516)")
BY_ID_SINCE: Final[Mapping[type[Step], int]] = {Produce: 13, Fetch: 13, OffsetCommit: 10, OffsetFetch: 10}
"""First version in which these requests name topics by id. No other step that `unknown_partition` receives does so."""


def unknown_partition(cluster: ModelCluster, step: Any) -> str | OneOf:
    """Return the error of a step on a partition that does not exist."""
    since = BY_ID_SINCE.get(type(step))
    topic = cluster.topics.get(step.topic)
    topic_id = getattr(step, "topic_id", None)
    is_unknown_partition = topic is not None and topic_id in {None, topic.id}
    if since is None or is_unknown_partition:
        return _NO_PARTITION
    if topic_id is not None:
        return _NO_ID
    return _EITHER if step.version is None or step.version >= since else _NO_PARTITION
