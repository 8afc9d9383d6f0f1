"""Invariants of the committed offsets of consumer groups.

| name                    | what must hold                                                                            |
|-------------------------|-------------------------------------------------------------------------------------------|
| `group-offset-stays`    | an acknowledged offset commit is in a batch of `__consumer_offsets` that stays committed  |
| `group-offsets-fit-log` | a coordinator's offsets are those of the records below the high watermark                 |
| `group-offsets-loaded`  | in a healthy cluster, a coordinator has loaded the partitions of `__consumer_offsets`     |
|                         | that it leads, except those whose load has failed (`CoordinatorRuntime`, state FAILED)    |
"""

from collections.abc import Iterator

from kio.serial.errors import DecodeError

from reference_broker.core.group_coordinator import partition_for_group
from reference_broker.core.node import Node
from reference_broker.core.replication.partition import Partition
from reference_broker.core.topic_names import CONSUMER_OFFSETS_TOPIC
from reference_broker.protocol.group_records import OffsetCommitKey, OffsetCommitValue, decode_offset_commit
from reference_broker.protocol.records import KeyValue, decode_batches, next_offset
from reference_broker.simulation.invariants.log_mirror import Batch
from reference_broker.simulation.invariants.partitions import Ledger, PartitionInvariants
from reference_broker.simulation.invariants.violation import InvariantViolation
from reference_broker.simulation.invariants.watch import PartitionKey, Replica, Watch

Entry = tuple[str, str, int]
"""Key of a committed offset: group, topic and partition."""
_UNLIMITED_BYTES = 1 << 30


class GroupOffsetInvariants:
    """Checks of the offset commits that were acknowledged to clients, and of the coordinators' offsets."""

    def __init__(self, watch: Watch, partitions: PartitionInvariants) -> None:
        self._watch = watch
        self._partitions = partitions
        self._last: dict[Entry, Batch] = {}
        """The batch with the last acknowledged commit of each entry."""

    def acknowledged(self, group: str, topic: str, partition: int, offset: int) -> None:
        """Find and record the batch of a commit whose acknowledgement a client has received.

        If no open replica has all committed batches, they cannot be read, and nothing is recorded. The commit may be
        missing if the loss of a committed batch of the partition was permitted.

        :raises InvariantViolation: `group-offset-stays`.
        """
        found = self._partition_of(group)
        if found is None:
            detail = f"group {group} has committed {offset}; its partition of {CONSUMER_OFFSETS_TOPIC} does not exist"
            raise InvariantViolation("group-offset-stays", detail)
        key, ledger = found
        replica = self._complete_replica(key, ledger)
        if replica is None and ledger.committed:
            return
        for batch in reversed(ledger.committed):
            assert replica is not None
            for commit, value in _commits(replica, batch):
                if (commit.group, commit.topic, commit.partition) == (group, topic, partition) and (
                    value is not None and value.offset == offset
                ):
                    self._last[group, topic, partition] = batch
                    return
        if not ledger.given_up:
            detail = (
                f"no committed record has offset {offset} of {topic}-{partition}, which group {group} has committed"
            )
            raise InvariantViolation("group-offset-stays", detail)

    def _partition_of(self, group: str) -> tuple[PartitionKey, Ledger] | None:
        """Return the group's partition of `__consumer_offsets` and its ledger; None if the partition is unknown."""
        ledgers = {
            key: ledger for key, ledger in self._partitions.ledgers.items() if ledger.name[0] == CONSUMER_OFFSETS_TOPIC
        }
        if not ledgers:
            return None
        index = partition_for_group(group, self._partition_count())
        return next(((key, ledger) for key, ledger in ledgers.items() if ledger.name[1] == index), None)

    def _partition_count(self) -> int:
        """Return the number of partitions of `__consumer_offsets`, from the newest metadata of a running node."""
        nodes = [watched.node for watched in self._watch.nodes.values() if watched.node is not None]
        newest = max(nodes, key=lambda node: node.metadata.offset)
        return len(newest.metadata.image.topics[CONSUMER_OFFSETS_TOPIC].partitions)

    def _complete_replica(self, key: PartitionKey, ledger: Ledger) -> Replica | None:
        """Return an open replica that has the last committed batch, and therefore all committed batches."""
        for watched in self._watch.nodes.values():
            replica = watched.replicas.get(key)
            if replica is not None and replica.partition is not None and ledger.last_committed is not None:
                found = replica.log.holding(ledger.last_committed.base_offset)
                if found is not None and found.is_same_as(ledger.last_committed):
                    return replica
        return None

    def check_everything(self) -> None:
        """Check all acknowledged commits and all coordinators. The cluster must be healthy."""
        for entry, batch in self._last.items():
            found = self._partition_of(entry[0])
            assert found is not None
            _, ledger = found
            is_known = any(batch.is_same_as(known) for known in (*ledger.committed, *ledger.given_up))
            if not is_known and batch.last_offset >= ledger.highest_start:
                detail = f"{entry} was committed in {batch}, which is no longer among the committed batches"
                raise InvariantViolation("group-offset-stays", detail)
        for watched in self._watch.nodes.values():
            if watched.node is not None:
                check_coordinator(watched.node)


def check_coordinator(node: Node) -> None:
    """Compare the offsets that a node has loaded as a coordinator with those in its logs."""
    if node.broker is None:
        return
    for offsets in node.broker.groups.led.values():
        if not offsets.is_loaded:
            detail = f"node {node.runtime.identity.node_id} has not loaded partition {offsets.partition.index}"
            raise InvariantViolation("group-offsets-loaded", detail)
        expected = _from_log(offsets.partition)
        groups = sorted({group for group, _, _ in expected} | set(offsets.groups))
        for group in groups:
            known = {(group, *partition): value for partition, value in offsets.committed(group).items()}
            wanted = {entry: value for entry, value in expected.items() if entry[0] == group}
            if known != wanted:
                detail = f"node {node.runtime.identity.node_id} has {known}, the log has {wanted}"
                raise InvariantViolation("group-offsets-fit-log", detail)


def _from_log(partition: Partition) -> dict[Entry, OffsetCommitValue]:
    """Return the committed offsets according to the records below the high watermark."""
    expected: dict[Entry, OffsetCommitValue] = {}
    offset = partition.log_start_offset
    while data := partition.log.read(offset, _UNLIMITED_BYTES, partition.high_watermark):
        offset = next_offset(data)
        for _, record in decode_batches(data):
            commit = _commit(record)
            if commit is not None:
                key, value = commit
                expected.pop((key.group, key.topic, key.partition), None)
                if value is not None:
                    expected[key.group, key.topic, key.partition] = value
    return expected


def _commits(replica: Replica, batch: Batch) -> Iterator[tuple[OffsetCommitKey, OffsetCommitValue | None]]:
    """Yield the commits in a batch of a replica."""
    assert replica.partition is not None
    data = replica.partition.log.read(batch.base_offset, 1, batch.last_offset + 1)  # a read returns at least one batch
    for _, record in decode_batches(data):
        commit = _commit(record)
        if commit is not None:
            yield commit


def _commit(record: KeyValue) -> tuple[OffsetCommitKey, OffsetCommitValue | None] | None:
    """Return the commit in a record; None if the record is of another kind, or cannot be decoded."""
    try:
        return None if record.key is None else decode_offset_commit(record.key, record.value)
    except DecodeError:
        return None
