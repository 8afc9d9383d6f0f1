"""Checks of each node at the end of a run, with inputs that are rare in a simulated cluster.

| name                     | what must hold                                                                           |
|--------------------------|------------------------------------------------------------------------------------------|
| `rejects-configuration`  | a node rejects damaged listeners and voters with `InvalidConfigError` (`KafkaConfig`)    |
| `initial-quorum-state`   | a node starts in the state that follows from its stored election. A node that had voted  |
|                          | for itself starts as Candidate only if it is a voter (`QuorumState.initialize`)          |
| `truncates-divergence`   | a follower that receives the end offset of an epoch keeps no record of a later epoch     |
|                          | (`AbstractFetcherThread.getOffsetTruncationState`, KIP-279)                              |
| `ignores-older-metadata` | a replica ignores a partition record with an older partition epoch than that of an       |
|                          | AlterPartition response that it has applied (`Partition.makeLeader`)                     |
| `applies-snapshot`       | a broker that loads a snapshot without one of its topics deletes the committed offsets   |
|                          | of this topic (`GroupCoordinatorService.onPartitionsDeleted`)                            |
| `repeats-proposal`       | if an AlterPartition request gets no response, the leader sends it again                 |
|                          | (`AlterPartitionManager`)                                                                |
| `decides-again`          | if two requests at the same time create the same large topic, it is created once         |
|                          | (`QuorumController`)                                                                     |

After the load of the snapshot, the invariants of `applied_metadata` are checked, too. The nodes must not be used after
these checks.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

from reference_broker.core.broker import Broker
from reference_broker.core.configuration.configuration import BrokerConfiguration
from reference_broker.core.configuration.key import ConfigSource, InvalidConfigError
from reference_broker.core.configuration.resource import ResourceType
from reference_broker.core.connection import CONTROLLER_LISTENER, Connection
from reference_broker.core.controller.controller import Controller
from reference_broker.core.group_offsets import GroupOffsets
from reference_broker.core.layout import Layout
from reference_broker.core.metadata.delta import MetadataDelta
from reference_broker.core.metadata.image import MetadataImage
from reference_broker.core.node import Node
from reference_broker.core.quorum.election_state import ElectionState, ElectionStateStore
from reference_broker.core.quorum.messages import NO_LEADER
from reference_broker.core.quorum.quorum_state import QuorumRole, QuorumState
from reference_broker.core.quorum.raft_client import KafkaRaftClient
from reference_broker.core.quorum.voters import VoterSet
from reference_broker.core.replication.brokers import BrokerRun
from reference_broker.core.replication.partition import Partition
from reference_broker.protocol.messages import client_codec
from reference_broker.protocol.metadata_records import ConfigRecord, RemoveTopicRecord
from reference_broker.protocol.schemas import request_schema
from reference_broker.protocol.steps import ELEMENTS_PER_STEP
from reference_broker.simulation.disk import SimulatedDisk
from reference_broker.simulation.invariants.applied_metadata import check_applied_metadata
from reference_broker.simulation.invariants.violation import InvariantViolation
from reference_broker.simulation.invariants.watch import Replica, Watched

_ENDPOINTS = ("listeners", "advertised.listeners", "controller.quorum.voters")
_PROPERTY, _VALUE = "segment.bytes", "104857601"
"""A topic configuration, and a value of it that no trial uses."""
_ANY_OFFSET = 2**62
_ALTER_PARTITION = "alter-partition"
"""Purpose of the channel for AlterPartition requests."""
_RETRY_MS = 100
"""Longer than the delay before a broker sends an AlterPartition request again."""
_CREATE_TOPICS = (19, 7)
"""API key and version of the request."""
_NAME = "created-twice"
"""A topic that no trial creates."""
_TWICE = 2


def check_at_the_end(watched: Watched) -> None:
    """Check a running node with all inputs of the table.

    :raises InvariantViolation: an invariant of the table is violated.
    """
    node = watched.node
    assert node is not None
    _check_rejected_configurations(watched.node_id, node.runtime.configuration)
    _check_initial_states(watched)
    for replica in watched.open:
        _check_truncation(replica)
    if node.broker is not None and node.is_serving and not node.broker.replicas.has_unapplied_metadata:
        for partition in node.broker.replicas:
            _check_older_metadata(watched, node.broker, partition)
        _check_snapshot(watched, node.broker)
        _check_proposals(watched, node, node.broker)
    if node.controller is not None and node.controller.is_active:
        _check_creations(watched, node, node.controller)


# Configuration


def _check_rejected_configurations(node_id: int, configuration: BrokerConfiguration) -> None:
    properties = dict(configuration.given(ConfigSource.STATIC_BROKER))
    for name in _ENDPOINTS:
        for damaged in _damaged(properties.get(name, "")):
            try:
                Layout.of({**properties, name: damaged}, node_id)
            except InvalidConfigError:
                continue
            except Exception as error:
                detail = f"node {node_id}: {name}={damaged} causes {type(error).__name__}: {error}"
                raise InvariantViolation("rejects-configuration", detail) from error
            raise InvariantViolation("rejects-configuration", f"node {node_id} accepts {name}={damaged}")


def _damaged(endpoints: str) -> Iterator[str]:
    """Yield the endpoints without one kind of separator, or with a port that is missing, no number, or too high."""
    for separator in ("://", "@", ":"):
        if separator in endpoints:
            yield endpoints.replace(separator, "")
    if endpoints:
        yield re.sub(r"\d+$", "", endpoints)
        yield f"{endpoints}x"
        yield f"{endpoints}0000"


# Quorum


def _check_initial_states(watched: Watched) -> None:
    quorum = watched.quorum
    for voters in (quorum.voters, _without(quorum.voters, watched.node_id)):
        for election, expected in _elections(quorum, voters):
            found = _initial_role(watched, voters, election)
            if found is not expected:
                detail = f"node {watched.node_id} with the voters {voters.ids} starts as {found.value}"
                raise InvariantViolation("initial-quorum-state", f"{detail}, not {expected.value}, after {election}")


def _without(voters: VoterSet, node_id: int) -> VoterSet:
    return VoterSet(voter for other in voters.others(node_id) if (voter := voters.get(other)) is not None)


def _elections(quorum: KafkaRaftClient, voters: VoterSet) -> Iterator[tuple[ElectionState, QuorumRole]]:
    """Yield the elections that a node may have stored when it starts, each with the expected first state."""
    epoch, local = quorum.state.epoch, quorum.local
    is_voter = voters.contains(local)
    yield ElectionState(epoch), QuorumRole.UNATTACHED
    yield ElectionState(epoch, voted=local), QuorumRole.CANDIDATE if is_voter else QuorumRole.UNATTACHED
    yield ElectionState(epoch, local.id), QuorumRole.RESIGNED
    for other in voters.others(local.id):
        yield ElectionState(epoch, other), QuorumRole.FOLLOWER
        yield ElectionState(epoch, voted=voters.key_of(other)), QuorumRole.UNATTACHED


def _initial_role(watched: Watched, voters: VoterSet, election: ElectionState) -> QuorumRole:
    quorum = watched.quorum
    store = ElectionStateStore(SimulatedDisk(), "quorum")
    store.write(election)
    state = QuorumState(
        quorum.local, voters, quorum.config, store, random_below=lambda _: 0, on_transition=lambda: None
    )
    state.initialize(election.epoch, watched.machine.now)
    return state.state.role


# Metadata


def _check_older_metadata(watched: Watched, broker: Broker, partition: Partition) -> None:
    record = broker.image.partition(*partition.key)
    assert record is not None
    older = replace(record, partition_epoch=partition.partition_epoch - 1, isr=(record.replicas[-1],), leader=NO_LEADER)
    before = _applied(partition)
    is_new_epoch = partition.apply(older, watched.machine.now)
    if is_new_epoch or _applied(partition) != before:
        detail = f"{partition.topic}-{partition.index} on node {watched.node_id} applies partition epoch"
        raise InvariantViolation(
            "ignores-older-metadata", f"{detail} {older.partition_epoch} after {record.partition_epoch}"
        )


def _applied(partition: Partition) -> tuple[object, ...]:
    return partition.role, partition.leader, partition.leader_epoch, partition.partition_epoch, partition.isr


def _check_snapshot(watched: Watched, broker: Broker) -> None:
    """Load an image without a topic that has committed offsets, and with other configurations of all other topics."""
    _change(broker.image, _topic_with_offsets(broker))
    orphans = {index: sum(1 for _ in offsets.keys_outside(broker.image.topics)) for index, offsets in _writable(broker)}
    ends = {index: offsets.partition.log.log_end_offset for index, offsets in _writable(broker)}
    broker.on_metadata_update(MetadataDelta(everything=True), watched.machine.now)
    check_applied_metadata(watched)
    for index, offsets in _writable(broker):
        if orphans[index] and offsets.partition.log.log_end_offset == ends[index]:
            detail = f"node {watched.node_id} keeps {orphans[index]} committed offsets of a topic"
            raise InvariantViolation("applies-snapshot", f"{detail} that the snapshot does not have")


def _change(image: MetadataImage, removed: str | None) -> None:
    for topic in tuple(image.topics.values()):
        if topic.name == removed:
            image.apply(RemoveTopicRecord(topic_id=topic.topic_id))
        else:
            image.apply(
                ConfigRecord(resource_type=ResourceType.TOPIC, resource_name=topic.name, name=_PROPERTY, value=_VALUE)
            )


def _topic_with_offsets(broker: Broker) -> str | None:
    """Return an existing topic that has committed offsets on this broker; None if there is none."""
    topics = (
        topic for _, offsets in _writable(broker) for group in offsets.groups for topic, _ in offsets.committed(group)
    )
    return next((topic for topic in topics if topic in broker.image.topics), None)


def _writable(broker: Broker) -> list[tuple[int, GroupOffsets]]:
    """Return partition index and offsets of each partition of `__consumer_offsets` that is loaded and writable."""
    led = broker.groups.led.items()
    return [
        (index, offsets)
        for index, offsets in led
        if offsets.is_loaded and offsets.partition.is_leader and not offsets.partition.is_under_min_isr
    ]


# Replicas


def _check_truncation(replica: Replica) -> None:
    """Check the truncation offset for each epoch of a replica, if the leader's log has more records of this epoch."""
    partition = replica.partition
    assert partition is not None
    batches = [batch for batch in replica.log.batches if batch.last_offset >= partition.log_start_offset]
    for batch, next_batch in pairwise(batches):
        if batch.epoch < next_batch.epoch:
            offset = partition.truncation_offset(batch.epoch, _ANY_OFFSET)
            if offset > next_batch.base_offset:
                detail = f"{replica} truncates to {offset} after epoch {batch.epoch}, and keeps {next_batch}"
                raise InvariantViolation("truncates-divergence", detail)


