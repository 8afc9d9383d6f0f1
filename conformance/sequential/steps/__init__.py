"""Scripts: plain values that say, request by request, what is asked of a broker.

A `Script` is a tuple of steps. A step is one request in Kafka's terms; how it looks in the version that a target
speaks is `requests`' business, and how its answer is compared is `answers`'. Rules:

- A value says everything: the same script is sent to every target, prints as a program (`program`), and is what
  Hypothesis shrinks.
- A name that begins with `trial` stands for a fresh topic, or a fresh group, of that run of the script; any other name
  is sent as it stands.
- A producer is named by the order in which the script was handed its id: 0 is the first `InitProducerId`'s.
- A broker is named by its place among the target's, by ascending id, from 1 on; a number beyond them stands for itself.
- `version` is the highest to use; null means the newest that both sides know. It is lowered to what a target offers.
"""

from conformance.sequential.steps.admin import (
    AlterConfigs,
    AlterReassignment,
    CreatePartitions,
    DescribeCluster,
    DescribeConfigs,
    DescribeLogDirs,
    DescribeQuorum,
    DescribeTopicPartitions,
    ElectionType,
    ElectLeaders,
    EndpointType,
    IncrementalAlterConfigs,
    ListReassignments,
    Operation,
    ResourceType,
)
from conformance.sequential.steps.base import TOPIC, Script, Step
from conformance.sequential.steps.connection import (
    API_VERSIONS_NEWEST,
    ApiVersions,
    Broker,
    LongPoll,
    Pipelined,
    RawBytes,
    RawRequest,
)
from conformance.sequential.steps.groups import OffsetCommit, OffsetFetch
from conformance.sequential.steps.records import (
    EARLIEST,
    EARLIEST_LOCAL,
    LATEST,
    LATEST_TIERED,
    MAX_TIMESTAMP,
    SEQUENCES,
    Batch,
    DeleteRecords,
    Fetch,
    Flaw,
    InitProducerId,
    ListOffsets,
    OffsetForLeaderEpoch,
    Produce,
)
from conformance.sequential.steps.topics import CreateTopic, DeleteTopic, DeleteTopicById, Metadata, MetadataById
from conformance.sequential.steps.where import AwaitTopic, Eventually, On, OnEveryBroker, Placement, WithUnknownTags
from fixtures.clients.messages import ApiKey
from fixtures.clients.record_batch import Compression, Record

__all__ = [
    "API_VERSIONS_NEWEST",
    "EARLIEST",
    "EARLIEST_LOCAL",
    "LATEST",
    "LATEST_TIERED",
    "MAX_TIMESTAMP",
    "SEQUENCES",
    "TOPIC",
    "AlterConfigs",
    "AlterReassignment",
    "ApiKey",
    "ApiVersions",
    "AwaitTopic",
    "Batch",
    "Broker",
    "Compression",
    "CreatePartitions",
    "CreateTopic",
    "DeleteRecords",
    "DeleteTopic",
    "DeleteTopicById",
    "DescribeCluster",
    "DescribeConfigs",
    "DescribeLogDirs",
    "DescribeQuorum",
    "DescribeTopicPartitions",
    "ElectLeaders",
    "ElectionType",
    "EndpointType",
    "Eventually",
    "Fetch",
    "Flaw",
    "IncrementalAlterConfigs",
    "InitProducerId",
    "ListOffsets",
    "ListReassignments",
    "LongPoll",
    "Metadata",
    "MetadataById",
    "OffsetCommit",
    "OffsetFetch",
    "OffsetForLeaderEpoch",
    "On",
    "OnEveryBroker",
    "Operation",
    "Pipelined",
    "Placement",
    "Produce",
    "RawBytes",
    "RawRequest",
    "Record",
    "ResourceType",
    "Script",
    "Step",
    "WithUnknownTags",
]
