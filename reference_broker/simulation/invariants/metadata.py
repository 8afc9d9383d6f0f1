"""Metadata of the cluster: the committed records, and the image of each node.

The invariants have a separate image. When the first node has applied a committed batch, the batch is applied to
this image too, and its changes are checked. The image of each node is compared with this image for all changed keys.

| name                        | what must hold                                                                        |
|-----------------------------|---------------------------------------------------------------------------------------|
| `metadata-agree`            | two nodes that have applied the records up to the same offset have the same image     |
| `metadata-monotone`         | the offset that a node has applied never decreases, until the node restarts           |
| `snapshot-is-image`         | an image that is loaded from a snapshot of a node's image equals this image           |
| `partition-epochs-grow`     | each change of a partition increases its partition epoch. A change of the leader and  |
|                             | the removal of a replica increase the leader epoch. No change decreases it            |
| `leader-in-isr`             | a leader is in the ISR; the ISR is not empty, and has only replicas, each once        |
| `fenced-in-isr`             | a broker that is fenced, shuts down or is unregistered leads no partition. It is in   |
|                             | an ISR only as the last member, while the partition has no leader (KIP-841)           |
| `clean-election`            | a leader is elected from the ISR, unless an unclean election is enabled or requested  |
| `unclean-recovers`          | a leader that is elected from outside the ISR becomes the only member of the ISR, and |
|                             | is recovering (KIP-704). No other change starts a recovery                            |
| `moved-in-sync`             | a reassignment completes only when all target replicas are in sync (KAFKA-15665)      |
| `joins-isr-complete`        | a replica that joins an ISR has all committed records                                 |
| `broker-epochs-grow`        | the broker epoch of a new incarnation is the offset of its registration record, or of |
|                             | an earlier record in the same batch. The same incarnation keeps its epoch             |
| `ids-unique`                | the names of existing topics, topic ids, directory ids and producer ids are unique    |
| `one-controller-per-epoch`  | an active controller leads the quorum, and no other controller is active in its epoch |
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping
from operator import itemgetter
from typing import assert_never
from uuid import UUID

from reference_broker.core.configuration.resource import ResourceType
from reference_broker.core.controller.elections import UNCLEAN_ELECTION
from reference_broker.core.controller.partition_changes import is_reassigning
from reference_broker.core.metadata.image import CLUSTER_DEFAULT, MetadataImage
from reference_broker.core.node import Node
from reference_broker.core.quorum.quorum_log import QuorumLog
from reference_broker.core.quorum.quorum_state import Leader
from reference_broker.protocol.metadata_records import (
    NO_LEADER,
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    FeatureLevelRecord,
    FenceBrokerRecord,
    MetadataRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    RemoveTopicRecord,
    TopicRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
    decode_metadata_record,
    encode_metadata_record,
)
from reference_broker.protocol.record_batch import BatchHeader
from reference_broker.protocol.records import decode_batches
from reference_broker.simulation.invariants.partitions import PartitionInvariants
from reference_broker.simulation.invariants.record_effects import check_record_effect
from reference_broker.simulation.invariants.violation import InvariantViolation
from reference_broker.simulation.invariants.watch import Observer, Watched

Key = tuple[Hashable, ...]
_EVERYTHING_BYTES = 1 << 30
_RECOVERING = 1


class MetadataInvariants(Observer):
    """Checks of the committed metadata.

    :param partitions: invariants that are notified of changes of partitions.
    :param properties: properties of the nodes. They apply if the topic, the brokers and the cluster have no override.
    :ivar permitted_unclean: partitions, such as `orders-0`, whose unclean election was requested. An entry permits one
        election, at any later time.
    :ivar unclean_elections: number of unclean elections.
    """

    def __init__(self, partitions: PartitionInvariants, properties: dict[str, str]) -> None:
        self.image = MetadataImage()
        self.offset = -1
        self.permitted_unclean: set[str] = set()
        self._properties = properties
        self.unclean_elections = 0
        self._partitions = partitions
        self._ends: list[int] = []
        """Last offset of each batch with changes, ascending; `_changes` has the changed keys at the same index."""
        self._changes: list[tuple[Key, ...]] = []
        self._versions: defaultdict[Key, list[tuple[int, object]]] = defaultdict(list)
        """By key: the offset and the value of each change, ascending."""
        self._topic_ids: set[UUID] = set()
        self._active: dict[int, int] = {}
        """By epoch of the quorum: the active controller."""

    # Events

    def quorum_changed(self, watched: Watched) -> None:
        """Check the active controller."""
        assert watched.node is not None
        controller, state = watched.node.controller, watched.quorum.state
        if controller is None or not controller.is_active:
            return
        if not isinstance(state, Leader):
            detail = f"node {watched.node_id} is the active controller as {state.role.value} of epoch {state.epoch}"
            raise InvariantViolation("one-controller-per-epoch", detail)
        known = self._active.setdefault(state.epoch, watched.node_id)
        if known != watched.node_id:
            detail = f"nodes {known} and {watched.node_id} are active in epoch {state.epoch}"
            raise InvariantViolation("one-controller-per-epoch", detail)

    def metadata_advanced(self, watched: Watched, from_offset: int) -> None:
        """Apply the records up to this node's offset, and compare its image."""
        to_offset = watched.metadata_offset
        if to_offset < from_offset:
            detail = f"the offset of node {watched.node_id} decreases from {from_offset} to {to_offset}"
            raise InvariantViolation("metadata-monotone", detail)
        assert watched.node is not None
        if to_offset > self.offset:
            self._apply_up_to(watched.node, to_offset)
        self._compare(watched, from_offset, to_offset)

    # The log

    def _apply_up_to(self, node: Node, to_offset: int) -> None:
        while self.offset < to_offset:
            log = self._log_with(node, self.offset + 1)
            if log.start_offset > self.offset + 1:
                self._continue_from(node, to_offset)
                return
            data = log.read(self.offset + 1, _EVERYTHING_BYTES)
            if not data:
                raise InvariantViolation("metadata-agree", f"no log has the applied record at {self.offset + 1}")
            self._apply_batches(data, to_offset)

    def _continue_from(self, node: Node, offset: int) -> None:
        """Replace the expected image with that of a node, because no running node has the next record any longer.

        In one event, a leader may commit a record, write a snapshot and delete the log below the snapshot. If the
        follower that had fetched the record is down, no log has the record.
        """
        image, keys = MetadataImage(), set(self._versions)
        for record in node.metadata.image.records():
            keys.update(_keys(record, image))
            image.apply(record)
        changed = tuple(key for key in keys if _value(image, key) != _value(self.image, key))
        for key in changed:
            self._versions[key].append((offset, _value(image, key)))
        self._ends.append(offset)
        self._changes.append(changed)
        self._topic_ids |= image.topics_by_id.keys()
        self.image, self.offset = image, offset

    def _log_with(self, node: Node, offset: int) -> QuorumLog:
        """Return a log with the committed record at an offset: that of the node, or one that agrees with its snapshot.

        Another log may have an uncommitted record at the offset. It is used only if it has the last record of the
        node's latest snapshot: then it equals the snapshot up to there (Raft's log matching).
        """
        snapshot = node.quorum.log.snapshots.latest
        logs = [node.quorum.log, *(other.quorum.log for other in self._partitions.nodes)]
        holding = [log for log in logs if log.start_offset <= offset < log.end_offset]
        agreeing = (
            log
            for log in holding
            if snapshot is None
            or log is node.quorum.log
            or (snapshot.offset <= log.end_offset and log.epoch_for_offset(snapshot.offset - 1) == snapshot.epoch)
        )
        return next(agreeing, node.quorum.log)

    def _apply_batches(self, data: bytes, to_offset: int) -> None:
        position = 0
        while position < len(data):
            header = BatchHeader.parse(data, position)
            if header.base_offset > to_offset:
                return
            if not header.is_control:
                self._apply(header, data[position : position + header.size_bytes])
            self.offset = header.last_offset
            position += header.size_bytes

    def _apply(self, header: BatchHeader, batch: bytes) -> None:
        """Apply a batch atomically, and check its changes."""
        before: dict[Key, object] = {}
        for offset, raw in decode_batches(batch):
            record = None if raw.value is None else decode_metadata_record(raw.value)
            if record is None:
                continue
            was = {key: _value(self.image, key) for key in _keys(record, self.image)}
            before = was | before
            self._check_record(record, header.base_offset, offset)
            self.image.apply(record)
            for key, value in was.items():
                check_record_effect(record, value, _value(self.image, key), offset)
        if not before:
            return
        self._ends.append(header.last_offset)
        self._changes.append(tuple(before))
        for key, then in before.items():
            now = _value(self.image, key)
            self._versions[key].append((header.last_offset, now))
            if isinstance(now, PartitionRecord):
                self._check_partition(then if isinstance(then, PartitionRecord) else None, now)
            elif key[0] == "broker":
                self._check_broker(key[1])

    # Each record

    def _check_record(self, record: MetadataRecord, batch_offset: int, offset: int) -> None:
        match record:
            case TopicRecord():
                if record.name in self.image.topics or record.topic_id in self._topic_ids:
                    detail = f"topic {record.name} with id {record.topic_id} is created at {offset}, and existed before"
                    raise InvariantViolation("ids-unique", detail)
                self._topic_ids.add(record.topic_id)
            case RegisterBrokerRecord():
                self._check_registration(record, batch_offset, offset)
            case ProducerIdsRecord() if record.next_producer_id <= self.image.next_producer_id:
                detail = f"the next producer id is {record.next_producer_id} after {self.image.next_producer_id}"
                raise InvariantViolation("ids-unique", detail)

    def _check_registration(self, record: RegisterBrokerRecord, batch_offset: int, offset: int) -> None:
        known = self.image.brokers.get(record.broker_id)
        is_same = known is not None and known.incarnation_id == record.incarnation_id
        lowest, highest = (known.broker_epoch,) * 2 if known is not None and is_same else (batch_offset, offset)
        if not lowest <= record.broker_epoch <= highest:
            detail = f"broker {record.broker_id} is registered at {offset} with epoch {record.broker_epoch}"
            raise InvariantViolation("broker-epochs-grow", detail)
        for other in self.image.brokers.values():
            if other.broker_id != record.broker_id and set(other.log_dirs) & set(record.log_dirs):
                detail = f"brokers {other.broker_id} and {record.broker_id} have the same directory id"
                raise InvariantViolation("ids-unique", detail)

    # Changes of a batch

    def _check_partition(self, before: PartitionRecord | None, now: PartitionRecord) -> None:
        name = self._name(now)
        if len(set(now.isr)) < len(now.isr) or not now.isr or not set(now.isr) <= set(now.replicas):
            raise InvariantViolation("leader-in-isr", f"{name} has replicas {now.replicas} and the ISR {now.isr}")
        if now.leader != NO_LEADER and now.leader not in now.isr:
            raise InvariantViolation("leader-in-isr", f"{name} is led by {now.leader}, its ISR is {now.isr}")
        self._check_active(name, now)
        if before is not None and before != now:
            self._check_change(name, before, now)

    def _check_change(self, name: str, before: PartitionRecord, now: PartitionRecord) -> None:
        removed = [member for member in before.replicas if member not in now.replicas]
        self._partitions.left_assignment((now.topic_id, now.partition_id), removed)
        has_new_leader = now.leader not in {NO_LEADER, before.leader}
        has_to_grow = now.leader != before.leader or bool(removed)
        if now.partition_epoch <= before.partition_epoch or now.leader_epoch < before.leader_epoch + has_to_grow:
            then = before.leader, before.leader_epoch, before.partition_epoch
            epochs = now.leader, now.leader_epoch, now.partition_epoch
            detail = f"{name}: leader, leader epoch and partition epoch are {epochs} after {then}"
            raise InvariantViolation("partition-epochs-grow", detail)
        # When a reassignment completes, the new leader may have joined the ISR in the same batch.
        has_moved = is_reassigning(before) and not is_reassigning(now)
        if has_moved:
            self._check_moved(name, before, now)
        if has_new_leader and now.leader not in before.isr and not has_moved:
            if not self._may_be_unclean(now) and name not in self.permitted_unclean:
                detail = f"{name} is led by {now.leader}, which was not in the ISR {before.isr}"
                raise InvariantViolation("clean-election", detail)
            self.permitted_unclean.discard(name)
            self.unclean_elections += 1
            self._partitions.elected_uncleanly((now.topic_id, now.partition_id), now.leader_epoch)
            if (now.isr, now.leader_recovery_state) != ((now.leader,), _RECOVERING):
                state = now.isr, now.leader_recovery_state
                detail = f"{name}: {now.leader} was not in the ISR {before.isr}; now ISR and recovery state are {state}"
                raise InvariantViolation("unclean-recovers", detail)
            return
        if now.leader_recovery_state == _RECOVERING != before.leader_recovery_state:
            raise InvariantViolation(
                "unclean-recovers", f"{name}: {now.leader} is recovering without an unclean election"
            )
        joined = [member for member in now.isr if member not in before.isr]
        self._partitions.joined_isr((now.topic_id, now.partition_id), joined)

    @staticmethod
    def _check_moved(name: str, before: PartitionRecord, now: PartitionRecord) -> None:
        """Check a reassignment that has completed. Cancelled reassignments are not checked.

        If the same replicas are added and removed, the replicas after a cancellation and a completion are the same, and
        the reassignment is not checked either.
        """
        target = set(before.replicas) - set(before.removing_replicas)
        may_be_cancelled = set(before.adding_replicas) == set(before.removing_replicas)
        if set(now.replicas) == target and not may_be_cancelled and not target <= set(now.isr):
            detail = f"{name} has moved to {now.replicas}, of which {now.isr} are in sync"
            raise InvariantViolation("moved-in-sync", detail)

    def _check_active(self, name: str, now: PartitionRecord) -> None:
        inactive = [member for member in now.isr if not self.image.is_active(member)]
        if inactive and (now.leader != NO_LEADER or len(now.isr) > 1):
            detail = f"{name}: {inactive} in the ISR {now.isr} are not active; the leader is {now.leader}"
            raise InvariantViolation("fenced-in-isr", detail)

    def _check_broker(self, broker_id: Hashable) -> None:
        if isinstance(broker_id, int) and not self.image.is_active(broker_id):
            for partition in self.image.partitions():
                if broker_id in partition.isr:
                    self._check_active(self._name(partition), partition)

    def _name(self, partition: PartitionRecord) -> str:
        return f"{self.image.topics_by_id[partition.topic_id].name}-{partition.partition_id}"

    def _may_be_unclean(self, partition: PartitionRecord) -> bool:
        """Whether an unclean election is permitted.

        An override of the topic decides. Without one, the election is permitted if an override of any broker or the
        cluster default permits it. Without a cluster default, the properties of the nodes apply. Kafka uses only the
        overrides of the active controller, not those of all brokers.
        """
        image = self.image
        brokers = [image.overrides(ResourceType.BROKER, str(broker_id)) for broker_id in image.brokers]
        if UNCLEAN_ELECTION not in (topic := image.topic_overrides(image.topics_by_id[partition.topic_id].name)):
            if any(_permits(properties) for properties in brokers):
                return True
            cluster = image.overrides(ResourceType.BROKER, CLUSTER_DEFAULT)
            return _permits(cluster if UNCLEAN_ELECTION in cluster else self._properties)
        return _permits(topic)

    # Each node's image

    def _compare(self, watched: Watched, from_offset: int, to_offset: int) -> None:
        assert watched.node is not None
        first = bisect_right(self._ends, from_offset)
        last = bisect_right(self._ends, to_offset)
        for keys in self._changes[first:last]:
            for key in keys:
                self._compare_key(watched, key, to_offset)

    def compare_all(self, watched: Watched) -> None:
        """Compare the whole image of a node with the expected image, and with an image loaded from its snapshot."""
        assert watched.node is not None
        image, again = watched.node.metadata.image, MetadataImage()
        for record in image.records():
            read = decode_metadata_record(encode_metadata_record(record))
            assert read is not None
            again.apply(read)
        for key in self._versions:
            self._compare_key(watched, key, watched.metadata_offset)
            if _value(again, key) != _value(image, key):
                detail = f"node {watched.node_id}: {key} is {_value(image, key)}, after a snapshot {_value(again, key)}"
                raise InvariantViolation("snapshot-is-image", detail)

    def _compare_key(self, watched: Watched, key: Key, offset: int) -> None:
        assert watched.node is not None
        found = _value(watched.node.metadata.image, key)
        versions = self._versions[key]
        number = bisect_right(versions, offset, key=itemgetter(0)) - 1
        expected = versions[number][1] if number >= 0 else None
        if found != expected:
            detail = f"node {watched.node_id} has {found} for {key} at offset {offset}, not {expected}"
            raise InvariantViolation("metadata-agree", detail)


