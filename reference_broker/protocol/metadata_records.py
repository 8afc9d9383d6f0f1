"""The records of `__cluster_metadata-0`, in kio's manner; kio has the messages of the protocol, but not these.

Source: `common/metadata/*.json` in Kafka's `kafka-metadata` jar, version 4.3.1, with which a test compares every field.
A record is written in its newest version, which is what `metadata.version` 4.3-IV0 asks for. Older versions are read:
a field that they lack takes its default (`since` in a field's metadata says from which version on it is there; a tagged
field may be absent from any).

The value of a metadata record is a frame: a version of the framing (1), the record's API key and its version, as
unsigned varints, then the body (`MetadataRecordSerde`). Its key is null. Kafka's
`kafka-dump-log --cluster-metadata-decoder` reads them.
"""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any, ClassVar, get_args
from uuid import UUID

from kio.serial import entity_reader
from kio.serial.readers import read_unsigned_varint
from kio.static.constants import EntityType

from reference_broker.protocol.encoding import encoder, varint

NO_LEADER = -1
NO_LEADER_CHANGE = -2
"""The leader of a `PartitionChangeRecord` that leaves leader and leader epoch as they are."""

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
    """A listener of a registered broker or controller. Security protocol 0 is PLAINTEXT."""

    __type__: ClassVar = EntityType.nested
    __version__: ClassVar[int] = 4
    __flexible__: ClassVar[bool] = True
    name: str = field(metadata=_STRING)
    host: str = field(metadata=_STRING)
    port: int = field(metadata=_UINT16)
    security_protocol: int = field(metadata=_INT16, default=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerFeature:
    """A range of feature levels that a broker or controller can run at."""

    __type__: ClassVar = EntityType.nested
    __version__: ClassVar[int] = 4
    __flexible__: ClassVar[bool] = True
    name: str = field(metadata=_STRING)
    min_supported_version: int = field(metadata=_INT16)
    max_supported_version: int = field(metadata=_INT16)


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterBrokerRecord:
    """A broker joined (KIP-631). Its epoch is the offset of this record, so it grows with every registration."""

    __type__: ClassVar = EntityType.data
    __version__: ClassVar[int] = 4
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[int] = 0
    broker_id: int = field(metadata=_INT32)
    is_migrating_zk_broker: bool = field(metadata={**_BOOL, "since": 2}, default=False)
    incarnation_id: UUID = field(metadata=_UUID)
    broker_epoch: int = field(metadata=_INT64)
    end_points: tuple[BrokerEndpoint, ...]
    features: tuple[BrokerFeature, ...]
    rack: str | None = field(metadata=_STRING, default=None)
    fenced: bool = field(metadata=_BOOL, default=True)
    in_controlled_shutdown: bool = field(metadata={**_BOOL, "since": 1}, default=False)
    log_dirs: tuple[UUID, ...] = field(metadata={**_UUID, "tag": 0}, default=())
    cordoned_log_dirs: tuple[UUID, ...] | None = field(metadata={**_UUID, "tag": 1}, default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnregisterBrokerRecord:
    """A broker left for good; its epoch has to be that of its registration."""

    __type__: ClassVar = EntityType.data
    __version__: ClassVar[int] = 0
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[int] = 1
    broker_id: int = field(metadata=_INT32)
    broker_epoch: int = field(metadata=_INT64)


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
    """All of a partition's state: replicas in preferred order, in-sync replicas, leader and its epoch (KIP-497).

    `directories` are those of the replicas, in their order (KIP-858); null for one that is not known.
    """

    __type__: ClassVar = EntityType.data
    __version__: ClassVar[int] = 2
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[int] = 3
    partition_id: int = field(metadata=_INT32, default=-1)
    topic_id: UUID = field(metadata=_UUID)
    replicas: tuple[int, ...] = field(metadata=_INT32)
    isr: tuple[int, ...] = field(metadata=_INT32)
    removing_replicas: tuple[int, ...] = field(metadata=_INT32, default=())
    adding_replicas: tuple[int, ...] = field(metadata=_INT32, default=())
    leader: int = field(metadata=_INT32, default=NO_LEADER)
    leader_recovery_state: int = field(metadata={**_INT8, "tag": 0}, default=0)
    leader_epoch: int = field(metadata=_INT32, default=-1)
    partition_epoch: int = field(metadata=_INT32, default=-1)
    directories: tuple[UUID | None, ...] = field(metadata={**_UUID, "since": 1}, default=())
    eligible_leader_replicas: tuple[int, ...] | None = field(metadata={**_INT32, "tag": 1}, default=None)
    last_known_elr: tuple[int, ...] | None = field(metadata={**_INT32, "tag": 2}, default=None)


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
class PartitionChangeRecord:
    """Part of a partition's state changed; what is null, or a number that means so, did not.

    The partition epoch grows by one with each of these, the leader epoch with each that gives a leader, be it the same.
    """

    __type__: ClassVar = EntityType.data
    __version__: ClassVar[int] = 2
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[int] = 5
    partition_id: int = field(metadata=_INT32, default=-1)
    topic_id: UUID = field(metadata=_UUID)
    isr: tuple[int, ...] | None = field(metadata={**_INT32, "tag": 0}, default=None)
    leader: int = field(metadata={**_INT32, "tag": 1}, default=NO_LEADER_CHANGE)
    replicas: tuple[int, ...] | None = field(metadata={**_INT32, "tag": 2}, default=None)
    removing_replicas: tuple[int, ...] | None = field(metadata={**_INT32, "tag": 3}, default=None)
    adding_replicas: tuple[int, ...] | None = field(metadata={**_INT32, "tag": 4}, default=None)
    leader_recovery_state: int = field(metadata={**_INT8, "tag": 5}, default=-1)
    directories: tuple[UUID | None, ...] | None = field(metadata={**_UUID, "tag": 8}, default=None)
    eligible_leader_replicas: tuple[int, ...] | None = field(metadata={**_INT32, "tag": 6}, default=None)
    last_known_elr: tuple[int, ...] | None = field(metadata={**_INT32, "tag": 7}, default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class FenceBrokerRecord:
    """A broker may not lead any more. Written before metadata version 3.3-IV2; see `BrokerRegistrationChangeRecord`."""

    __type__: ClassVar = EntityType.data
    __version__: ClassVar[int] = 0
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[int] = 7
    id: int = field(metadata=_INT32)
    epoch: int = field(metadata=_INT64)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnfenceBrokerRecord:
    """A broker may lead again. Written before metadata version 3.3-IV2; see `BrokerRegistrationChangeRecord`."""

    __type__: ClassVar = EntityType.data
    __version__: ClassVar[int] = 0
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[int] = 8
    id: int = field(metadata=_INT32)
    epoch: int = field(metadata=_INT64)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerRegistrationChangeRecord:
    """A registered broker changed (KIP-841).

    `fenced`: 1 it is now, -1 it is no more, 0 as before. `in_controlled_shutdown`: 1 it is now, 0 as before. Empty
    `log_dirs`: as before.
    """

    __type__: ClassVar = EntityType.data
    __version__: ClassVar[int] = 3
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[int] = 17
    broker_id: int = field(metadata=_INT32)
    broker_epoch: int = field(metadata=_INT64)
    fenced: int = field(metadata={**_INT8, "tag": 0}, default=0)
    in_controlled_shutdown: int = field(metadata={**_INT8, "tag": 1}, default=0)
    log_dirs: tuple[UUID, ...] = field(metadata={**_UUID, "tag": 2}, default=())
    cordoned_log_dirs: tuple[UUID, ...] | None = field(metadata={**_UUID, "tag": 3}, default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class NoOpRecord:
    """Nothing (KIP-835): it moves the high watermark on, by which an idle cluster shows that it lives."""

    __type__: ClassVar = EntityType.data
    __version__: ClassVar[int] = 0
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[int] = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterControllerRecord:
    """A controller told where it is and what it can do (KIP-919)."""

    __type__: ClassVar = EntityType.data
    __version__: ClassVar[int] = 0
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[int] = 27
    controller_id: int = field(metadata=_INT32)
    incarnation_id: UUID = field(metadata=_UUID)
    zk_migration_ready: bool = field(metadata=_BOOL, default=False)
    end_points: tuple[BrokerEndpoint, ...]
    features: tuple[BrokerFeature, ...]


MetadataRecord = (
    RegisterBrokerRecord
    | UnregisterBrokerRecord
    | TopicRecord
    | PartitionRecord
    | ConfigRecord
    | PartitionChangeRecord
    | FenceBrokerRecord
    | UnfenceBrokerRecord
    | RemoveTopicRecord
    | FeatureLevelRecord
    | ProducerIdsRecord
    | BrokerRegistrationChangeRecord
    | NoOpRecord
    | RegisterControllerRecord
)

RECORD_TYPES: dict[int, Any] = {record_type.__api_key__: record_type for record_type in get_args(MetadataRecord)}
"""Those that this broker knows, by API key."""


def encode_metadata_record(record: MetadataRecord) -> bytes:
    """The value of a record of the metadata log."""
    frame = (varint(number) for number in (_FRAME_VERSION, record.__api_key__, record.__version__))
    return b"".join((*frame, encoder(type(record))(record)))


def decode_metadata_record(value: bytes) -> MetadataRecord | None:
    """The record in a value; null for a type that this broker does not know, which it passes over.

    Raises `ValueError` for another framing, or a version of a known type that is newer than this broker.
    """
    position = 0
    numbers = []
    for _ in range(3):
        number, size = read_unsigned_varint(value, position)
        numbers.append(int(number))
        position += size
    frame_version, api_key, version = numbers
    if frame_version != _FRAME_VERSION:
        raise ValueError(f"a metadata record in frame version {frame_version}; only {_FRAME_VERSION} is known")
    record_type = RECORD_TYPES.get(api_key)
    if record_type is None:
        return None
    if version > record_type.__version__:
        raise ValueError(f"a metadata record of type {api_key} version {version}; it was written by a newer Kafka")
    record: MetadataRecord = _reader(record_type, version)(value, position)
    return record


@cache
def _reader(record_type: Any, version: int) -> Callable[[bytes, int], Any]:
    """Reads a body of this version as a record of the newest."""
    fields = dataclasses.fields(record_type)
    present = [entry for entry in fields if entry.metadata.get("since", 0) <= version]
    if len(present) == len(fields):
        read = entity_reader(record_type)
        return lambda value, position: read(value, position)[0]
    columns: Any = [(entry.name, entry.type, field(metadata=entry.metadata)) for entry in present]
    for column, entry in zip(columns, present, strict=True):
        column[2].default = entry.default
    namespace = {"__type__": EntityType.data, "__version__": version, "__flexible__": True}
    older: Any = dataclasses.make_dataclass(
        record_type.__name__, columns, frozen=True, slots=True, kw_only=True, namespace=namespace
    )
    read_older = entity_reader(older)

    def read_as_newest(value: bytes, position: int) -> Any:
        entity = read_older(value, position)[0]
        return record_type(**{entry.name: getattr(entity, entry.name) for entry in present})

    return read_as_newest
