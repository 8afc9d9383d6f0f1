"""Validation of message bytes before kio reads them, because kio's native reader expects valid messages.

kio's reader differs from Kafka's in these points, which a walk over the bytes corrects:

- kio allocates memory for the claimed length of an array, and a length of 2^31 ends the process. The walk rejects the
  same lengths as Kafka's readers: an array whose number of elements exceeds the number of remaining bytes, a string or
  tagged field that exceeds the remaining bytes, and a string of more than 32,767 bytes.
- kio reads any number of elements. The walk allows `ELEMENTS_MAX` per message. A node has one thread, and handles no
  other request while it decodes a message or encodes a response. Kafka has several threads, and limits only the
  bytes of a request (`socket.request.max.bytes`) and the records that one request to the controller may write
  (10,000).
- kio rejects unknown tagged fields, which a newer client may send and a server must skip (KIP-482). The walk records
  where they are, and `bounds_checker` removes them.
- kio accepts null in a field that is not nullable. The walk rejects it, as Kafka's readers do.

A walk consists of nested functions, compiled once per message class from kio's dataclasses. It creates no values.
"""

import struct
import types
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints

from reference_broker.protocol.errors import MalformedRequestError

Cut = tuple[int, int, bytes]
"""Start and end of a range of bytes, and the bytes that replace the range: empty for an unknown tagged field."""
ELEMENTS_MAX = 10_000
"""Limit of the number of array elements and tagged fields in a message. It is the number of records that a request to
Kafka's controller may write (`QuorumController.MAX_RECORDS_PER_USER_OP`). Work on this number of elements that takes
more than 50 ms is done in steps (`protocol.steps`)."""
STRING_MAX_BYTES = 0x7FFF
"""Limit of a string in Kafka's readers, in flexible versions too."""


class NullFieldError(MalformedRequestError):
    """Null in a field that is not nullable."""


class Cuts(list[Cut]):
    """The cuts that a walk has found, and the number of array elements and tagged fields that it has visited."""

    def __init__(self, elements: int = 0, elements_max: int = ELEMENTS_MAX) -> None:
        super().__init__()
        self.elements = elements
        self.elements_max = elements_max

    def add_elements(self, elements: int) -> int:
        """Add elements to the count, and return the argument. Raises `MalformedRequestError` above the limit."""
        self.elements += elements
        if self.elements > self.elements_max:
            raise MalformedRequestError(
                f"{self.elements} array elements and tagged fields in a message; the limit is {self.elements_max}"
            )
        return elements


Walk = Callable[[bytes, int, Cuts], int]
"""Function from the position of a value in a frame to the position after the value.

The function adds to the cuts those that are necessary in the value. Raises `MalformedRequestError`.
"""

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
_NO_TAGGED_FIELDS = b"\x00"


def bounds_checker(message_type: Any) -> Callable[[bytes, int], tuple[bytes, int]]:
    """Return a function that validates the message at a position of a frame, and returns bytes and a position for kio.

    The function returns its arguments unless the message has unknown tagged fields, which it removes. It raises
    `MalformedRequestError`.
    """
    walk = _entity_walk(message_type)

    def check(frame: bytes, position: int) -> tuple[bytes, int]:
        cuts = Cuts()
        end = walk(frame, position, cuts)
        return (_without(frame, position, end, cuts), 0) if cuts else (frame, position)

    return check


@cache
def length_checker(message_type: Any) -> Callable[[bytes, int], None]:
    """Return a function that raises `MalformedRequestError` if a length in a message exceeds the remaining bytes.

    It permits what a client can judge after decoding: nulls, unknown tagged fields and any number of elements.
    """
    walk = _entity_walk(message_type)

    def check(frame: bytes, position: int) -> None:
        with suppress(NullFieldError):
            walk(frame, position, Cuts(elements_max=len(frame)))

    return check


def walk_tagged_fields(frame: bytes, position: int) -> int:
    """Return the end position of tagged fields, all of which are unknown, as in a request's header."""
    return _walk_tagged_fields(frame, position, {}, Cuts())


def _without(frame: bytes, start: int, end: int, cuts: list[Cut]) -> bytes:
    parts = []
    for cut_start, cut_end, replacement in sorted(cuts):
        parts += [frame[start:cut_start], replacement]
        start = cut_end
    return b"".join([*parts, frame[start:end]])


def _entity_walk(entity_type: Any) -> Walk:
    flexible: bool = entity_type.__flexible__
    hints = get_type_hints(entity_type)
    walks = _merged(
        _field_walk(hints[field.name], field.metadata.get("kafka_type"), flexible)
        for field in fields(entity_type)
        if "tag" not in field.metadata
    )
    tagged_walks = {
        field.metadata["tag"]: _as_walk(
            _field_walk(hints[field.name], field.metadata.get("kafka_type"), flexible, tagged=True)
        )
        for field in fields(entity_type)
        if "tag" in field.metadata
    }

    def walk(frame: bytes, position: int, cuts: Cuts) -> int:
        for step in walks:
            position = step(frame, position, cuts)
        return _walk_tagged_fields(frame, position, tagged_walks, cuts) if flexible else position

    return walk


def _merged(walks: Iterable[Walk | int]) -> list[Walk]:
    """Merge adjacent values of fixed size into one walk."""
    merged: list[Walk] = []
    size_bytes = 0
    for walk in walks:
        if isinstance(walk, int):
            size_bytes += walk
            continue
        if size_bytes:
            merged.append(_fixed_walk(size_bytes))
            size_bytes = 0
        merged.append(walk)
    return [*merged, _fixed_walk(size_bytes)] if size_bytes else merged