def _check_proposals(watched: Watched, node: Node, broker: Broker) -> None:
    """Let followers lag, and disconnect the controller before it responds to the proposal to shrink the ISR."""
    now, channels = watched.machine.now, node.runtime.channels
    lag_max_ms = broker.configuration.integer("replica.lag.time.max.ms")
    for partition in broker.replicas:
        if not partition.is_leader or partition.isr.is_pending or not partition.log.log_end_offset:
            continue
        for node_id in partition.isr.isr - {watched.node_id}:
            run = BrokerRun(node_id, broker.image.brokers[node_id].broker_epoch)
            partition.update_follower_fetch_state(run, 0, 0, partition.log.log_end_offset, now)
        partition.maybe_shrink_isr(replace(now, monotonic_ms=now.monotonic_ms + lag_max_ms + 1))
        sent = [channel for channel, *_ in channels.deadlines() if channel.purpose == _ALTER_PARTITION]
        if sent:
            node.lost(sent[0], now)
            node.runtime.timers.fire(replace(now, monotonic_ms=now.monotonic_ms + _RETRY_MS))
            if not any(channel == sent[0] for channel, *_ in channels.deadlines()):
                detail = f"node {watched.node_id} does not repeat its proposal for {partition.topic}-{partition.index}"
                raise InvariantViolation("repeats-proposal", detail)
            return


# Controller


def _check_creations(watched: Watched, node: Node, controller: Controller) -> None:
    """Send the same request on two connections, and let the controller process both before any record is committed."""
    now = watched.machine.now
    schema = request_schema(*_CREATE_TOPICS)
    topic = schema.CreatableTopic(
        name=_NAME, num_partitions=ELEMENTS_PER_STEP, replication_factor=1, assignments=(), configs=()
    )
    request = schema.CreateTopicsRequest(topics=(topic,), timeout=timedelta(seconds=1), validate_only=False)
    frame = client_codec(schema.CreateTopicsRequest).write(0, "", request)[4:]
    connections = [Connection(CONTROLLER_LISTENER, is_controller=True) for _ in range(_TWICE)]
    for connection in connections:
        node.handle(connection, frame, now)
    for _ in range(2 * _TWICE):
        node.runtime.timers.fire(now)
    created = [topic.topic_id for topic in controller.image.topics_by_id.values() if topic.name == _NAME]
    if len(created) != 1:
        raise InvariantViolation(
            "decides-again", f"node {watched.node_id} creates the topics {created} of the same name"
        )
