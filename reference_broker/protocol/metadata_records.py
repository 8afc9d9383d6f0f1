"""The records of `__cluster_metadata-0`, in kio's manner; kio has the messages of the protocol, but not these.

Source: `common/metadata/*.json` in Kafka's `kafka-metadata` jar, version 4.3. Only the types that this broker writes
are here, each in one version. The value of a metadata record is a frame: a version of the framing (1), the record's
API key and its version, as unsigned varints, then the body (`MetadataRecordSerde`). Its key is null. Kafka's
`kafka-dump-log --cluster-metadata-decoder` reads them.
"""

import io
from dataclasses import dataclass, field
from typing import Any, ClassVar
from uuid import UUID

from kio.serial import entity_reader, entity_writer
from kio.serial.readers import read_unsigned_varint
from kio.serial.writers import write_unsigned_varint
from kio.static.constants import EntityType
from kio.static.primitive import uvarint

_FRAME_VERSION = 1

_INT8 = {"kafka_type": "int8"}
_INT16 = {"kafka_type": "int16"}
_UINT16 = {"kafka_type": "uint16"}
_INT32 = {"kafka_type": "int32"}
_INT64 = {"kafka_type": "int64"}
_BOOL = {"kafka_type": "bool"}
_STRING = {"kafka_type": "string"}
_UUID = {"kafka_type": "uuid"}


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerEndpoint:
    """A listener of a registered broker. Security protocol 0 is PLAINTEXT."""

    __type__: ClassVar = EntityType.nested
    __version__: ClassVar[int] = 3
    __flexible__: ClassVar[bool] = True
    name: str = field(metadata=_STRING)
    host: str = field(metadata=_STRING)
    port: int = field(metadata=_UINT16)
    security_protocol: int = field(metadata=_INT16, default=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerFeature:
    """A range of feature levels that a broker can run at."""

    __type__: ClassVar = EntityType.nested
    __version__: ClassVar[int] = 3
    __flexible__: ClassVar[bool] = True
    name: str = field(metadata=_STRING)
    min_supported_version: int = field(metadata=_INT16)
    max_supported_version: int = field(metadata=_INT16)


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterBrokerRecord:
    """A broker joined (KIP-631). Its epoch is the offset of this record, so it grows with every registration."""

    __type__: ClassVar = EntityType.data
    __version__: ClassVar[int] = 3
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[int] = 0
    broker_id: int = field(metadata=_INT32)
    is_migrating_zk_broker: bool = field(metadata=_BOOL, default=False)
    incarnation_id: UUID = field(metadata=_UUID)
    broker_epoch: int = field(metadata=_INT64)
    end_points: tuple[BrokerEndpoint, ...]
    features: tuple[BrokerFeature, ...]
    rack: str | None = field(metadata=_STRING, default=None)
    fenced: bool = field(metadata=_BOOL, default=True)
    in_controlled_shutdown: bool = field(metadata=_BOOL, default=False)
    log_dirs: tuple[UUID, ...] = field(metadata={**_UUID, "tag": 0}, default=())


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRecord:
    """A topic was created (KIP-516: the id outlives no deletion, the name may come again)."""

    __type__: ClassVar = EntityType.data
    __version__: ClassVar[int] = 0
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[int] = 2
    name: str = field(metadata=_STRING)
    topic_id: UUID = field(metadata=_UUID)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionRecord:
    """All of a partition's state: replicas in preferred order, in-sync replicas, leader and its epoch (KIP-497)."""

    __type__: ClassVar = EntityType.data
    __version__: ClassVar[int] = 1
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[int] = 3
    partition_id: int = field(metadata=_INT32, default=-1)
    topic_id: UUID = field(metadata=_UUID)
    replicas: tuple[int, ...] = field(metadata=_INT32)
    isr: tuple[int, ...] = field(metadata=_INT32)
    removing_replicas: tuple[int, ...] = field(metadata=_INT32, default=())
    adding_replicas: tuple[int, ...] = field(metadata=_INT32, default=())
    leader: int = field(metadata=_INT32, default=-1)
    leader_recovery_state: int = field(metadata={**_INT8, "tag": 0}, default=0)
    leader_epoch: int = field(metadata=_INT32, default=-1)
    partition_epoch: int = field(metadata=_INT32, default=-1)
    directories: tuple[UUID, ...] = field(metadata=_UUID)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigRecord:
    """One property of a topic (type 2) or a broker (type 4) was set; a null value takes it away."""

    __type__: ClassVar = EntityType.data
    __version__: ClassVar[int] = 0
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[int] = 4
    resource_type: int = field(metadata=_INT8)
    resource_name: str = field(metadata=_STRING)
    name: str = field(metadata=_STRING)
    value: str | None = field(metadata=_STRING)


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveTopicRecord:
    """A topic was deleted, and with it its partitions and its configuration."""

    __type__: ClassVar = EntityType.data
    __version__: ClassVar[int] = 0
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[int] = 9
    topic_id: UUID = field(metadata=_UUID)


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureLevelRecord:
    """The level of a feature that is in force (KIP-584). `metadata.version` opens every metadata log."""

    __type__: ClassVar = EntityType.data
    __version__: ClassVar[int] = 0
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[int] = 12
    name: str = field(metadata=_STRING)
    feature_level: int = field(metadata=_INT16)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerIdsRecord:
    """A block of producer ids was given to a broker (KIP-730); `next_producer_id` is the first one still free."""

    __type__: ClassVar = EntityType.data
    __version__: ClassVar[int] = 0
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[int] = 15
    broker_id: int = field(metadata=_INT32)
    broker_epoch: int = field(metadata=_INT64, default=-1)
    next_producer_id: int = field(metadata=_INT64)


MetadataRecord = (
    RegisterBrokerRecord
    | TopicRecord
    | PartitionRecord
    | ConfigRecord
    | RemoveTopicRecord
    | FeatureLevelRecord
    | ProducerIdsRecord
)

_RECORD_TYPES: dict[int, Any] = {
    record_type.__api_key__: record_type
    for record_type in (
        RegisterBrokerRecord,
        TopicRecord,
        PartitionRecord,
        ConfigRecord,
        RemoveTopicRecord,
        FeatureLevelRecord,
        ProducerIdsRecord,
    )
}


def encode_metadata_record(record: MetadataRecord) -> bytes:
    """The value of a record of the metadata log."""
    buffer = io.BytesIO()
    for number in (_FRAME_VERSION, record.__api_key__, record.__version__):
        write_unsigned_varint(buffer, uvarint(number))
    writer: Any = entity_writer(type(record))
    writer(buffer, record)
    return buffer.getvalue()


def decode_metadata_record(value: bytes) -> MetadataRecord:
    """The record in a value. Raises `ValueError` for a type or version that this broker does not write."""
    position = 0
    numbers = []
    for _ in range(3):
        number, size = read_unsigned_varint(value, position)
        numbers.append(int(number))
        position += size
    frame_version, api_key, version = numbers
    record_type = _RECORD_TYPES.get(api_key)
    if frame_version != _FRAME_VERSION or record_type is None or record_type.__version__ != version:
        raise ValueError(f"a metadata record of type {api_key} version {version} in frame version {frame_version}")
    record: MetadataRecord = entity_reader(record_type)(value, position)[0]
    return record
