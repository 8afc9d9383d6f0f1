"""Kafka's behaviour as a model: a script in, the answers that Kafka would give out.

The model is pure and knows one cluster without faults: what a broker promises its clients, with none of how it keeps
the promise. Each module has the rules of some APIs; `expected` applies them step by step.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from conformance.sequential.expectation import Each, Expectation
from conformance.sequential.model import connection, groups, produce, read, topics
from conformance.sequential.model.cluster import Cluster
from conformance.sequential.steps import (
    ApiVersions,
    CreateTopic,
    DeleteRecords,
    DeleteTopic,
    Fetch,
    InitProducerId,
    ListOffsets,
    Metadata,
    MetadataById,
    OffsetCommit,
    OffsetFetch,
    OffsetForLeaderEpoch,
    Pipelined,
    Produce,
    RawBytes,
    Script,
    Step,
)

_RULES: Final[Mapping[type[Step], Callable[[Cluster, Any], Expectation]]] = {
    CreateTopic: topics.create_topic,
    DeleteTopic: topics.delete_topic,
    Metadata: topics.metadata,
    MetadataById: topics.metadata_by_id,
    Produce: produce.produce,
    InitProducerId: produce.init_producer_id,
    Fetch: read.fetch,
    ListOffsets: read.list_offsets,
    OffsetForLeaderEpoch: read.offset_for_leader_epoch,
    DeleteRecords: read.delete_records,
    OffsetCommit: groups.offset_commit,
    OffsetFetch: groups.offset_fetch,
    ApiVersions: connection.api_versions,
    RawBytes: connection.raw_bytes,
}


def expected(script: Script) -> tuple[Expectation, ...]:
    """What Kafka answers to each step."""
    cluster = Cluster()
    return tuple(_expected(cluster, step) for step in script.steps)


def _expected(cluster: Cluster, step: Step) -> Expectation:
    if isinstance(step, Pipelined):
        return {"in_order": True, "answers": Each(tuple(_expected(cluster, inner) for inner in step.steps))}
    return _RULES[type(step)](cluster, step)
