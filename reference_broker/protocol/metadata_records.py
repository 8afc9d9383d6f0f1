"""Records of `__cluster_metadata-0`, as dataclasses in kio's form; kio itself has no metadata records.

Follows: org.apache.kafka.metadata.MetadataRecordSerde (KIP-631).

The schemas are `common/metadata/*.json` in the `kafka-metadata` jar of Kafka 4.3.1; a test compares every field. A
record is written in its newest version, as `metadata.version` 4.3-IV0 requires. Older versions are read, with defaults
for fields that they lack: `since` in a field's metadata is the first version that has the field. Tagged fields are
optional in every version.

The key of a metadata record is null. Its value has the frame version (1), the API key of the record type and its
version as unsigned varints, and then the body. Kafka's `kafka-dump-log --cluster-metadata-decoder` prints the records.
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
"""The leader in a `PartitionChangeRecord` that does not change leader and leader epoch."""

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
    """A range of levels of a feature that a broker or controller supports."""

    __type__: ClassVar = EntityType.nested
    __version__: ClassVar[int] = 4
    __flexible__: ClassVar[bool] = True
    name: str = field(metadata=_STRING)
    min_supported_version: int = field(metadata=_INT16)
    max_supported_version: int = field(metadata=_INT16)


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterBrokerRecord:
    """Registration of a broker (KIP-631).

    The epoch of a new incarnation is the offset of the first record that its registration writes.
    """

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
    """End of a broker's registration; `broker_epoch` must be that of the registration."""

    __type__: ClassVar = EntityType.data
    __version__: ClassVar[int] = 0
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[int] = 1
    broker_id: int = field(metadata=_INT32)
    broker_epoch: int = field(metadata=_INT64)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRecord:
    """Creation of a topic (KIP-516). After a deletion the name may be used again, but not the id."""

    __type__: ClassVar = EntityType.data
    __version__: ClassVar[int] = 0
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[int] = 2
    name: str = field(metadata=_STRING)
    topic_id: UUID = field(metadata=_UUID)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionRecord:
    """State of a partition: replicas with the preferred leader first, ISR, leader, leader epoch (KIP-497).

    `directories` has the log directory of each replica (KIP-858), and null for each unknown directory.
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
    """New value of a property of a topic (type 2) or a broker (type 4). Null removes the property."""

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
    """Changed fields of a partition.

    These values mean unchanged: null, `NO_LEADER_CHANGE` for the leader, -1 for the leader recovery state. Each of
    these records increments the partition epoch. A record with a leader, even the present one, also increments the
    leader epoch.
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
    """Fencing of a broker. `BrokerRegistrationChangeRecord` replaces it since metadata version 3.3-IV2."""

    __type__: ClassVar = EntityType.data
    __version__: ClassVar[int] = 0
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[int] = 7
    id: int = field(metadata=_INT32)
    epoch: int = field(metadata=_INT64)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnfenceBrokerRecord:
    """Unfencing of a broker. `BrokerRegistrationChangeRecord` replaces it since metadata version 3.3-IV2."""

    __type__: ClassVar = EntityType.data
    __version__: ClassVar[int] = 0
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[int] = 8
    id: int = field(metadata=_INT32)
    epoch: int = field(metadata=_INT64)


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveTopicRecord:
    """Deletion of a topic with its partitions and its configuration."""

    __type__: ClassVar = EntityType.data
    __version__: ClassVar[int] = 0
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[int] = 9
    topic_id: UUID = field(metadata=_UUID)


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureLevelRecord:
    """Level of a feature (KIP-584). The reference broker begins a metadata log with the level of `metadata.version`."""

    __type__: ClassVar = EntityType.data
    __version__: ClassVar[int] = 0
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[int] = 12
    name: str = field(metadata=_STRING)
    feature_level: int = field(metadata=_INT16)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerIdsRecord:
    """Allocation of a block of producer ids to a broker (KIP-730); `next_producer_id` follows the block."""

    __type__: ClassVar = EntityType.data
    __version__: ClassVar[int] = 0
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[int] = 15
    broker_id: int = field(metadata=_INT32)
    broker_epoch: int = field(metadata=_INT64, default=-1)
    next_producer_id: int = field(metadata=_INT64)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerRegistrationChangeRecord:
    """Change of the registration of a broker (KIP-841).

    `fenced`: 1 fenced, -1 unfenced, 0 unchanged. `in_controlled_shutdown`: 1 in controlled shutdown, 0 unchanged. Empty
    `log_dirs` and null `cordoned_log_dirs` mean unchanged.
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
    """Record without a change (KIP-835). It advances an idle high watermark, which shows that the quorum works."""

    __type__: ClassVar = EntityType.data
    __version__: ClassVar[int] = 0
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[int] = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterControllerRecord:
    """Registration of the endpoints and features of a controller (KIP-919)."""

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
"""The record types that this broker knows, by API key."""


def encode_metadata_record(record: MetadataRecord) -> bytes:
    """Encode the value of a record of the metadata log."""
    return _frame(record.__api_key__, record.__version__) + encoder(type(record))(record)


@cache
def _frame(api_key: int, version: int) -> bytes:
    return b"".join(varint(number) for number in (_FRAME_VERSION, api_key, version))


def decode_metadata_record(value: bytes) -> MetadataRecord | None:
    """Decode the value of a record; return null if its type is unknown, so that the caller skips the record.

    Raises `ValueError` for an unknown frame version, or an unknown version of a known type.
    """
    position = 0
    numbers = []
    for _ in range(3):
        number, size = read_unsigned_varint(value, position)
        numbers.append(int(number))
        position += size
    frame_version, api_key, version = numbers
    if frame_version != _FRAME_VERSION:
        raise ValueError(f"a metadata record has frame version {frame_version}; only {_FRAME_VERSION} is supported")
    record_type = RECORD_TYPES.get(api_key)
    if record_type is None:
        return None
    if version > record_type.__version__:
        raise ValueError(f"a metadata record of type {api_key} has version {version} of a newer Kafka")
    record: MetadataRecord = _reader(record_type, version)(value, position)
    return record


@cache
def _reader(record_type: Any, version: int) -> Callable[[bytes, int], Any]:
    """Return a function that reads the body of a record in this version, and returns a record in the newest version."""
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
