"""The answer to Fetch, written fast; in versions 12 and later, which are the flexible ones.

A follower is answered for every partition that it follows, most of which have nothing new, twice a second; kio's
writer, which goes field by field, would cost more than all else that replication does while nothing happens. What is
written is what kio would write, byte for byte; whatever is rare is left to kio.
"""

import struct
from collections.abc import Callable
from dataclasses import fields
from io import BytesIO
from typing import Any

from kio.index import load_payload_module
from kio.serial import entity_writer
from kio.serial.writers import write_compact_string, write_unsigned_varint, write_uuid
from kio.static.constants import EntityType

from reference_broker.protocol.durations import milliseconds

Write = Callable[[BytesIO, Any], None]

FETCH = 1
FIRST_VERSION = 12
_FIRST_VERSION_WITH_TOPIC_IDS = 13
_HEAD = struct.Struct(">ihi")
"""Throttle time, error, session."""
_PARTITION = struct.Struct(">ihqqqbi")
"""Index, error, high watermark, last stable offset, log start, aborted transactions (none), preferred replica."""
_NULL, _EMPTY = 0, 1
_NO_RECORDS_NO_TAGGED_FIELDS = b"\x01\x00"
_NO_TAGGED_FIELDS = b"\x00"
_TAGGED_FIELDS = ("diverging_epoch", "current_leader", "snapshot_id")


def fetch_response_writer(version: int) -> Write:
    """Writes kio's entity of this version."""
    module: Any = load_payload_module(FETCH, version, EntityType.response)
    by_kio: Write = entity_writer(module.FetchResponse)
    write_partition = _partition_writer(module.PartitionData)
    has_topic_ids = version >= _FIRST_VERSION_WITH_TOPIC_IDS

    def write(buffer: BytesIO, response: Any) -> None:
        if getattr(response, "node_endpoints", ()):
            by_kio(buffer, response)
            return
        throttle_ms = milliseconds(response.throttle_time)
        buffer.write(_HEAD.pack(throttle_ms, response.error_code.value, response.session_id))
        _write_length(buffer, len(response.responses))
        for topic in response.responses:
            if has_topic_ids:
                write_uuid(buffer, topic.topic_id)
            else:
                write_compact_string(buffer, topic.topic)
            _write_length(buffer, len(topic.partitions))
            for partition in topic.partitions:
                write_partition(buffer, partition)
            buffer.write(_NO_TAGGED_FIELDS)
        buffer.write(_NO_TAGGED_FIELDS)

    return write


def _partition_writer(partition_type: Any) -> Write:
    by_kio: Write = entity_writer(partition_type)
    defaults = {field.name: field.default for field in fields(partition_type)}
    diverging_epoch, current_leader, snapshot_id = (defaults[name] for name in _TAGGED_FIELDS)

    def write(buffer: BytesIO, partition: Any) -> None:
        is_plain = (
            partition.diverging_epoch is diverging_epoch
            and partition.current_leader is current_leader
            and partition.snapshot_id is snapshot_id
            and not partition.aborted_transactions
            and partition.records is not None
        )
        if not is_plain:
            by_kio(buffer, partition)
            return
        buffer.write(
            _PARTITION.pack(
                partition.partition_index,
                partition.error_code.value,
                partition.high_watermark,
                partition.last_stable_offset,
                partition.log_start_offset,
                _NULL if partition.aborted_transactions is None else _EMPTY,
                partition.preferred_read_replica,
            )
        )
        if not partition.records:
            buffer.write(_NO_RECORDS_NO_TAGGED_FIELDS)
            return
        _write_length(buffer, len(partition.records))
        buffer.write(partition.records)
        buffer.write(_NO_TAGGED_FIELDS)

    return write


def _write_length(buffer: BytesIO, length: int) -> None:
    write_unsigned_varint(buffer, length + 1)  # type: ignore[arg-type]  # kio's number types are plain numbers
