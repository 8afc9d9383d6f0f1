"""Control batches of the quorum's log, which are skipped when the metadata is replayed.

Follows: org.apache.kafka.common.record.internal.ControlRecordUtils (KIP-595, KIP-630).

The key of a control record consists of a version and a type, each an int16. The value is a message, encoded by kio.
"""

import io
import struct
from collections.abc import Sequence
from datetime import UTC, datetime
from enum import IntEnum
from typing import Any

from kio.records.schema import NewRecordBatch, Record
from kio.records.writers import write_new_batch
from kio.schema.leader_change_message.v0.data import LeaderChangeMessage, Voter
from kio.schema.snapshot_footer_record.v0.data import SnapshotFooterRecord
from kio.schema.snapshot_header_record.v0.data import SnapshotHeaderRecord

from reference_broker.protocol.encoding import encoder

_KEY = struct.Struct(">hh")
_KEY_VERSION = 0
_CONTROL = 0x20
_NOT_A_PRODUCER = -1


class ControlRecordType(IntEnum):
    """Type of a control record, with Kafka's number. A quorum without dynamic voters needs only these types."""

    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4


def leader_change_batch(
    leader_id: int, voter_ids: Sequence[int], granting_voter_ids: Sequence[int], timestamp_ms: int
) -> bytes:
    """Return the first batch of an epoch, with its leader and the voters that elected it."""
    message: Any = LeaderChangeMessage
    voter: Any = Voter
    value = message(
        version=0,
        leader_id=leader_id,
        voters=tuple(voter(voter_id=voter_id) for voter_id in voter_ids),
        granting_voters=tuple(voter(voter_id=voter_id) for voter_id in granting_voter_ids),
    )
    return _control_batch(ControlRecordType.LEADER_CHANGE, value, timestamp_ms)


def snapshot_header_batch(last_contained_log_timestamp_ms: int, timestamp_ms: int) -> bytes:
    """Return the first batch of a snapshot."""
    message: Any = SnapshotHeaderRecord
    value = message(version=0, last_contained_log_timestamp=last_contained_log_timestamp_ms)
    return _control_batch(ControlRecordType.SNAPSHOT_HEADER, value, timestamp_ms)


def snapshot_footer_batch(timestamp_ms: int) -> bytes:
    """Return the last batch of a snapshot; a snapshot without it is incomplete."""
    message: Any = SnapshotFooterRecord
    return _control_batch(ControlRecordType.SNAPSHOT_FOOTER, message(version=0), timestamp_ms)


def _control_batch(record_type: ControlRecordType, value: Any, timestamp_ms: int) -> bytes:
    """Return a batch with base offset 0; the caller assigns the offset."""
    timestamp: Any = datetime.fromtimestamp(timestamp_ms / 1000, UTC)
    record: Any = Record(
        attributes=0,  # type: ignore[arg-type]
        timestamp=timestamp,
        offset=0,  # type: ignore[arg-type]
        key=_KEY.pack(_KEY_VERSION, record_type),
        value=encoder(type(value))(value),
        headers=(),
    )
    producer: dict[str, Any] = {"producer_id": _NOT_A_PRODUCER, "producer_epoch": -1, "base_sequence": -1}
    attributes: Any = _CONTROL
    buffer = io.BytesIO()
    write_new_batch(buffer, NewRecordBatch(records=(record,), attributes=attributes, **producer))
    return buffer.getvalue()
