"""Effect of each metadata record on the image: the invariant `record-effect`.

A record changes one entry of the image, and in this entry only the fields that the table lists:

| record                            | entry of the image after the record                                              |
|-----------------------------------|----------------------------------------------------------------------------------|
| PartitionChange                   | has the fields that the record sets; the other fields are unchanged. The         |
|                                   | partition epoch increases by one. The leader epoch increases by one if the       |
|                                   | record has a leader, even if it is the present leader                            |
| Partition, Register…, Topic       | has the fields of the record                                                     |
| FenceBroker, UnfenceBroker        | only the broker's fenced state is changed                                        |
| BrokerRegistrationChange          | only the broker's fenced state, controlled shutdown and directories are changed  |
| Config, FeatureLevel, ProducerIds | has the value of the record. There is no entry if the value of a Config is null, |
|                                   | or if the level of a FeatureLevel is 0. A FeatureLevel changes the level         |
| RemoveTopic, UnregisterBroker     | there is no entry                                                                |

The meaning of each field is specified here independently of the code of the image.
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
_NULLABLE: Final = ("isr", "replicas", "removing_replicas", "adding_replicas", "directories")


def check_record_effect(record: MetadataRecord, before: object, now: object, offset: int) -> None:
    """Compare the entry that a record has changed with the expected entry.

    :param before: the entry before the record; None if there was none.
    :param now: the entry after the record; None if there is none.
    :param offset: the offset of the record, for the message.
    :raises InvariantViolation: `record-effect`.
    """
    expected = _expected_entry(record, before)
    if isinstance(record, FeatureLevelRecord) and expected == before:
        detail = f"{type(record).__name__} at {offset}: {record.name} already has level {record.feature_level}"
        raise InvariantViolation("record-effect", detail)
    found = asdict(now) if is_dataclass(now) and not isinstance(now, type) else now
    if isinstance(expected, dict) and isinstance(found, dict):
        wrong = {name: (found.get(name), value) for name, value in expected.items() if found.get(name) != value}
    else:
        wrong = {} if found == expected else {"value": (found, expected)}
    if wrong:
        detail = f"{type(record).__name__} at {offset}: " + "; ".join(
            f"{name} is {actual}, not {value}" for name, (actual, value) in wrong.items()
        )
        raise InvariantViolation("record-effect", detail)


def _expected_entry(record: MetadataRecord, before: Any) -> object:
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
    expected = asdict(before) | {name: value for name in _NULLABLE if (value := getattr(record, name)) is not None}
    if record.replicas is not None and record.directories is None:
        del expected["directories"]
    if record.leader != NO_LEADER_CHANGE:
        expected |= {"leader": record.leader, "leader_epoch": before.leader_epoch + 1}
    if record.leader_recovery_state != _UNCHANGED_RECOVERY_STATE:
        expected["leader_recovery_state"] = record.leader_recovery_state
    for name in ("eligible_leader_replicas", "last_known_elr"):
        expected.pop(name, None)  # KIP-966 is not implemented
    return expected | {"partition_epoch": before.partition_epoch + 1}


def _changed_broker(record: BrokerRegistrationChangeRecord, before: RegisterBrokerRecord) -> dict[str, object]:
    expected = asdict(before)
    if record.fenced:
        expected["fenced"] = record.fenced == 1
    if record.in_controlled_shutdown:
        expected["in_controlled_shutdown"] = True
    if record.log_dirs:
        expected["log_dirs"] = record.log_dirs
    if record.cordoned_log_dirs is not None:
        expected["cordoned_log_dirs"] = record.cordoned_log_dirs
    return expected
