"""Post-run checks with requests to the controllers' listener: of brokers, mostly invalid, and of administrators.

Sources: `ClusterControlManager`, `ReplicationControlManager`, `ConfigurationControlManager` of Kafka 4.3.
"""

from dataclasses import replace
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from chaos.simulation.post_run_checks.post_run_check import (
    ELSEWHERE,
    NONE,
    NOWHERE,
    UNKNOWN_ID,
    UNKNOWN_NODE,
    ClusterState,
    PostRunCheck,
    Receiver,
    always,
    anything,
    schema_for_nodes,
)
from chaos.simulation.post_run_checks.quorum_checks import fetch

_TIMEOUT: Final = timedelta(seconds=2)
_CREATE_TOPICS, _DELETE_TOPICS, _REASSIGNMENT = 19, 20, 45
_INCREMENTAL_ALTER_CONFIGS, _DESCRIBE_QUORUM, _ALTER_PARTITION, _ENVELOPE, _DESCRIBE_CLUSTER = 44, 55, 56, 58, 60
_REGISTRATION, _HEARTBEAT, _UNREGISTRATION, _ALLOCATION, _ASSIGNMENT = 62, 63, 64, 67, 73
_RESERVED: Final = UUID(int=7)
"""A reserved id, which no directory may have."""
_BROKER: Final = 4
_PROPERTY, _VALUE = "message.max.bytes", "1048588"


# --- brokers


def _from_unregistered_brokers(state: ClusterState) -> Any:
    """Return requests with an unregistered broker id, an old broker epoch, or no broker epoch."""
    known = state.image.brokers[state.broker]
    heartbeat, block, assign = (
        schema_for_nodes(_HEARTBEAT),
        schema_for_nodes(_ALLOCATION),
        schema_for_nodes(_ASSIGNMENT),
    )
    alter, unregister = schema_for_nodes(_ALTER_PARTITION), schema_for_nodes(_UNREGISTRATION)
    senders = (
        {"broker_id": UNKNOWN_NODE, "broker_epoch": known.broker_epoch},
        {"broker_id": state.broker, "broker_epoch": known.broker_epoch - 1},
        {"broker_id": state.broker, "broker_epoch": -1},
    )
    rest = {"current_metadata_offset": 2**40, "want_fence": True, "want_shut_down": False}
    return [
        request
        for sender in senders
        for request in (
            heartbeat.BrokerHeartbeatRequest(**sender, **rest),
            block.AllocateProducerIdsRequest(**sender),
            assign.AssignReplicasToDirsRequest(**sender, directories=()),
            alter.AlterPartitionRequest(**sender, topics=()),
        )
    ] + [unregister.UnregisterBrokerRequest(broker_id=UNKNOWN_NODE)]


def _registration(state: ClusterState, **given: Any) -> Any:
    """Return a valid registration of a new broker, with other values for some fields.

    :param given: other values for fields. `levels` has minimum and maximum level by feature. A feature is omitted if
        its maximum is negative.
    """
    schema, known = schema_for_nodes(_REGISTRATION), state.image.brokers[state.broker]
    levels = {
        "metadata.version": (1, 99),
        **dict.fromkeys(state.image.features, (0, 99)),
        **given.pop("levels", {}),
    }
    features = tuple(
        schema.Feature(name=name, min_supported_version=least, max_supported_version=most)
        for name, (least, most) in sorted(levels.items())
        if most >= 0
    )
    fields = {
        "broker_id": UNKNOWN_NODE,
        "cluster_id": state.cluster_id,
        "incarnation_id": UNKNOWN_ID,
        "listeners": (),
        "features": features,
        "rack": known.rack,
        "log_dirs": (UNKNOWN_ID,),
    }
    return schema.BrokerRegistrationRequest(**fields | given)


def _registrations(state: ClusterState) -> Any:
    name = "metadata.version"
    level, others = state.image.features[name], state.image.brokers[state.broker].log_dirs
    return [
        _registration(state, cluster_id=ELSEWHERE),
        _registration(state, broker_id=state.broker),
        _registration(state, is_migrating_zk_broker=True),
        _registration(state, log_dirs=()),
        _registration(state, log_dirs=(_RESERVED, UNKNOWN_ID)),
        _registration(state, log_dirs=(UNKNOWN_ID, UNKNOWN_ID)),
        _registration(state, log_dirs=others),
        _registration(state, levels={name: (level + 1, level + 1)}),
        _registration(state, levels={name: (0, level - 1)}),
        _registration(state, levels={"some.feature": (1, 2)}),
        _registration(state, levels={name: (0, -1)}),
    ]


