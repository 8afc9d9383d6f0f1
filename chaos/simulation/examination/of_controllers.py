"""What the active controller is examined in at its own listener, by brokers that mistake themselves.

Sources: `ClusterControlManager`, `ReplicationControlManager`, `ConfigurationControlManager` of Kafka 4.3.
"""

from dataclasses import replace
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from chaos.simulation.examination.exam import (
    ELSEWHERE,
    NOBODY,
    NONE,
    NOWHERE,
    STRANGER,
    Exam,
    Facts,
    Whom,
    always,
    anything,
    schema_for_nodes,
)
from chaos.simulation.examination.of_quorum import fetch

_TIMEOUT: Final = timedelta(seconds=2)
_CREATE_TOPICS, _DELETE_TOPICS = 19, 20
_INCREMENTAL_ALTER_CONFIGS, _ALTER_PARTITION, _ENVELOPE, _DESCRIBE_CLUSTER = 44, 56, 58, 60
_REGISTRATION, _HEARTBEAT, _UNREGISTRATION, _ALLOCATION, _ASSIGNMENT = 62, 63, 64, 67, 73
_RESERVED: Final = UUID(int=7)
"""No directory's id."""
_BROKER: Final = 4
_PROPERTY, _VALUE = "message.max.bytes", "1048588"


# --- brokers


def _of_strangers(facts: Facts) -> Any:
    """Requests of brokers, and of runs of theirs, that are not registered."""
    known = facts.image.brokers[facts.broker]
    beat, block, move = schema_for_nodes(_HEARTBEAT), schema_for_nodes(_ALLOCATION), schema_for_nodes(_ASSIGNMENT)
    alter, leave = schema_for_nodes(_ALTER_PARTITION), schema_for_nodes(_UNREGISTRATION)
    claims = (
        {"broker_id": NOBODY, "broker_epoch": known.broker_epoch},
        {"broker_id": facts.broker, "broker_epoch": known.broker_epoch - 1},
        {"broker_id": facts.broker, "broker_epoch": -1},
    )
    rest = {"current_metadata_offset": 2**40, "want_fence": True, "want_shut_down": False}
    return [
        request
        for claim in claims
        for request in (
            beat.BrokerHeartbeatRequest(**claim, **rest),
            block.AllocateProducerIdsRequest(**claim),
            move.AssignReplicasToDirsRequest(**claim, directories=()),
            alter.AlterPartitionRequest(**claim, topics=()),
        )
    ] + [leave.UnregisterBrokerRequest(broker_id=NOBODY)]


def _registration(facts: Facts, **given: Any) -> Any:
    """Of a broker that is not there yet, as it should be, but for what is given."""
    schema, known = schema_for_nodes(_REGISTRATION), facts.image.brokers[facts.broker]
    levels = {
        "metadata.version": (1, 99),
        **dict.fromkeys(facts.image.features, (0, 99)),
        **given.pop("levels", {}),
    }
    features = tuple(
        schema.Feature(name=name, min_supported_version=least, max_supported_version=most)
        for name, (least, most) in sorted(levels.items())
        if most >= 0
    )
    fields = {
        "broker_id": NOBODY,
        "cluster_id": facts.cluster_id,
        "incarnation_id": STRANGER,
        "listeners": (),
        "features": features,
        "rack": known.rack,
        "log_dirs": (STRANGER,),
    }
    return schema.BrokerRegistrationRequest(**fields | given)


def _registrations(facts: Facts) -> Any:
    name = "metadata.version"
    level, others = facts.image.features[name], facts.image.brokers[facts.broker].log_dirs
    return [
        _registration(facts, cluster_id=ELSEWHERE),
        _registration(facts, broker_id=facts.broker),
        _registration(facts, is_migrating_zk_broker=True),
        _registration(facts, log_dirs=()),
        _registration(facts, log_dirs=(_RESERVED, STRANGER)),
        _registration(facts, log_dirs=(STRANGER, STRANGER)),
        _registration(facts, log_dirs=others),
        _registration(facts, levels={name: (level + 1, level + 1)}),
        _registration(facts, levels={name: (0, level - 1)}),
        _registration(facts, levels={"some.feature": (1, 2)}),
        _registration(facts, levels={name: (0, -1)}),
    ]


_OF_REGISTRATIONS: Final = [
    *("INCONSISTENT_CLUSTER_ID", "DUPLICATE_BROKER_REGISTRATION", "BROKER_ID_NOT_REGISTERED"),
    *("INVALID_REGISTRATION",) * 4,
    *("UNSUPPORTED_VERSION",) * 3,
    "INVALID_REGISTRATION",
]


