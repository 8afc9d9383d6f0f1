"""A record of the metadata changes what it says, and nothing else: the invariant `record-says`.

| record                            | what is so afterwards                                                            |
|-----------------------------------|----------------------------------------------------------------------------------|
| Partition, Register…, Topic       | what the record says                                                             |
| PartitionChange                   | what it gives is taken, the rest is as before; the partition epoch is greater by |
|                                   | one, and the leader epoch, if it gives a leader, be it the same one              |
| FenceBroker, UnfenceBroker        | the broker is as before, but for being fenced                                    |
| BrokerRegistrationChange          | the same, but for what it says of fencing, shutting down and directories         |
| Config, FeatureLevel, ProducerIds | the value that it gives; none where it gives none                                |
| Remove…, Unregister…              | nothing is left                                                                  |

It is said here once more what each field means, and not asked of the image that is judged.
"""

from dataclasses import asdict, is_dataclass
from typing import Any, Final

from reference_broker.protocol.metadata_records import (
    NO_LEADER_CHANGE,
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    FeatureLevelRecord,
    FenceBrokerRecord,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    TopicRecord,
    UnfenceBrokerRecord,
)
from reference_broker.simulation.invariants.violation import InvariantViolation

_UNCHANGED_RECOVERY_STATE: Final = -1
_GIVEN_OR_NULL: Final = ("isr", "replicas", "removing_replicas", "adding_replicas", "directories")


def check_record_says(record: MetadataRecord, before: object, now: object, offset: int) -> None:
    """Hold what a record is about against what it was before the record. Raises `InvariantViolation`."""
    said = _said(record, before)
    found = asdict(now) if is_dataclass(now) and not isinstance(now, type) else now
    if isinstance(said, dict) and isinstance(found, dict):
        wrong = {name: (found.get(name), value) for name, value in said.items() if found.get(name) != value}
    else:
        wrong = {} if found == said else {"value": (found, said)}
    if wrong:
        detail = f"{type(record).__name__} at {offset}: " + "; ".join(
            f"{name} is {is_so}, and should be {should}" for name, (is_so, should) in wrong.items()
        )
        raise InvariantViolation("record-says", detail)


def _said(record: MetadataRecord, before: Any) -> object:
    match record:
        case PartitionChangeRecord():
            return _changed_partition(record, before)
        case PartitionRecord():
            return {name: value for name, value in asdict(record).items() if name != "directories" or value}
        case RegisterBrokerRecord() | RegisterControllerRecord():
            return asdict(record)
        case FenceBrokerRecord() | UnfenceBrokerRecord():
            return asdict(before) | {"fenced": isinstance(record, FenceBrokerRecord)}
        case BrokerRegistrationChangeRecord():
            return _changed_broker(record, before)
        case TopicRecord():
            return record.name
        case ConfigRecord():
            return record.value
        case FeatureLevelRecord():
            return record.feature_level or None
        case ProducerIdsRecord():
            return record.next_producer_id
    return None


def _changed_partition(record: PartitionChangeRecord, before: PartitionRecord) -> dict[str, object]:
    said = asdict(before) | {name: value for name in _GIVEN_OR_NULL if (value := getattr(record, name)) is not None}
    if record.replicas is not None and record.directories is None:
        del said["directories"]
    if record.leader != NO_LEADER_CHANGE:
        said |= {"leader": record.leader, "leader_epoch": before.leader_epoch + 1}
    if record.leader_recovery_state != _UNCHANGED_RECOVERY_STATE:
        said["leader_recovery_state"] = record.leader_recovery_state
    for name in ("eligible_leader_replicas", "last_known_elr"):
        said.pop(name, None)  # KIP-966 is not offered
    return said | {"partition_epoch": before.partition_epoch + 1}


def _changed_broker(record: BrokerRegistrationChangeRecord, before: RegisterBrokerRecord) -> dict[str, object]:
    said = asdict(before)
    if record.fenced:
        said["fenced"] = record.fenced == 1
    if record.in_controlled_shutdown:
        said["in_controlled_shutdown"] = True
    if record.log_dirs:
        said["log_dirs"] = record.log_dirs
    if record.cordoned_log_dirs is not None:
        said["cordoned_log_dirs"] = record.cordoned_log_dirs
    return said
