"""Scripts: requests to a broker as plain values.

A `Script` is a tuple of steps. A step is one request in Kafka's terms; `requests` encodes it in a version that the
target supports, and `responses` converts the response to values that can be compared. Rules:

- A script is a complete value: the same script is sent to every target, is printed as a program (`program`), and is
  shrunk by Hypothesis.
- A name that begins with `trial` is a new topic, or a new group, in each run of the script; any other name is sent
  unchanged.
- A producer is a number: the index of its id among the ids that were assigned to the script, from 0 on. So is a member
  of a group; a text in place of the number is sent as the member's id.
- A broker is its place among the target's brokers, by ascending id, from 1 on; a higher number is sent unchanged.
- `version` is the highest version to use; None is the newest that both sides support. If a target does not offer the
  version, the next lower shared one is used, or the lowest shared one if all are higher.
"""

from conformance.sequential.steps.admin import (
    AlterClientQuotas,
    AlterConfigs,
    AlterReassignment,
    CreatePartitions,
    DescribeClientQuotas,
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
    BrokenRequest,
    Broker,
    BrokerSetting,
    KillAndRestart,
    LongPoll,
    Pipelined,
    RawBytes,
    RawRequest,
    Repeated,
)
from conformance.sequential.steps.groups import (
    PROTOCOL_TYPE,
    DeleteGroup,
    DescribeGroup,
    Heartbeat,
    JoinGroup,
    LeaveGroup,
    ListGroups,
    OffsetCommit,
    OffsetFetch,
    SyncGroup,
)
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
from conformance.sequential.steps.where import (
    AfterCleanup,
    AsClient,
    AwaitTopic,
    Cleanup,
    Eventually,
    On,
    OnEveryBroker,
    Placement,
    UseDefaults,
    WithUnknownTags,
)
from fixtures.clients.messages import ApiKey
from fixtures.clients.record_batch import Compression, Record

__all__ = [
    "API_VERSIONS_NEWEST",
    "EARLIEST",
    "EARLIEST_LOCAL",
    "LATEST",
    "LATEST_TIERED",
    "MAX_TIMESTAMP",
    "PROTOCOL_TYPE",
    "SEQUENCES",
    "TOPIC",
    "AfterCleanup",
    "AlterClientQuotas",
    "AlterConfigs",
    "AlterReassignment",
    "ApiKey",
    "ApiVersions",
    "AsClient",
    "AwaitTopic",
    "Batch",
    "BrokenRequest",
    "Broker",
    "BrokerSetting",
    "Cleanup",
    "Compression",
    "CreatePartitions",
    "CreateTopic",
    "DeleteGroup",
    "DeleteRecords",
    "DeleteTopic",
    "DeleteTopicById",
    "DescribeClientQuotas",
    "DescribeCluster",
    "DescribeConfigs",
    "DescribeGroup",
    "DescribeLogDirs",
    "DescribeQuorum",
    "DescribeTopicPartitions",
    "ElectLeaders",
    "ElectionType",
    "EndpointType",
    "Eventually",
    "Fetch",
    "Flaw",
    "Heartbeat",
    "IncrementalAlterConfigs",
    "InitProducerId",
    "JoinGroup",
    "KillAndRestart",
    "LeaveGroup",
    "ListGroups",
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
    "Repeated",
    "ResourceType",
    "Script",
    "Step",
    "SyncGroup",
    "UseDefaults",
    "WithUnknownTags",
]
