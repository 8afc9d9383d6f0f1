"""What a broker says of itself when it asks a leader or the controller: the other half of `honest-request`.

| request              | what it must say                                                                             |
|----------------------|----------------------------------------------------------------------------------------------|
| any                  | the broker's id, and the epoch of this run's registration; to the leader of the quorum, or   |
|                      | of the partitions, where the metadata has it                                                 |
| Fetch                | of partitions that it follows in their epoch, once each: where its log ends and begins, and  |
|                      | the epoch of its last record (KIP-320, KIP-595, KIP-903)                                     |
| ListOffsets          | its epoch of a partition that it follows; asks for a start or an end                         |
| AlterPartition       | no epoch that its partition has not had; in those of now, members that are replicas, it      |
|                      | among them, each in no later epoch than it fetches with                                      |
| AllocateProducerIds  | asked for when no id is left                                                                 |
| BrokerRegistration   | its cluster, run, listeners, directory, rack, and the epoch of its last clean run; only      |
|                      | while it is not registered                                                                   |
| BrokerHeartbeat      | how far it has followed the metadata; to be unfenced once it knows its registration, to shut |
|                      | down when it was told to, and then only                                                      |
| AssignReplicasToDirs | its directory, for replicas that the metadata has elsewhere (KIP-858)                        |
| CreateTopics         | names that are not there, once each                                                          |
| Envelope             | a whole request of an API that is the controller's, and who sent it (KIP-590)                |
"""

from collections.abc import Callable, Iterator
from typing import Any, Final

from reference_broker.core.broker import Broker
from reference_broker.core.connection import Channel
from reference_broker.core.lifecycle import BrokerState
from reference_broker.core.replication.partition import Partition, Role
from reference_broker.simulation.invariants.watch import Watched

Claim = tuple[str, object, object]
"""What is claimed, as the message has it, as it is."""

_UNKNOWN_EPOCH: Final = -1
_LATEST, _EARLIEST = -1, -2
_FORWARDED: Final = frozenset({19, 20, 33, 37, 43, 44, 45, 46, 55, 64})
"""APIs that the controller answers through a broker."""


def _broker(watched: Watched) -> Broker:
    assert watched.node is not None
    assert watched.node.broker is not None
    return watched.node.broker


def _epoch(watched: Watched) -> int:
    """Of the registration of this run, as far as this node knows."""
    assert watched.node is not None
    registered = watched.node.metadata.image.brokers.get(watched.node_id)
    is_own = registered is not None and registered.incarnation_id == watched.node.runtime.identity.incarnation_id
    return registered.broker_epoch if registered is not None and is_own else _UNKNOWN_EPOCH


def _of_controller(watched: Watched, channel: Channel) -> Iterator[Claim]:
    assert watched.node is not None
    yield "the controller", channel.node_id, watched.quorum.state.leader_id
    voter = watched.node.layout.voters.get(channel.node_id)
    yield "address", (channel.host, channel.port), None if voter is None else (voter.host, voter.port)


def _of_registered(watched: Watched, channel: Channel, asked: Any) -> Iterator[Claim]:
    yield from _of_controller(watched, channel)
    yield "broker_id", asked.broker_id, watched.node_id
    yield "broker_epoch", asked.broker_epoch, _epoch(watched)


# --- to leaders


def _of_leader(watched: Watched, channel: Channel) -> Iterator[Claim]:
    leader = _broker(watched).image.brokers.get(channel.node_id)
    yield "a broker", leader is not None and channel.node_id != watched.node_id, True
    assert leader is not None
    yield "address", (channel.host, channel.port) in [(each.host, each.port) for each in leader.end_points], True


def _of_followed(partition: Partition | None, channel: Channel, epoch: int) -> Claim:
    """A name in the text of each partition would cost more than all else."""
    if partition is None:
        return "a partition of this broker", None, True
    said = partition.key, Role.FOLLOWER, channel.node_id, epoch
    is_so = partition.key, partition.role, partition.leader, partition.leader_epoch
    return "role, leader, current_leader_epoch", said, is_so