# --- in-sync replicas


def _proposal(facts: Facts, *, topic_id: UUID | None = None, leader: int | None = None, **given: Any) -> Any:
    """Of the partition's leader, the ISR that it has, but for what is given. `members`: ids and epochs."""
    schema, partition = schema_for_nodes(_ALTER_PARTITION), facts.partition
    leader_id = partition.leader if leader is None else leader
    members = given.pop("members", [(member, -1) for member in partition.isr])
    wish = schema.PartitionData(
        partition_index=0,
        leader_epoch=partition.leader_epoch,
        new_isr_with_epochs=tuple(schema.BrokerState(broker_id=node, broker_epoch=epoch) for node, epoch in members),
        partition_epoch=partition.partition_epoch,
    )
    topic = schema.TopicData(
        topic_id=facts.image.topics[facts.topic].topic_id if topic_id is None else topic_id,
        partitions=(replace(wish, **given),),
    )
    epoch = facts.image.brokers[leader_id].broker_epoch
    return schema.AlterPartitionRequest(broker_id=leader_id, broker_epoch=epoch, topics=(topic,))


def _proposals(facts: Facts) -> Any:
    partition = facts.partition
    leader, isr = partition.leader, [(member, -1) for member in partition.isr]
    return [
        _proposal(facts, topic_id=STRANGER),
        _proposal(facts, partition_index=99),
        _proposal(facts, leader_epoch=partition.leader_epoch + 1),
        _proposal(facts, partition_epoch=partition.partition_epoch + 1),
        _proposal(facts, leader_epoch=partition.leader_epoch - 1),
        _proposal(facts, partition_epoch=partition.partition_epoch - 1),
        _proposal(facts, members=[]),
        _proposal(facts, members=[*isr, isr[0]]),
        _proposal(facts, members=[*isr, (NOBODY, -1)]),
        _proposal(facts, leader_recovery_state=1),
        _proposal(facts, members=[(leader, 2**40)]),
        *(
            [
                _proposal(facts, members=[member for member in isr if member[0] != leader]),
                _proposal(facts, leader=next(node for node in facts.brokers if node != leader)),
            ]
            if len(isr) > 1
            else []
        ),
        _proposal(facts),
    ]


def _of_proposals(facts: Facts) -> list[str]:
    errors = [
        *("UNKNOWN_TOPIC_ID", "UNKNOWN_TOPIC_OR_PARTITION", "NOT_CONTROLLER", "NOT_CONTROLLER"),
        *("FENCED_LEADER_EPOCH", "INVALID_UPDATE_VERSION", *("INVALID_REQUEST",) * 4, "INELIGIBLE_REPLICA"),
        *(("INVALID_REQUEST",) * 2 if len(facts.partition.isr) > 1 else ()),
    ]
    return [each for error in (*errors, NONE) for each in (NONE, error)]


def _places(facts: Facts) -> Any:
    """Return assignments to directories; the last one is wrong, and the broker assigns its replica again.

    An only replica is left out: without a directory of its broker it loses the leadership, as in Kafka.
    """
    schema, broker = schema_for_nodes(_ASSIGNMENT), facts.image.brokers[facts.broker]

    def asked(topic_id: UUID, index: int, directory_id: UUID | None = broker.log_dirs[0]) -> Any:
        partition = schema.PartitionData(partition_index=index)
        topic = schema.TopicData(topic_id=topic_id, partitions=(partition,))
        directory = schema.DirectoryData(id_=directory_id, topics=(topic,))
        claim = {"broker_id": broker.broker_id, "broker_epoch": broker.broker_epoch}
        return schema.AssignReplicasToDirsRequest(**claim, directories=(directory,))

    known = facts.image.topics[facts.topic].topic_id
    wrong = [asked(known, 0, STRANGER)] if _has_several_in_sync(facts) else []
    return [asked(STRANGER, 0), asked(known, 99), asked(known, 0), *wrong]


def _of_places(facts: Facts) -> list[str]:
    last = NONE if facts.broker in facts.partition.replicas else "NOT_LEADER_OR_FOLLOWER"
    known = [NONE, last] * (1 + _has_several_in_sync(facts))
    return [NONE, "UNKNOWN_TOPIC_ID", NONE, "UNKNOWN_TOPIC_OR_PARTITION", *known]


def _has_several_in_sync(facts: Facts) -> bool:
    return len(facts.partition.isr) > 1


