"""The records of `__consumer_offsets` that say what a group has committed, in kio's manner.

Source: `common/message/OffsetCommit{Key,Value}.json` in Kafka's `kafka-group-coordinator` jar, version 4.3. A key is
led by its record type (1), a value by its version (3), each an int16. A null value (a tombstone) takes the offset away.
"""

import io
import struct
from dataclasses import dataclass, field
from typing import Any, ClassVar

from kio.serial import entity_reader, entity_writer
from kio.static.constants import EntityType

_VERSION = struct.Struct(">h")
_OFFSET_COMMIT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetCommitKey:
    """What an offset is committed for."""

    __type__: ClassVar = EntityType.data
    __version__: ClassVar[int] = 0
    __flexible__: ClassVar[bool] = False
    group: str = field(metadata={"kafka_type": "string"})
    topic: str = field(metadata={"kafka_type": "string"})
    partition: int = field(metadata={"kafka_type": "int32"})


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetCommitValue:
    """The offset that a consumer goes on from, the leader epoch of the record before it (KIP-320), and a note."""

    __type__: ClassVar = EntityType.data
    __version__: ClassVar[int] = 3
    __flexible__: ClassVar[bool] = False
    offset: int = field(metadata={"kafka_type": "int64"})
    leader_epoch: int = field(metadata={"kafka_type": "int32"}, default=-1)
    metadata: str = field(metadata={"kafka_type": "string"})
    commit_timestamp: int = field(metadata={"kafka_type": "int64"})


def encode_offset_commit(key: OffsetCommitKey, value: OffsetCommitValue | None) -> tuple[bytes, bytes | None]:
    """Key and value of a record; no value is a tombstone."""
    return _encode(_OFFSET_COMMIT, key), None if value is None else _encode(OffsetCommitValue.__version__, value)


def decode_offset_commit(key: bytes, value: bytes | None) -> tuple[OffsetCommitKey, OffsetCommitValue | None] | None:
    """The commit in a record; null for the other record types of the topic."""
    if _VERSION.unpack_from(key)[0] != _OFFSET_COMMIT:
        return None
    return _decode(OffsetCommitKey, key), None if value is None else _decode(OffsetCommitValue, value)


def _encode(leading: int, entity: Any) -> bytes:
    buffer = io.BytesIO()
    buffer.write(_VERSION.pack(leading))
    entity_writer(type(entity))(buffer, entity)
    return buffer.getvalue()


def _decode(entity_type: Any, data: bytes) -> Any:
    return entity_reader(entity_type)(data, _VERSION.size)[0]