def _of_fetch(watched: Watched, channel: Channel, asked: Any) -> Iterator[Claim]:
    yield from _of_leader(watched, channel)
    yield "replica_id", asked.replica_state.replica_id, watched.node_id
    yield "replica_epoch", asked.replica_state.replica_epoch, _epoch(watched)
    yield "isolation_level, session", (asked.isolation_level, asked.session_id, asked.session_epoch), (0, 0, -1)
    replicas, image = _broker(watched).replicas, _broker(watched).image
    places = 0
    named = set()
    for topic in asked.topics:
        known = image.topics_by_id.get(topic.topic_id)
        for said in topic.partitions:
            partition = None if known is None else replicas.get(known.name, said.partition)
            yield _of_followed(partition, channel, said.current_leader_epoch)
            assert partition is not None
            key, log = partition.key, partition.log
            entries = log.epochs.entries
            is_so = key, log.segments[-1].end_offset, entries[-1][0] if entries else -1, log.log_start_offset
            told = key, said.fetch_offset, said.last_fetched_epoch, said.log_start_offset
            yield "fetch_offset, last_fetched_epoch, log_start_offset", told, is_so
            named.add(key)
            places += 1
    yield "partitions that are named once", len(named), places
    yield "asks for something", places > 0, True


def _of_list_offsets(watched: Watched, channel: Channel, asked: Any) -> Iterator[Claim]:
    yield from _of_leader(watched, channel)
    yield "replica_id", asked.replica_id, watched.node_id
    replicas = _broker(watched).replicas
    for topic in asked.topics:
        for said in topic.partitions:
            partition = replicas.get(topic.name, said.partition_index)
            yield _of_followed(partition, channel, said.current_leader_epoch)
            yield "a start or an end", said.timestamp in {_LATEST, _EARLIEST}, True


# --- to the controller


def _of_alter_partition(watched: Watched, channel: Channel, asked: Any) -> Iterator[Claim]:
    yield from _of_registered(watched, channel, asked)
    replicas, image = _broker(watched).replicas, _broker(watched).image
    for topic in asked.topics:
        known = image.topics_by_id.get(topic.topic_id)
        for said in topic.partitions:
            partition = None if known is None else replicas.get(known.name, said.partition_index)
            if partition is not None and partition.is_leader:  # else the proposal is out of date
                yield from _of_proposal(watched, partition, said)


def _of_proposal(watched: Watched, partition: Partition, said: Any) -> Iterator[Claim]:
    """One that waited, or is sent again, may be of an epoch that is over by now, which the controller refuses."""
    late = said.leader_epoch > partition.leader_epoch or said.partition_epoch > partition.partition_epoch
    yield f"{partition.key}: an epoch that is to come", late, False
    if said.partition_epoch != partition.partition_epoch:
        return
    yield f"{partition.key}: leader_epoch", said.leader_epoch, partition.leader_epoch
    members = {member.broker_id: member.broker_epoch for member in said.new_isr_with_epochs}
    yield f"{partition.key}: members that are named once", len(members), len(said.new_isr_with_epochs)
    yield f"{partition.key}: the leader's epoch", members.pop(watched.node_id, None), _epoch(watched)
    yield f"{partition.key}: members that are no replicas", members.keys() - set(partition.replicas), set()
    for node_id, epoch in members.items():
        fetched = partition.followers[node_id].broker_epoch if node_id in partition.followers else None
        latest = _UNKNOWN_EPOCH if fetched is None else fetched
        yield f"{partition.key}: {node_id} in an epoch after {latest}", epoch > latest, False
        has_to_be_known = node_id not in partition.isr.isr  # who is to join has fetched
        yield f"{partition.key}: {node_id} joins in no epoch", has_to_be_known and epoch == _UNKNOWN_EPOCH, False


def _of_allocation(watched: Watched, channel: Channel, asked: Any) -> Iterator[Claim]:
    yield from _of_registered(watched, channel, asked)
    yield "ids that are left", _broker(watched).producer_ids.remaining, 0