_REGISTRATION_ERRORS: Final = [
    *("INCONSISTENT_CLUSTER_ID", "DUPLICATE_BROKER_REGISTRATION", "BROKER_ID_NOT_REGISTERED"),
    *("INVALID_REGISTRATION",) * 4,
    *("UNSUPPORTED_VERSION",) * 3,
    "INVALID_REGISTRATION",
]


# --- in-sync replicas


def _proposal(state: ClusterState, *, topic_id: UUID | None = None, leader: int | None = None, **given: Any) -> Any:
    """Return an AlterPartition request of the leader that proposes the current ISR, with other values for some fields.

    :param given: other values for fields of the partition. `members` is the proposed ISR: broker ids and epochs.
    """
    schema, partition = schema_for_nodes(_ALTER_PARTITION), state.partition
    leader_id = partition.leader if leader is None else leader
    members = given.pop("members", [(member, -1) for member in partition.isr])
    proposed = schema.PartitionData(
        partition_index=0,
        leader_epoch=partition.leader_epoch,
        new_isr_with_epochs=tuple(schema.BrokerState(broker_id=node, broker_epoch=epoch) for node, epoch in members),
        partition_epoch=partition.partition_epoch,
    )
    topic = schema.TopicData(
        topic_id=state.image.topics[state.topic].topic_id if topic_id is None else topic_id,
        partitions=(replace(proposed, **given),),
    )
    epoch = state.image.brokers[leader_id].broker_epoch
    return schema.AlterPartitionRequest(broker_id=leader_id, broker_epoch=epoch, topics=(topic,))


def _proposals(state: ClusterState) -> Any:
    partition = state.partition
    leader, isr = partition.leader, [(member, -1) for member in partition.isr]
    return [
        _proposal(state, topic_id=UNKNOWN_ID),
        _proposal(state, partition_index=99),
        _proposal(state, leader_epoch=partition.leader_epoch + 1),
        _proposal(state, partition_epoch=partition.partition_epoch + 1),
        _proposal(state, leader_epoch=partition.leader_epoch - 1),
        _proposal(state, partition_epoch=partition.partition_epoch - 1),
        _proposal(state, members=[]),
        _proposal(state, members=[*isr, isr[0]]),
        _proposal(state, members=[*isr, (UNKNOWN_NODE, -1)]),
        _proposal(state, leader_recovery_state=1),
        _proposal(state, members=[(leader, 2**40)]),
        *(
            [
                _proposal(state, members=[member for member in isr if member[0] != leader]),
                _proposal(state, leader=next(node for node in state.brokers if node != leader)),
            ]
            if len(isr) > 1
            else []
        ),
        _proposal(state),
    ]


def _proposal_errors(state: ClusterState) -> list[str]:
    errors = [
        *("UNKNOWN_TOPIC_ID", "UNKNOWN_TOPIC_OR_PARTITION", "NOT_CONTROLLER", "NOT_CONTROLLER"),
        *("FENCED_LEADER_EPOCH", "INVALID_UPDATE_VERSION", *("INVALID_REQUEST",) * 4, "INELIGIBLE_REPLICA"),
        *(("INVALID_REQUEST",) * 2 if len(state.partition.isr) > 1 else ()),
    ]
    return [each for error in (*errors, NONE) for each in (NONE, error)]


def _assignments(state: ClusterState) -> Any:
    """Return assignments of replicas to directories. The last assignment is to an unknown directory.

    The broker then assigns its replica to its own directory again. If only one replica is in sync, the last assignment
    is omitted: the leader would lose the leadership, as in Kafka, and there is no successor.
    """
    schema, broker = schema_for_nodes(_ASSIGNMENT), state.image.brokers[state.broker]

    def assignment(topic_id: UUID, index: int, directory_id: UUID | None = broker.log_dirs[0]) -> Any:
        partition = schema.PartitionData(partition_index=index)
        topic = schema.TopicData(topic_id=topic_id, partitions=(partition,))
        directory = schema.DirectoryData(id_=directory_id, topics=(topic,))
        sender = {"broker_id": broker.broker_id, "broker_epoch": broker.broker_epoch}
        return schema.AssignReplicasToDirsRequest(**sender, directories=(directory,))

    known = state.image.topics[state.topic].topic_id
    wrong = [assignment(known, 0, UNKNOWN_ID)] if _has_several_in_sync(state) else []
    return [assignment(UNKNOWN_ID, 0), assignment(known, 99), assignment(known, 0), *wrong]


