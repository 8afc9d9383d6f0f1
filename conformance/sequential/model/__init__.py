"""Model of Kafka's behaviour: the responses that Kafka would return to a script.

The model is pure and has one cluster without faults. It describes what a broker promises its clients, not the
implementation. Each module has the rules of some APIs; `expected` applies them step by step.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from conformance.sequential.expectation import Each, Expectation
from conformance.sequential.model import (
    admin,
    cleanup,
    configs,
    connection,
    elsewhere,
    fetch_sessions,
    groups,
    members,
    produce,
    quotas,
    read,
    scram,
    topics,
)
from conformance.sequential.model.cluster import ModelCluster
from conformance.sequential.steps import (
    AfterCleanup,
    AlterClientQuotas,
    AlterConfigs,
    AlterReassignment,
    AlterScramCredential,
    ApiVersions,
    AsClient,
    AwaitSessionTimeout,
    AwaitTopic,
    BrokenRequest,
    CreatePartitions,
    CreateTopic,
    DeleteGroup,
    DeleteRecords,
    DeleteTopic,
    DeleteTopicById,
    DescribeClientQuotas,
    DescribeCluster,
    DescribeConfigs,
    DescribeGroup,
    DescribeLogDirs,
    DescribeProducers,
    DescribeQuorum,
    DescribeScramCredentials,
    DescribeTopicPartitions,
    ElectLeaders,
    Eventually,
    Fetch,
    FindCoordinators,
    Heartbeat,
    IncrementalAlterConfigs,
    InitProducerId,
    JoinGroup,
    Kill,
    LeaveGroup,
    ListConfigResources,
    ListedGroups,
    ListGroups,
    ListOffsets,
    ListReassignments,
    ListTransactions,
    LongPoll,
    Merged,
    Metadata,
    MetadataById,
    OffsetCommit,
    OffsetDelete,
    OffsetFetch,
    OffsetForLeaderEpoch,
    On,
    OnEveryBroker,
    Pipelined,
    Placement,
    Produce,
    RawBytes,
    RawRequest,
    Repeated,
    Restart,
    Script,
    SessionFetch,
    Step,
    SyncGroup,
    UseDefaults,
    UseSettings,
    WithUnknownTags,
)

_RULES: Final[Mapping[type[Step], Callable[[ModelCluster, Any], Expectation]]] = {
    CreateTopic: topics.create_topic,
    DeleteTopic: topics.delete_topic,
    DeleteTopicById: topics.delete_topic_by_id,
    Metadata: topics.metadata,
    MetadataById: topics.metadata_by_id,
    Produce: produce.produce,
    InitProducerId: produce.init_producer_id,
    Fetch: read.fetch,
    SessionFetch: fetch_sessions.fetch,
    ListOffsets: read.list_offsets,
    OffsetForLeaderEpoch: read.offset_for_leader_epoch,
    DeleteRecords: read.delete_records,
    DescribeProducers: produce.describe_producers,
    ListTransactions: produce.list_transactions,
    OffsetCommit: groups.offset_commit,
    OffsetFetch: groups.offset_fetch,
    OffsetDelete: groups.offset_delete,
    JoinGroup: members.join_group,
    SyncGroup: members.sync_group,
    Heartbeat: members.heartbeat,
    LeaveGroup: members.leave_group,
    AwaitSessionTimeout: members.await_session_timeout,
    DescribeGroup: groups.describe_group,
    ListGroups: groups.list_groups,
    ListedGroups: groups.listed_groups,
    FindCoordinators: groups.find_coordinators,
    DeleteGroup: groups.delete_group,
    ApiVersions: connection.api_versions,
    RawBytes: connection.raw_bytes,
    BrokenRequest: connection.broken_request,
    Kill: connection.kill,
    Restart: admin.restart,
    RawRequest: connection.raw_request,
    Repeated: connection.repeated,
    CreatePartitions: admin.create_partitions,
    AlterReassignment: admin.alter_reassignment,
    ListReassignments: admin.list_reassignments,
    ElectLeaders: admin.elect_leaders,
    AwaitTopic: admin.await_topic,
    Placement: admin.placement,
    UseDefaults: admin.use_defaults,
    UseSettings: admin.use_settings,
    DescribeTopicPartitions: admin.describe_topic_partitions,
    DescribeQuorum: admin.describe_quorum,
    DescribeCluster: admin.describe_cluster,
    IncrementalAlterConfigs: configs.incremental_alter_configs,
    AlterConfigs: configs.alter_configs,
    AlterClientQuotas: quotas.alter_client_quotas,
    DescribeClientQuotas: quotas.describe_client_quotas,
    AlterScramCredential: scram.alter_scram_credential,
    DescribeScramCredentials: scram.describe_scram_credentials,
    DescribeConfigs: configs.describe_configs,
    ListConfigResources: configs.list_config_resources,
}


def expected(script: Script) -> tuple[Expectation, ...]:
    """Return what is expected of the response to each step."""
    cluster = ModelCluster()
    return tuple(_expected(cluster, step) for step in script.steps)


def _expected(cluster: ModelCluster, step: Step) -> Expectation:
    match step:
        case Pipelined():
            return {"in_order": True, "responses": Each(tuple(_expected(cluster, inner) for inner in step.steps))}
        case Merged():
            return {"responses": Each(tuple(_expected(cluster, inner) for inner in step.steps))}
        case LongPoll():
            for produce_step in step.produces:
                _expected(cluster, produce_step)
            return _expected(cluster, step.fetch)
        case AsClient():
            return quotas.as_client(cluster, step.client, _expected(cluster, step.step))
        case AfterCleanup():
            cleanup.clean_up(cluster, step.by)
            return _expected(cluster, step.step)
        case Eventually() | WithUnknownTags():
            return _expected(cluster, step.step)
        case OnEveryBroker():
            return elsewhere.served_by_one(_expected(cluster, step.step))
        case On(step=DescribeLogDirs() as inner):
            return admin.describe_log_dirs(cluster, inner, step.broker)
        case On():
            rejected = elsewhere.rejected_by(cluster, step.broker, step.step)
            return _expected(cluster, step.step) if rejected is None else rejected
    return _RULES[type(step)](cluster, step)
