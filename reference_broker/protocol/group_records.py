"""Records of committed offsets in `__consumer_offsets`, as dataclasses of kio's form.

Follows: org.apache.kafka.coordinator.group.GroupCoordinatorRecordSerde.

The schemas are `common/message/OffsetCommit{Key,Value}.json` in the `kafka-group-coordinator` jar of Kafka 4.3. A key
starts with its record type, an int16 (1, in very old logs 0). A value starts with its version, an int16. A null value
(tombstone) deletes the offset.

Values are written in version 3. Other versions can be read too. Versions 0 to 2 have no leader epoch. Version 1 has an
expiry timestamp at its end, and version 4 a topic id as a tagged field; both are ignored.
"""

import struct
from dataclasses import dataclass, field
from typing import Any, ClassVar
from uuid import UUID

from kio.serial import entity_reader
from kio.static.constants import EntityType

from reference_broker.protocol.encoding import encoder

_VERSION = struct.Struct(">h")
_OFFSET_COMMIT = 1
_LEGACY_OFFSET_COMMIT = 0
_WITH_LEADER_EPOCH = 3
_VALUE_VERSIONS = range(5)


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetCommitKey:
    """Group and partition of a committed offset."""

    __type__: ClassVar = EntityType.data
    __version__: ClassVar[int] = 0
    __flexible__: ClassVar[bool] = False
    group: str = field(metadata={"kafka_type": "string"})
    topic: str = field(metadata={"kafka_type": "string"})
    partition: int = field(metadata={"kafka_type": "int32"})


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetCommitValue:
    """Committed offset, leader epoch of the last consumed record (KIP-320), the client's metadata, and the commit time.

    `commit_timestamp` is in milliseconds.
    """

    __type__: ClassVar = EntityType.data
    __version__: ClassVar[int] = 3
    __flexible__: ClassVar[bool] = False
    offset: int = field(metadata={"kafka_type": "int64"})
    leader_epoch: int = field(metadata={"kafka_type": "int32"}, default=-1)
    metadata: str = field(metadata={"kafka_type": "string"})
    commit_timestamp: int = field(metadata={"kafka_type": "int64"})


@dataclass(frozen=True, slots=True, kw_only=True)
class _ValueWithoutEpoch:
    """Versions 0 to 2. The expiry timestamp, which only version 1 has, is not a field here."""

    __type__: ClassVar = EntityType.data
    __version__: ClassVar[int] = 0
    __flexible__: ClassVar[bool] = False
    offset: int = field(metadata={"kafka_type": "int64"})
    metadata: str = field(metadata={"kafka_type": "string"})
    commit_timestamp: int = field(metadata={"kafka_type": "int64"})


@dataclass(frozen=True, slots=True, kw_only=True)
class _ValueWithTopicId:
    """Version 4."""

    __type__: ClassVar = EntityType.data
    __version__: ClassVar[int] = 4
    __flexible__: ClassVar[bool] = True
    offset: int = field(metadata={"kafka_type": "int64"})
    leader_epoch: int = field(metadata={"kafka_type": "int32"}, default=-1)
    metadata: str = field(metadata={"kafka_type": "string"})
    commit_timestamp: int = field(metadata={"kafka_type": "int64"})
    topic_id: UUID | None = field(metadata={"kafka_type": "uuid", "tag": 0}, default=None)


def encode_offset_commit(key: OffsetCommitKey, value: OffsetCommitValue | None) -> tuple[bytes, bytes | None]:
    """Return key and value of a record; the value of a tombstone is null."""
    return _encode(_OFFSET_COMMIT, key), None if value is None else _encode(OffsetCommitValue.__version__, value)


def decode_offset_commit(key: bytes, value: bytes | None) -> tuple[OffsetCommitKey, OffsetCommitValue | None] | None:
    """Return the commit in a record, or null for the other record types of the topic.

    :raises Exception: key or value is malformed; kio and `struct` raise different exceptions.
    """
    if _VERSION.unpack_from(key)[0] not in {_OFFSET_COMMIT, _LEGACY_OFFSET_COMMIT}:
        return None
    return _decode(OffsetCommitKey, key), None if value is None else _decode_value(value)


def _decode_value(data: bytes) -> OffsetCommitValue:
    version = _VERSION.unpack_from(data)[0]
    if version not in _VALUE_VERSIONS:
        raise ValueError(f"an offset commit value has version {version}; 0 to {_VALUE_VERSIONS[-1]} are supported")
    if version == _WITH_LEADER_EPOCH:
        value: OffsetCommitValue = _decode(OffsetCommitValue, data)
        return value
    found = _decode(_ValueWithoutEpoch if version < _WITH_LEADER_EPOCH else _ValueWithTopicId, data)
    return OffsetCommitValue(
        offset=found.offset,
        leader_epoch=getattr(found, "leader_epoch", -1),
        metadata=found.metadata,
        commit_timestamp=found.commit_timestamp,
    )


def _encode(leading: int, entity: Any) -> bytes:
    return _VERSION.pack(leading) + encoder(type(entity))(entity)


def _decode(entity_type: Any, data: bytes) -> Any:
    return entity_reader(entity_type)(data, _VERSION.size)[0]
