"""Requests of a broker to a leader or the controller. `requests` has the rest of `request-matches-state`.

| request              | what it must contain                                                                         |
|----------------------|----------------------------------------------------------------------------------------------|
| any                  | the broker's id and the broker epoch of this incarnation, if the API has these fields. The   |
|                      | destination is the leader of the quorum at its address in `controller.quorum.voters`, or the |
|                      | leader of the partitions at its address in the metadata                                      |
| Fetch                | only partitions that the broker follows, each once, with the leader epoch, the start and the |
|                      | end of the broker's log, and the epoch of its last record (KIP-320, KIP-595, KIP-903)        |
| ListOffsets          | partitions that the broker follows, with their leader epoch; the timestamp is earliest or    |
|                      | latest                                                                                       |
| AlterPartition       | at least one partition. For each partition that the broker still leads, no epoch is newer    |
|                      | than the partition's. If the partition epoch is current, the proposed ISR has the leader     |
|                      | with its broker epoch. The broker epoch of each other member is at most that of its last     |
|                      | fetch                                                                                        |
| AllocateProducerIds  | sent only if no id is left                                                                   |
| BrokerRegistration   | the broker's cluster, incarnation, listeners, directory and rack, and the broker epoch of    |
|                      | its last clean shutdown. It is sent only in the state STARTING                               |
| BrokerHeartbeat      | the broker's metadata offset, -1 until it has caught up. The broker requests to be unfenced  |
|                      | only after it has applied its registration. It requests to shut down if and only if it is in |
|                      | PENDING_CONTROLLED_SHUTDOWN, and only after the simulation has begun its shutdown            |
| AssignReplicasToDirs | the broker's directory, for replicas that have another directory in the metadata (KIP-858)   |
| CreateTopics         | names of topics that do not exist, each once                                                 |
| Envelope             | a whole request of an API of the controller, and its principal (KIP-590)                     |
"""

from collections.abc import Callable, Iterator
from typing import Any, Final

from reference_broker.core.broker import Broker
from reference_broker.core.broker_lifecycle_manager import BrokerState
from reference_broker.core.connection import Channel
from reference_broker.core.replication.partition import Partition, ReplicaRole
from reference_broker.simulation.invariants.watch import Watched

Comparison = tuple[str, object, object]
"""The name of a checked value, its value in the request, and the expected value."""

_UNKNOWN_EPOCH: Final = -1
_LATEST, _EARLIEST = -1, -2
FORWARDED: Final = frozenset({19, 20, 33, 37, 43, 44, 45, 46, 55, 64})
"""APIs of the controller that brokers forward."""


def _broker(watched: Watched) -> Broker:
    assert watched.node is not None
    assert watched.node.broker is not None
    return watched.node.broker


def _epoch(watched: Watched) -> int:
    """Return the broker epoch of this incarnation's registration in the metadata of this node; -1 if there is none."""
    assert watched.node is not None
    registered = watched.node.metadata.image.brokers.get(watched.node_id)
    is_own = registered is not None and registered.incarnation_id == watched.node.runtime.identity.incarnation_id
    return registered.broker_epoch if registered is not None and is_own else _UNKNOWN_EPOCH


def _compare_controller(watched: Watched, channel: Channel) -> Iterator[Comparison]:
    assert watched.node is not None
    yield "destination", channel.node_id, watched.quorum.state.leader_id
    voter = watched.node.layout.voters.get(channel.node_id)
    yield "address", (channel.host, channel.port), None if voter is None else (voter.host, voter.port)


def _compare_broker(watched: Watched, channel: Channel, request: Any) -> Iterator[Comparison]:
    yield from _compare_controller(watched, channel)
    yield "broker_id", request.broker_id, watched.node_id
    yield "broker_epoch", request.broker_epoch, _epoch(watched)


# --- to leaders


def _compare_leader_address(watched: Watched, channel: Channel) -> Iterator[Comparison]:
    leader = _broker(watched).image.brokers.get(channel.node_id)
    is_other = leader is not None and channel.node_id != watched.node_id
    yield "whether the destination is another registered broker", is_other, True
    assert leader is not None
    endpoints = [(each.host, each.port) for each in leader.end_points]
    yield "whether the address is an endpoint of the leader", (channel.host, channel.port) in endpoints, True