def _assignment_errors(state: ClusterState) -> list[str]:
    last = NONE if state.broker in state.partition.replicas else "NOT_LEADER_OR_FOLLOWER"
    known = [NONE, last] * (1 + _has_several_in_sync(state))
    return [NONE, "UNKNOWN_TOPIC_ID", NONE, "UNKNOWN_TOPIC_OR_PARTITION", *known]


def _has_several_in_sync(state: ClusterState) -> bool:
    return len(state.partition.isr) > 1


def _placements(state: ClusterState) -> Any:
    """Return requests that create a topic while a fenced broker is registered, and again while two are.

    With one fenced broker, a partition is also reassigned to it. The reassignment never completes, because that broker
    does not fetch. The two fenced brokers are in different racks.
    """
    create, delete = schema_for_nodes(_CREATE_TOPICS), schema_for_nodes(_DELETE_TOPICS)
    leave = schema_for_nodes(_UNREGISTRATION)
    topic = create.CreatableTopic(
        name=NOWHERE, num_partitions=4, replication_factor=min(2, len(state.brokers)), assignments=(), configs=()
    )
    gone = delete.DeleteTopicState(name=NOWHERE, topic_id=None)
    made = [
        create.CreateTopicsRequest(topics=(topic,), timeout=_TIMEOUT, validate_only=False),
        delete.DeleteTopicsRequest(topics=(gone,), timeout=_TIMEOUT),
    ]
    another = {"broker_id": UNKNOWN_NODE + 1, "incarnation_id": _RESERVED, "log_dirs": (UUID(int=UNKNOWN_ID.int + 1),)}
    return [
        _registration(state),
        *made,
        *_replaced_reassignments(state),
        leave.UnregisterBrokerRequest(broker_id=UNKNOWN_NODE),
        _registration(state, rack=ELSEWHERE),
        _registration(state, rack=NOWHERE, **another),
        *made,
        *(leave.UnregisterBrokerRequest(broker_id=broker_id) for broker_id in (UNKNOWN_NODE, UNKNOWN_NODE + 1)),
    ]


def _replaced_reassignments(state: ClusterState) -> list[Any]:
    """Return reassignments of a new partition to a broker that never fetches. Each replaces the previous one."""
    create, delete, schema = (schema_for_nodes(key) for key in (_CREATE_TOPICS, _DELETE_TOPICS, _REASSIGNMENT))
    replicas = tuple(state.brokers[:2])
    placed = create.CreatableReplicaAssignment(partition_index=0, broker_ids=replicas)
    topic = create.CreatableTopic(
        name=NOWHERE, num_partitions=-1, replication_factor=-1, assignments=(placed,), configs=()
    )
    moved, added = (*replicas[:-1], UNKNOWN_NODE), (*replicas, UNKNOWN_NODE)

    def reassigned(target: tuple[int, ...] | None, *, may_change_factor: bool = True) -> Any:
        partition = schema.ReassignablePartition(partition_index=0, replicas=target)
        topics = (schema.ReassignableTopic(name=NOWHERE, partitions=(partition,)),)
        return schema.AlterPartitionReassignmentsRequest(
            timeout=_TIMEOUT, allow_replication_factor_change=may_change_factor, topics=topics
        )

    return [
        create.CreateTopicsRequest(topics=(topic,), timeout=_TIMEOUT, validate_only=False),
        reassigned(moved),
        reassigned(moved, may_change_factor=False),
        reassigned(added, may_change_factor=False),
        reassigned(added),
        reassigned(None),
        delete.DeleteTopicsRequest(topics=(delete.DeleteTopicState(name=NOWHERE, topic_id=None),), timeout=_TIMEOUT),
    ]


# --- administrative requests to a controller (KIP-919)


