"""What groups have committed: the half of the group coordinator that a consumer without membership needs.

Rules of this file:
- A commit is a record in `__consumer_offsets`, in the partition that the group's name hashes to; the state here is what
  these records say, so it survives a restart. `records` and `apply` are the two halves, as everywhere in the core.
- There are no members yet, so every group is empty and only a commit without a member is lawful (KIP-211's simple
  consumer). Membership (JoinGroup, KIP-848) brings the other half.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from reference_broker.core.clock import Now
from reference_broker.core.metadata.image import MetadataImage
from reference_broker.core.replication.partition import Partition
from reference_broker.core.replication.replicas import Replicas
from reference_broker.core.replay import records_of
from reference_broker.core.topic_names import CONSUMER_OFFSETS_TOPIC
from reference_broker.protocol.group_records import (
    OffsetCommitKey,
    OffsetCommitValue,
    decode_offset_commit,
    encode_offset_commit,
)
from reference_broker.protocol.records import KeyValue, encode_batch


def java_hash(text: str) -> int:
    """Java's `String.hashCode`, on UTF-16 units, which decides a group's partition in every Kafka cluster."""
    units = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for position in range(0, len(units), 2):
        value = (31 * value + int.from_bytes(units[position : position + 2], "big")) & 0xFFFFFFFF
    return value - 2**32 if value >= 2**31 else value


def partition_for_group(group: str, num_partitions: int) -> int:
    """The partition of `__consumer_offsets` that keeps a group. Kafka's `Utils.abs` makes 0 of the lowest integer."""
    hashed = java_hash(group)
    return (0 if hashed == -(2**31) else abs(hashed)) % num_partitions


class GroupOffsets:
    """Committed offsets by group, topic and partition."""

    def __init__(self, partitions: Replicas, image: MetadataImage) -> None:
        self._partitions = partitions
        self._image = image
        self._committed: defaultdict[str, dict[tuple[str, int], OffsetCommitValue]] = defaultdict(dict)

    def load(self) -> None:
        """Read `__consumer_offsets` from its start."""
        for partition in self._partitions:
            if partition.topic == CONSUMER_OFFSETS_TOPIC:
                for record in records_of(partition.log):
                    commit = None if record.key is None else decode_offset_commit(record.key, record.value)
                    if commit is not None:
                        self._apply(*commit)

    def exists(self, group: str) -> bool:
        """Whether the group has committed anything that still stands."""
        return group in self._committed

    def committed(self, group: str) -> Mapping[tuple[str, int], OffsetCommitValue]:
        """All that a group has committed."""
        return self._committed.get(group, {})

    def commit(self, offsets: Iterable[tuple[OffsetCommitKey, OffsetCommitValue | None]], group: str, now: Now) -> None:
        """Write commits of one group down, null taking one away, and hold them. Raises `AppendError`."""
        offsets = list(offsets)
        if not offsets:
            return
        records = [KeyValue(*encode_offset_commit(key, value)) for key, value in offsets]
        partition = self._partition_of(group)
        partition.log.append(
            encode_batch(records, now.wall_ms), leader_epoch=partition.leader_epoch, now_ms=now.wall_ms
        )
        for key, value in offsets:
            self._apply(key, value)

    def forget_topic(self, topic: str, now: Now) -> None:
        """A deleted topic's offsets go with it."""
        for group, offsets in tuple(self._committed.items()):
            gone = [
                OffsetCommitKey(group=group, topic=topic, partition=index) for name, index in offsets if name == topic
            ]
            self.commit([(key, None) for key in gone], group, now)

    def _apply(self, key: OffsetCommitKey, value: OffsetCommitValue | None) -> None:
        if value is not None:
            self._committed[key.group][key.topic, key.partition] = value
        elif key.group in self._committed:
            self._committed[key.group].pop((key.topic, key.partition), None)
            if not self._committed[key.group]:
                del self._committed[key.group]

    def _partition_of(self, group: str) -> Partition:
        num_partitions = len(self._image.topics[CONSUMER_OFFSETS_TOPIC].partitions)
        partition = self._partitions.get(CONSUMER_OFFSETS_TOPIC, partition_for_group(group, num_partitions))
        assert partition is not None
        return partition