def _walk_tagged_fields(frame: bytes, start: int, known: dict[int, Walk], cuts: Cuts) -> int:
    """Walk tagged fields (a count; then tag, size and content of each); cut unknown ones and correct the count."""
    if frame[start : start + 1] == _NO_TAGGED_FIELDS:
        return start + 1
    count, position = _read_varint(frame, start)
    first_field, unknown = position, 0
    for _ in range(cuts.add_elements(_within(frame, position, count))):
        field_start = position
        tag, size_start = _read_varint(frame, position)
        size_bytes, position = _read_varint(frame, size_start)
        end = position + _within(frame, position, size_bytes)
        if tag in known:
            inside = Cuts(cuts.elements, cuts.elements_max)
            if known[tag](frame, position, inside) > end:
                raise MalformedRequestError(f"tagged field {tag} is longer than its size")
            cuts.elements = inside.elements
            if inside:
                left_bytes = len(_without(frame, position, end, inside))
                cuts += [(size_start, position, _varint(left_bytes)), *inside]
        else:
            unknown += 1
            cuts.append((field_start, end, b""))
        position = end
    if unknown:
        cuts.append((start, first_field, _varint(count - unknown)))
    return position


def _field_walk(hint: Any, kafka_type: str | None, flexible: bool, *, tagged: bool = False) -> Walk | int:
    """Return the walk of a field, or its size in bytes if that is fixed."""
    inner = without_null(hint)
    nullable = inner is not hint
    if get_origin(inner) is tuple:
        element = get_args(inner)[0]
        element_walk = _as_walk(_field_walk(element, kafka_type, flexible))
        return _array_walk(element_walk, _length_reader(flexible, _INT32, nullable))
    if is_dataclass(inner):
        walk = _entity_walk(inner)
        return _nullable(walk) if nullable and not tagged else walk  # a tagged struct that is null is omitted
    assert kafka_type is not None
    if kafka_type in _SIZES_BYTES:
        return _SIZES_BYTES[kafka_type]
    if kafka_type == "string":
        return _bytes_walk(_length_reader(flexible, _INT16, nullable), STRING_MAX_BYTES)
    return _bytes_walk(_length_reader(flexible, _INT32, nullable))


def without_null(hint: Any) -> Any:
    """Return the type of a field without null."""
    if get_origin(hint) in (Union, types.UnionType):
        return next(part for part in get_args(hint) if part is not type(None))
    return hint


def _nullable(walk: Walk) -> Walk:
    """Return the walk of a nullable struct, which starts with a byte: 1, or -1 for null (KIP-893)."""

    def walk_nullable(frame: bytes, position: int, cuts: Cuts) -> int:
        present = frame[position : position + 1] == b"\x01"
        return walk(frame, position + 1, cuts) if present else position + 1

    return walk_nullable


def _as_walk(walk: Walk | int) -> Walk:
    return _fixed_walk(walk) if isinstance(walk, int) else walk


def _fixed_walk(size_bytes: int) -> Walk:
    def walk(frame: bytes, position: int, _: Cuts) -> int:
        return position + _within(frame, position, size_bytes)

    return walk


def _bytes_walk(read_length: Callable[[bytes, int], tuple[int, int]], max_bytes: int = 2**31) -> Walk:
    def walk(frame: bytes, position: int, _: Cuts) -> int:
        length, position = read_length(frame, position)
        if length > max_bytes:
            raise MalformedRequestError(f"a string of {length} bytes; the limit is {max_bytes}")
        return position + _within(frame, position, length)

    return walk


def _array_walk(element: Walk, read_length: Callable[[bytes, int], tuple[int, int]]) -> Walk:
    def walk(frame: bytes, position: int, cuts: Cuts) -> int:
        length, position = read_length(frame, position)
        for _ in range(cuts.add_elements(_within(frame, position, length))):
            position = element(frame, position, cuts)
        return position

    return walk


def _length_reader(flexible: bool, legacy: struct.Struct, nullable: bool) -> Callable[[bytes, int], tuple[int, int]]:
    """Return a reader of lengths, which returns 0 for null.

    Flexible versions write the length plus one as an unsigned varint; other versions write a signed integer.
    """

    def read_compact(frame: bytes, position: int) -> tuple[int, int]:
        length, position = _read_varint(frame, position)
        return checked(length - 1), position

    def read_legacy(frame: bytes, position: int) -> tuple[int, int]:
        end = position + _within(frame, position, legacy.size)
        return checked(legacy.unpack_from(frame, position)[0]), end

    def checked(length: int) -> int:
        if length < 0 and not nullable:
            raise NullFieldError("null in a field that may not be null")
        return max(length, 0)

    return read_compact if flexible else read_legacy


def _read_varint(frame: bytes, position: int) -> tuple[int, int]:
    if position < len(frame) and (first := frame[position]) < 0x80:
        return first, position + 1
    value = 0
    for index, byte in enumerate(frame[position : position + _VARINT_BYTES_MAX]):
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return value, position + index + 1
    raise MalformedRequestError(f"a varint longer than {_VARINT_BYTES_MAX} bytes, or cut short")


def _varint(value: int) -> bytes:
    written = bytearray()
    while value >= 0x80:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    written.append(value)
    return bytes(written)


def _within(frame: bytes, position: int, length: int) -> int:
    """Return `length`. Raises `MalformedRequestError` if fewer bytes are left."""
    if length > len(frame) - position:
        raise MalformedRequestError(f"a length of {length}, but only {len(frame) - position} bytes are left")
    return length
