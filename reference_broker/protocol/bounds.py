"""Judges the lengths inside a request before kio reads it.

kio's native reader reserves room for as many elements as an array claims to have, and a claim of 2^31 elements ends the
whole process. So every body is walked first, without making a value of anything: an array may not have more elements
than there are bytes left (each element takes at least one), nor a string or a tagged field more bytes. Kafka's own
generated readers hold the same rule.

A walk is compiled once per message class from kio's dataclasses into nested functions `(frame, position) -> position`.
"""

import struct
import types
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any, Union, get_args, get_origin, get_type_hints

from reference_broker.protocol.errors import MalformedRequestError

Walk = Callable[[bytes, int], int]
"""From the position of a value in a frame to the position after it. Raises `MalformedRequestError`."""

_SIZES_BYTES = {
    "bool": 1,
    "int8": 1,
    "int16": 2,
    "uint16": 2,
    "error_code": 2,
    "int32": 4,
    "uint32": 4,
    "timedelta_i32": 4,
    "int64": 8,
    "timedelta_i64": 8,
    "datetime_i64": 8,
    "float64": 8,
    "uuid": 16,
}
_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_VARINT_BYTES_MAX = 5


def bounds_walk(message_type: Any) -> Walk:
    """The walk over a message class of kio, to its last byte."""
    return _entity_walk(message_type)


def _entity_walk(entity_type: Any) -> Walk:
    flexible: bool = entity_type.__flexible__
    hints = get_type_hints(entity_type)
    walks = [
        _field_walk(hints[field.name], field.metadata.get("kafka_type"), flexible)
        for field in fields(entity_type)
        if "tag" not in field.metadata
    ]
    tagged_walks = {
        field.metadata["tag"]: _field_walk(_without_null(hints[field.name]), field.metadata.get("kafka_type"), flexible)
        for field in fields(entity_type)
        if "tag" in field.metadata
    }

    def walk(frame: bytes, position: int) -> int:
        for step in walks:
            position = step(frame, position)
        return _walk_tagged_fields(frame, position, tagged_walks) if flexible else position

    return walk


def _walk_tagged_fields(frame: bytes, position: int, known: dict[int, Walk]) -> int:
    count, position = _read_varint(frame, position)
    for _ in range(_within(frame, position, count)):
        tag, position = _read_varint(frame, position)
        size_bytes, position = _read_varint(frame, position)
        end = position + _within(frame, position, size_bytes)
        if tag in known and known[tag](frame, position) > end:
            raise MalformedRequestError(f"tagged field {tag} is longer than its size")
        position = end
    return position


def _field_walk(hint: Any, kafka_type: str | None, flexible: bool) -> Walk:
    inner = _without_null(hint)
    if get_origin(inner) is tuple:
        element = get_args(inner)[0]
        return _array_walk(_field_walk(element, kafka_type, flexible), flexible)
    if is_dataclass(inner):
        return _nullable(_entity_walk(inner)) if inner is not hint else _entity_walk(inner)
    assert kafka_type is not None
    if kafka_type in _SIZES_BYTES:
        return _fixed_walk(_SIZES_BYTES[kafka_type])
    return _bytes_walk(_length_reader(flexible, _INT16 if kafka_type == "string" else _INT32))


def _without_null(hint: Any) -> Any:
    if get_origin(hint) in (Union, types.UnionType):
        return next(part for part in get_args(hint) if part is not type(None))
    return hint


def _nullable(walk: Walk) -> Walk:
    """A nullable struct is led by a byte, -1 for null (KIP-893)."""

    def walk_nullable(frame: bytes, position: int) -> int:
        present = frame[position : position + 1] == b"\x01"
        return walk(frame, position + 1) if present else position + 1

    return walk_nullable


def _fixed_walk(size_bytes: int) -> Walk:
    def walk(frame: bytes, position: int) -> int:
        return position + _within(frame, position, size_bytes)

    return walk


def _bytes_walk(read_length: Callable[[bytes, int], tuple[int, int]]) -> Walk:
    def walk(frame: bytes, position: int) -> int:
        length, position = read_length(frame, position)
        return position + _within(frame, position, length)

    return walk


def _array_walk(element: Walk, flexible: bool) -> Walk:
    read_length = _length_reader(flexible, _INT32)

    def walk(frame: bytes, position: int) -> int:
        length, position = read_length(frame, position)
        for _ in range(_within(frame, position, length)):
            position = element(frame, position)
        return position

    return walk


def _length_reader(flexible: bool, legacy: struct.Struct) -> Callable[[bytes, int], tuple[int, int]]:
    """Lengths are a varint of length + 1 in flexible versions, else a signed integer; null counts as 0 here."""

    def read_compact(frame: bytes, position: int) -> tuple[int, int]:
        length, position = _read_varint(frame, position)
        return max(length - 1, 0), position

    def read_legacy(frame: bytes, position: int) -> tuple[int, int]:
        end = position + _within(frame, position, legacy.size)
        return max(legacy.unpack_from(frame, position)[0], 0), end

    return read_compact if flexible else read_legacy


def _read_varint(frame: bytes, position: int) -> tuple[int, int]:
    value = 0
    for index, byte in enumerate(frame[position : position + _VARINT_BYTES_MAX]):
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return value, position + index + 1
    raise MalformedRequestError("a varint without an end")


def _within(frame: bytes, position: int, length: int) -> int:
    """`length`, if so many bytes are left."""
    if length > len(frame) - position:
        raise MalformedRequestError(f"a length of {length} with {len(frame) - position} bytes left")
    return length