def _of_registration(watched: Watched, channel: Channel, asked: Any) -> Iterator[Claim]:
    assert watched.node is not None
    yield from _of_controller(watched, channel)
    runtime = watched.node.runtime
    identity = runtime.identity
    yield "broker_id", asked.broker_id, watched.node_id
    yield "cluster_id", asked.cluster_id, identity.cluster_id
    yield "incarnation_id", asked.incarnation_id, identity.incarnation_id
    listeners = [(each.name, each.host, each.port) for each in asked.listeners]
    yield "listeners", listeners, [(each.listener, each.host, each.port) for each in identity.endpoints]
    yield "log_dirs", asked.log_dirs, (identity.directory_id,)
    yield "rack", asked.rack, runtime.configuration.entry("broker.rack").value
    if watched.stopped_epoch is not None:
        yield "previous_broker_epoch", asked.previous_broker_epoch, watched.stopped_epoch
    yield "state", _broker(watched).lifecycle.state, BrokerState.STARTING
    yield "is_migrating_zk_broker", asked.is_migrating_zk_broker, False


def _of_heartbeat(watched: Watched, channel: Channel, asked: Any) -> Iterator[Claim]:
    assert watched.node is not None
    yield from _of_controller(watched, channel)
    yield "broker_id", asked.broker_id, watched.node_id
    epoch, offset = _epoch(watched), watched.node.metadata.offset if watched.node.has_caught_up else -1
    if epoch != _UNKNOWN_EPOCH:  # the answer of its registration comes before its record
        yield "broker_epoch", asked.broker_epoch, epoch
    yield "current_metadata_offset", asked.current_metadata_offset, offset
    if not asked.want_fence:
        yield "knows its registration", offset >= asked.broker_epoch, True
    state = _broker(watched).lifecycle.state
    yield "want_fence", asked.want_fence, state is BrokerState.STARTING
    yield "want_shut_down", asked.want_shut_down, state is BrokerState.PENDING_CONTROLLED_SHUTDOWN
    yield "shuts down untold", asked.want_shut_down and not watched.machine.is_stopping, False


def _of_assignment(watched: Watched, channel: Channel, asked: Any) -> Iterator[Claim]:
    assert watched.node is not None
    yield from _of_registered(watched, channel, asked)
    own_id, image = watched.node.runtime.identity.directory_id, _broker(watched).image
    yield "directories", [directory.id_ for directory in asked.directories], [own_id]
    places = [
        (topic.topic_id, partition.partition_index)
        for topic in asked.directories[0].topics
        for partition in topic.partitions
    ]
    yield "places that are named once", len(set(places)), len(places)
    for place in places:
        record = image.partition_by_id(*place)
        is_here = record is not None and watched.node_id in record.replicas
        yield f"{place}: a replica of this broker", is_here, True
        assert record is not None
        lies_right = record.directories[record.replicas.index(watched.node_id)] == own_id
        yield f"{place}: told already", lies_right, False


def _of_creation(watched: Watched, channel: Channel, asked: Any) -> Iterator[Claim]:
    yield from _of_controller(watched, channel)
    names = [topic.name for topic in asked.topics]
    yield "names once each", len(set(names)), len(names)
    yield "topics that are there", [name for name in names if name in _broker(watched).image.topics], []
    yield "validate_only", asked.validate_only, False


def _of_envelope(watched: Watched, channel: Channel, asked: Any) -> Iterator[Claim]:
    yield from _of_controller(watched, channel)
    yield "an API of the controller", int.from_bytes(asked.request_data[:2], "big") in _FORWARDED, True
    yield "client_host_address", len(asked.client_host_address), 4
    yield "request_principal", bool(asked.request_principal), True


CLAIMS: Final[dict[int, Callable[[Watched, Channel, Any], Iterator[Claim]]]] = {
    1: _of_fetch,
    2: _of_list_offsets,
    19: _of_creation,
    56: _of_alter_partition,
    58: _of_envelope,
    62: _of_registration,
    63: _of_heartbeat,
    67: _of_allocation,
    73: _of_assignment,
}
"""By API key."""