def _permits(properties: Mapping[str, str]) -> bool:
    return str(properties.get(UNCLEAN_ELECTION, "false")).lower() == "true"


def _keys(record: MetadataRecord, image: MetadataImage) -> Iterator[Key]:  # noqa: C901 - a table
    """Yield the keys that a record changes."""
    match record:
        case TopicRecord():
            yield "topic", record.topic_id
        case PartitionRecord() | PartitionChangeRecord():
            yield "partition", record.topic_id, record.partition_id
        case RemoveTopicRecord():
            yield "topic", record.topic_id
            topic = image.topics_by_id[record.topic_id]
            for index in topic.partitions:
                yield "partition", record.topic_id, index
            for name in image.topic_overrides(topic.name):
                yield "config", ResourceType.TOPIC, topic.name, name
        case ConfigRecord():
            yield "config", record.resource_type, record.resource_name, record.name
        case FeatureLevelRecord():
            yield "feature", record.name
        case ProducerIdsRecord():
            yield ("producer-ids",)
        case RegisterControllerRecord():
            yield "controller", record.controller_id
        case RegisterBrokerRecord() | UnregisterBrokerRecord() | BrokerRegistrationChangeRecord():
            yield "broker", record.broker_id
        case FenceBrokerRecord() | UnfenceBrokerRecord():
            yield "broker", record.id
        case NoOpRecord():
            pass
        case _:
            assert_never(record)


_GETTERS: dict[Hashable, Callable[..., object]] = {
    "topic": lambda image, topic_id: getattr(image.topics_by_id.get(topic_id), "name", None),
    "partition": lambda image, topic_id, index: image.partition_by_id(topic_id, index),
    "config": lambda image, kind, resource, name: image.overrides(kind, resource).get(name),
    "feature": lambda image, name: image.features.get(name),
    "producer-ids": lambda image: image.next_producer_id,
    "controller": lambda image, node_id: image.controllers.get(node_id),
    "broker": lambda image, node_id: image.brokers.get(node_id),
}


def _value(image: MetadataImage, key: Key) -> object:
    return _GETTERS[key[0]](image, *key[1:])