def _compare_follower(partition: Partition | None, channel: Channel, epoch: int) -> Comparison:
    """Compare a request with the state of a follower. The partition is not named, because formatting is slow."""
    if partition is None:
        return "whether the partition has a replica here", False, True
    actual = partition.key, ReplicaRole.FOLLOWER, channel.node_id, epoch
    expected = partition.key, partition.role, partition.leader, partition.leader_epoch
    return "role, leader, current_leader_epoch", actual, expected


def _compare_fetch(watched: Watched, channel: Channel, request: Any) -> Iterator[Comparison]:
    yield from _compare_leader_address(watched, channel)
    yield "replica_id", request.replica_state.replica_id, watched.node_id
    yield "replica_epoch", request.replica_state.replica_epoch, _epoch(watched)
    yield "isolation_level, session", (request.isolation_level, request.session_id, request.session_epoch), (0, 0, -1)
    replicas, image = _broker(watched).replicas, _broker(watched).image
    count = 0
    keys = set()
    for topic in request.topics:
        known = image.topics_by_id.get(topic.topic_id)
        for requested in topic.partitions:
            partition = None if known is None else replicas.get(known.name, requested.partition)
            yield _compare_follower(partition, channel, requested.current_leader_epoch)
            assert partition is not None
            key, log = partition.key, partition.log
            entries = log.epochs.entries
            expected = key, log.segments[-1].end_offset, entries[-1][0] if entries else -1, log.log_start_offset
            actual = key, requested.fetch_offset, requested.last_fetched_epoch, requested.log_start_offset
            yield "fetch_offset, last_fetched_epoch, log_start_offset", actual, expected
            keys.add(key)
            count += 1
    yield "number of distinct partitions", len(keys), count
    yield "whether there is a partition", count > 0, True


def _compare_list_offsets(watched: Watched, channel: Channel, request: Any) -> Iterator[Comparison]:
    yield from _compare_leader_address(watched, channel)
    yield "replica_id", request.replica_id, watched.node_id
    replicas = _broker(watched).replicas
    for topic in request.topics:
        for requested in topic.partitions:
            partition = replicas.get(topic.name, requested.partition_index)
            yield _compare_follower(partition, channel, requested.current_leader_epoch)
            yield "whether the timestamp is earliest or latest", requested.timestamp in {_LATEST, _EARLIEST}, True


# --- to the controller


def _compare_alter_partition(watched: Watched, channel: Channel, request: Any) -> Iterator[Comparison]:
    yield from _compare_broker(watched, channel, request)
    replicas, image = _broker(watched).replicas, _broker(watched).image
    yield "whether there is a partition", any(topic.partitions for topic in request.topics), True
    for topic in request.topics:
        known = image.topics_by_id.get(topic.topic_id)
        for requested in topic.partitions:
            partition = None if known is None else replicas.get(known.name, requested.partition_index)
            if partition is not None and partition.is_leader:  # else the proposal is out of date
                yield from _compare_proposal(watched, partition, requested)


def _compare_proposal(watched: Watched, partition: Partition, requested: Any) -> Iterator[Comparison]:
    """Compare a proposal with the leader's state. Earlier epochs are permitted: the controller rejects the proposal."""
    is_newer = requested.leader_epoch > partition.leader_epoch or requested.partition_epoch > partition.partition_epoch
    yield f"{partition.key}: whether an epoch is newer", is_newer, False
    if requested.partition_epoch != partition.partition_epoch:
        return
    yield f"{partition.key}: leader_epoch", requested.leader_epoch, partition.leader_epoch
    members = {member.broker_id: member.broker_epoch for member in requested.new_isr_with_epochs}
    yield f"{partition.key}: number of distinct members", len(members), len(requested.new_isr_with_epochs)
    yield f"{partition.key}: broker epoch of the leader", members.pop(watched.node_id, None), _epoch(watched)
    yield f"{partition.key}: members that are not replicas", members.keys() - set(partition.replicas), set()
    for node_id, epoch in members.items():
        fetched = partition.followers[node_id].broker_epoch if node_id in partition.followers else None
        latest = _UNKNOWN_EPOCH if fetched is None else fetched
        yield f"{partition.key}: whether the epoch of {node_id} is after {latest}", epoch > latest, False
        joins_unknown = epoch == _UNKNOWN_EPOCH and node_id not in partition.isr.isr  # it joins after a fetch
        yield f"{partition.key}: whether {node_id} joins without an epoch", joins_unknown, False


def _compare_allocate_producer_ids(watched: Watched, channel: Channel, request: Any) -> Iterator[Comparison]:
    yield from _compare_broker(watched, channel, request)
    yield "number of ids left", _broker(watched).producer_ids.remaining, 0