def _configurations(state: ClusterState) -> Any:
    schema = schema_for_nodes(_INCREMENTAL_ALTER_CONFIGS)
    config = (schema.AlterableConfig(name=_PROPERTY, config_operation=0, value=_VALUE),)
    names = ("", str(state.broker), str(UNKNOWN_NODE), "0", "-1", "abc")
    return [
        schema.IncrementalAlterConfigsRequest(
            resources=(schema.AlterConfigsResource(resource_type=kind, resource_name=name, configs=config),),
            validate_only=True,
        )
        for kind, name in (*((_BROKER, name) for name in names), (99, "x"))
    ]


def _configuration_errors(state: ClusterState) -> list[str]:
    return [NONE, NONE, *("BROKER_ID_NOT_REGISTERED",) * 2, *("INVALID_REQUEST",) * 2, "UNSUPPORTED_VERSION"]


def _descriptions(state: ClusterState) -> Any:
    """Return DescribeCluster for each endpoint type, and DescribeQuorum also for partitions that have no quorum."""
    cluster, quorum = schema_for_nodes(_DESCRIBE_CLUSTER), schema_for_nodes(_DESCRIBE_QUORUM)
    partitions = tuple(quorum.PartitionData(partition_index=index) for index in (0, 1))
    return [
        *(
            cluster.DescribeClusterRequest(
                include_cluster_authorized_operations=False, endpoint_type=endpoint_type, include_fenced_brokers=False
            )
            for endpoint_type in (2, 1, 3)
        ),
        *(
            quorum.DescribeQuorumRequest(topics=(quorum.TopicData(topic_name=name, partitions=requested),))
            for name, requested in (("__cluster_metadata", partitions), (state.topic, partitions[:1]))
        ),
    ]


_DESCRIPTION_ERRORS: Final = [
    *(NONE, "MISMATCHED_ENDPOINT_TYPE", "UNSUPPORTED_ENDPOINT_TYPE"),
    *(NONE, *("UNKNOWN_TOPIC_OR_PARTITION",) * 2),
    *(NONE, "UNKNOWN_TOPIC_OR_PARTITION"),
]


def _envelopes(state: ClusterState) -> Any:
    schema = schema_for_nodes(_ENVELOPE)
    inside = (b"\0\3\0\0\0\0\0\1\0\0", b"\0")
    return [
        schema.EnvelopeRequest(request_data=data, request_principal=b"", client_host_address=bytes(4))
        for data in inside
    ]


def _to_standby(state: ClusterState) -> Any:
    """Return requests that only the active controller, which is also the leader of the quorum, can process."""
    delete = schema_for_nodes(_DELETE_TOPICS)
    gone = delete.DeleteTopicState(name=NOWHERE, topic_id=None)
    return [
        *(request for request in _from_unregistered_brokers(state)[:5]),
        _registration(state),
        delete.DeleteTopicsRequest(topics=(gone,), timeout=_TIMEOUT),
        _envelopes(state)[0],
        fetch(state),
    ]


CHECKS: Final = (
    PostRunCheck(
        "brokers that are not registered",
        Receiver.CONTROLLER,
        _from_unregistered_brokers,
        always(*("STALE_BROKER_EPOCH",) * 12, "BROKER_ID_NOT_REGISTERED"),
    ),
    PostRunCheck("registrations", Receiver.CONTROLLER, _registrations, always(*_REGISTRATION_ERRORS)),
    PostRunCheck("invalid in-sync replicas", Receiver.CONTROLLER, _proposals, _proposal_errors),
    PostRunCheck("placement of new replicas", Receiver.CONTROLLER, _placements, anything, disturbs_cluster=True),
    PostRunCheck(
        "directories of replicas", Receiver.CONTROLLER, _assignments, _assignment_errors, disturbs_cluster=True
    ),
    PostRunCheck("configurations, sent to a controller", Receiver.CONTROLLER, _configurations, _configuration_errors),
    PostRunCheck(
        "descriptions of cluster and quorum", Receiver.CONTROLLER, _descriptions, always(*_DESCRIPTION_ERRORS)
    ),
    PostRunCheck("envelopes", Receiver.CONTROLLER, _envelopes, always(*("INVALID_REQUEST",) * 2)),
    PostRunCheck(
        "requests that a standby rejects",
        Receiver.STANDBY,
        _to_standby,
        always(*("NOT_CONTROLLER",) * 8, NONE, "NOT_LEADER_OR_FOLLOWER"),
    ),
)