def _placements(facts: Facts) -> Any:
    """A topic, beside a broker that has never been there, and then beside two that are alone in their racks."""
    create, delete = schema_for_nodes(_CREATE_TOPICS), schema_for_nodes(_DELETE_TOPICS)
    leave = schema_for_nodes(_UNREGISTRATION)
    topic = create.CreatableTopic(
        name=NOWHERE, num_partitions=4, replication_factor=min(2, len(facts.brokers)), assignments=(), configs=()
    )
    gone = delete.DeleteTopicState(name=NOWHERE, topic_id=None)
    made = [
        create.CreateTopicsRequest(topics=(topic,), timeout=_TIMEOUT, validate_only=False),
        delete.DeleteTopicsRequest(topics=(gone,), timeout=_TIMEOUT),
    ]
    another = {"broker_id": NOBODY + 1, "incarnation_id": _RESERVED, "log_dirs": (UUID(int=STRANGER.int + 1),)}
    return [
        _registration(facts),
        *made,
        leave.UnregisterBrokerRequest(broker_id=NOBODY),
        _registration(facts, rack=ELSEWHERE),
        _registration(facts, rack=NOWHERE, **another),
        *made,
        *(leave.UnregisterBrokerRequest(broker_id=broker_id) for broker_id in (NOBODY, NOBODY + 1)),
    ]


# --- what administrators ask of a controller itself (KIP-919)


def _settings(facts: Facts) -> Any:
    schema = schema_for_nodes(_INCREMENTAL_ALTER_CONFIGS)
    config = (schema.AlterableConfig(name=_PROPERTY, config_operation=0, value=_VALUE),)
    names = ("", str(facts.broker), str(NOBODY), "0", "-1", "abc")
    return [
        schema.IncrementalAlterConfigsRequest(
            resources=(schema.AlterConfigsResource(resource_type=kind, resource_name=name, configs=config),),
            validate_only=True,
        )
        for kind, name in (*((_BROKER, name) for name in names), (99, "x"))
    ]


def _of_settings(facts: Facts) -> list[str]:
    return [NONE, NONE, *("BROKER_ID_NOT_REGISTERED",) * 2, *("INVALID_REQUEST",) * 2, "UNSUPPORTED_VERSION"]


def _endpoints(facts: Facts) -> Any:
    schema = schema_for_nodes(_DESCRIBE_CLUSTER)
    return [
        schema.DescribeClusterRequest(
            include_cluster_authorized_operations=False, endpoint_type=endpoint_type, include_fenced_brokers=False
        )
        for endpoint_type in (2, 1, 3)
    ]


def _envelopes(facts: Facts) -> Any:
    schema = schema_for_nodes(_ENVELOPE)
    inside = (b"\0\3\0\0\0\0\0\1\0\0", b"\0")
    return [
        schema.EnvelopeRequest(request_data=data, request_principal=b"", client_host_address=bytes(4))
        for data in inside
    ]


def _of_standby(facts: Facts) -> Any:
    """What only the active controller, and the leader of the quorum, can answer."""
    return [
        *(request for request in _of_strangers(facts)[:5]),
        _registration(facts),
        _envelopes(facts)[0],
        fetch(facts),
    ]


EXAMS: Final = (
    Exam(
        "brokers that are not registered",
        Whom.CONTROLLER,
        _of_strangers,
        always(*("STALE_BROKER_EPOCH",) * 12, "BROKER_ID_NOT_REGISTERED"),
    ),
    Exam("registrations", Whom.CONTROLLER, _registrations, always(*_OF_REGISTRATIONS)),
    Exam("in-sync replicas that cannot be", Whom.CONTROLLER, _proposals, _of_proposals),
    Exam("places of new replicas", Whom.CONTROLLER, _placements, anything, unsettles=True),
    Exam("places of replicas", Whom.CONTROLLER, _places, _of_places, unsettles=True),
    Exam("settings, of a controller itself", Whom.CONTROLLER, _settings, _of_settings),
    Exam(
        "controllers",
        Whom.CONTROLLER,
        _endpoints,
        always(NONE, "MISMATCHED_ENDPOINT_TYPE", "UNSUPPORTED_ENDPOINT_TYPE"),
    ),
    Exam("envelopes", Whom.CONTROLLER, _envelopes, always(*("INVALID_REQUEST",) * 2)),
    Exam(
        "what is not a standby's to answer",
        Whom.STANDBY,
        _of_standby,
        always(*("NOT_CONTROLLER",) * 7, NONE, "NOT_LEADER_OR_FOLLOWER"),
    ),
)