def _compare_registration(watched: Watched, channel: Channel, request: Any) -> Iterator[Comparison]:
    assert watched.node is not None
    yield from _compare_controller(watched, channel)
    runtime = watched.node.runtime
    identity = runtime.identity
    yield "broker_id", request.broker_id, watched.node_id
    yield "cluster_id", request.cluster_id, identity.cluster_id
    yield "incarnation_id", request.incarnation_id, identity.incarnation_id
    listeners = [(each.name, each.host, each.port) for each in request.listeners]
    yield "listeners", listeners, [(each.listener, each.host, each.port) for each in identity.endpoints]
    yield "log_dirs", request.log_dirs, (identity.directory_id,)
    yield "rack", request.rack, runtime.configuration.entry("broker.rack").value
    if watched.stopped_epoch is not None:
        yield "previous_broker_epoch", request.previous_broker_epoch, watched.stopped_epoch
    yield "state", _broker(watched).lifecycle.state, BrokerState.STARTING
    yield "is_migrating_zk_broker", request.is_migrating_zk_broker, False


def _compare_heartbeat(watched: Watched, channel: Channel, request: Any) -> Iterator[Comparison]:
    assert watched.node is not None
    yield from _compare_controller(watched, channel)
    yield "broker_id", request.broker_id, watched.node_id
    epoch, offset = _epoch(watched), watched.node.metadata.offset if watched.node.has_caught_up else -1
    if epoch != _UNKNOWN_EPOCH:  # the broker may know its epoch before the metadata have its registration
        yield "broker_epoch", request.broker_epoch, epoch
    yield "current_metadata_offset", request.current_metadata_offset, offset
    if not request.want_fence:
        yield "whether the registration was applied", offset >= request.broker_epoch, True
    state = _broker(watched).lifecycle.state
    yield "want_fence", request.want_fence, state is BrokerState.STARTING
    yield "want_shut_down", request.want_shut_down, state is BrokerState.PENDING_CONTROLLED_SHUTDOWN
    is_unexpected = request.want_shut_down and not watched.machine.is_stopping
    yield "whether it requests a shutdown that was not begun", is_unexpected, False


def _compare_assign_replicas(watched: Watched, channel: Channel, request: Any) -> Iterator[Comparison]:
    assert watched.node is not None
    yield from _compare_broker(watched, channel, request)
    own_id, image = watched.node.runtime.identity.directory_id, _broker(watched).image
    yield "directories", [directory.id_ for directory in request.directories], [own_id]
    assigned = [
        (topic.topic_id, partition.partition_index)
        for topic in request.directories[0].topics
        for partition in topic.partitions
    ]
    yield "number of distinct partitions", len(set(assigned)), len(assigned)
    for key in assigned:
        record = image.partition_by_id(*key)
        is_here = record is not None and watched.node_id in record.replicas
        yield f"{key}: whether this broker has a replica", is_here, True
        assert record is not None
        is_assigned = record.directories[record.replicas.index(watched.node_id)] == own_id
        yield f"{key}: whether the metadata have this directory already", is_assigned, False


def _compare_create_topics(watched: Watched, channel: Channel, request: Any) -> Iterator[Comparison]:
    yield from _compare_controller(watched, channel)
    names = [topic.name for topic in request.topics]
    yield "number of distinct names", len(set(names)), len(names)
    yield "topics that exist", [name for name in names if name in _broker(watched).image.topics], []
    yield "validate_only", request.validate_only, False


def _compare_envelope(watched: Watched, channel: Channel, request: Any) -> Iterator[Comparison]:
    yield from _compare_controller(watched, channel)
    yield "whether the API is one of the controller", int.from_bytes(request.request_data[:2], "big") in FORWARDED, True
    yield "size of client_host_address in bytes", len(request.client_host_address), 4
    yield "whether there is a request_principal", bool(request.request_principal), True


COMPARISONS: Final[dict[int, Callable[[Watched, Channel, Any], Iterator[Comparison]]]] = {
    1: _compare_fetch,
    2: _compare_list_offsets,
    19: _compare_create_topics,
    56: _compare_alter_partition,
    58: _compare_envelope,
    62: _compare_registration,
    63: _compare_heartbeat,
    67: _compare_allocate_producer_ids,
    73: _compare_assign_replicas,
}
"""The comparisons of a request, by API key."""
