"""Encoder and decoder of requests by kio's schemas, with the role of each part of the bytes (tagged fields: KIP-482).

kio's writers take valid values and return bytes. The mutations need positions inside them: which bytes are the length
of an array, which are a string's content. So `encode` returns a request as `Part`s, each with its role. `decode` reads
a frame as a broker does, with bounds on lengths, so that `protection` can judge the effect of a mutated frame.
"""

import struct
import types
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from enum import StrEnum
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints

from kio.schema.index import api_key_map

from fixtures.clients.messages import known_versions, request_schema

FIXED: Mapping[str, struct.Struct] = {
    "bool": struct.Struct(">?"),
    "int8": struct.Struct(">b"),
    "int16": struct.Struct(">h"),
    "uint16": struct.Struct(">H"),
    "int32": struct.Struct(">i"),
    "uint32": struct.Struct(">I"),
    "timedelta_i32": struct.Struct(">i"),
    "int64": struct.Struct(">q"),
    "timedelta_i64": struct.Struct(">q"),
    "float64": struct.Struct(">d"),
    "uuid": struct.Struct(">16s"),
}
"""Types of a fixed size. Durations are numbers of milliseconds here; kio has `timedelta`."""
HEADER = struct.Struct(">hhi")
"""API key, version and correlation id."""
_LEGACY_STRING_BYTES_MAX = 32767
_NULL_STRUCT = b"\xff"
_NULL_FROM = 0x80
"""Smallest first byte of a null struct: Kafka reads it as a negative number."""
_SIGN = 1 << 31


class PartRole(StrEnum):
    """Role of the bytes of a part: for example a length, or a number."""

    COUNT = "array count"
    LENGTH = "length"
    CONTENT = "content"
    NUMBER = "number"
    TAGS = "tagged fields"
    MARKER = "null marker"


@dataclass(frozen=True, slots=True)
class Part:
    """Consecutive bytes of a request with one role.

    :ivar path: the field, from the top of the request: `topics.partitions.partition_index`.
    :ivar compact: whether a count or length is a varint of the value plus one (flexible versions).
    """

    role: PartRole
    path: str
    data: bytes
    kafka_type: str = ""
    compact: bool = False


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a struct in one version.

    :ivar kafka_type: type of the value, or of an array's elements; empty for structs.
    :ivar struct: struct of the value, or of an array's elements; None for primitives.
    :ivar tag: tag of a tagged field (KIP-482).
    """

    name: str
    kafka_type: str
    struct: "Struct | None"
    is_array: bool
    is_nullable: bool
    tag: int | None


@dataclass(frozen=True, slots=True)
class Struct:
    """A message, or a struct inside a message."""

    name: str
    is_flexible: bool
    fields: tuple[Field, ...]
    tagged: Mapping[int, Field]


class UndecodableError(ValueError):
    """Bytes that no broker can read as the request that their header names."""


def known_apis() -> Sequence[tuple[int, int]]:
    """Return every API key and version that kio has a request for, ascending."""
    return [(key, version) for key in sorted(api_key_map) for version in known_versions(key)]


@cache
def request_struct(api_key: int, version: int) -> Struct:
    """Return the schema of a request. Raises `KeyError` for an unknown API, kio's `UnknownEntity` for a version."""
    name = "".join(word.capitalize() for word in api_key_map[api_key].split("_"))
    return _struct(getattr(request_schema(api_key, version), f"{name}Request"))


def _struct(entity: Any) -> Struct:
    hints = get_type_hints(entity)
    all_fields = [_field(field.name, hints[field.name], field.metadata) for field in fields(entity)]
    return Struct(
        entity.__name__,
        entity.__flexible__,
        tuple(field for field in all_fields if field.tag is None),
        {field.tag: field for field in all_fields if field.tag is not None},
    )


def _field(name: str, hint: Any, metadata: Mapping[str, Any]) -> Field:
    inner = _without_null(hint)
    is_array = get_origin(inner) is tuple
    element = _without_null(get_args(inner)[0]) if is_array else inner
    tag = metadata.get("tag")
    kafka_type = metadata.get("kafka_type", "")
    return Field(
        name,
        kafka_type,
        _struct(element) if is_dataclass(element) else None,
        is_array,
        inner is not hint and tag is None and (is_array or kafka_type != "uuid"),
        tag,
    )


def _without_null(hint: Any) -> Any:
    if get_origin(hint) in (Union, types.UnionType):
        return next(part for part in get_args(hint) if part is not type(None))
    return hint


# --- encoding


def varint(value: int) -> bytes:
    """Encode an unsigned varint of up to 32 bits."""
    value &= 0xFFFFFFFF
    written = bytearray()
    while value >= 0x80:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    written.append(value)
    return bytes(written)


def length_bytes(value: int, *, compact: bool, wide: bool) -> bytes:
    """Encode a length or count, -1 for null: as a varint (compact), or as a signed integer of 32 or 16 bits."""
    if compact:
        return varint(value + 1)
    return struct.pack(">I", value & 0xFFFFFFFF) if wide else struct.pack(">H", value & 0xFFFF)


def is_wide(role: PartRole, kafka_type: str) -> bool:
    """Whether a count or length that is not compact has 32 bits."""
    return role is PartRole.COUNT or kafka_type != "string"


ChooseValue = Callable[[Field, str], Any]
"""Chooses the value of a primitive field at a path: an int, float, bool, str, bytes, uuid, or None."""
ChooseCount = Callable[[Field, str], int]
"""Chooses the number of elements of an array at a path; -1 for null."""


@dataclass(frozen=True, slots=True)
class FieldChoices:
    """The functions that choose the values of a request.

    :ivar is_present: whether a tagged field is written, and whether a nullable struct is not null.
    """

    value: ChooseValue
    count: ChooseCount
    is_present: Callable[[Field, str], bool]


def encode(message: Struct, choices: FieldChoices, path: str = "") -> Iterator[Part]:
    """Yield the parts of a message in the order of their bytes."""
    for field in message.fields:
        yield from _encode_field(field, choices, message.is_flexible, _below(path, field.name))
    if message.is_flexible:
        yield from _encode_tagged(message, choices, path)


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _encode_tagged(message: Struct, choices: FieldChoices, path: str) -> Iterator[Part]:
    content = b""
    present = [tag for tag, field in sorted(message.tagged.items()) if choices.is_present(field, path)]
    for tag in present:
        field = message.tagged[tag]
        data = b"".join(part.data for part in _encode_field(field, choices, True, _below(path, field.name)))
        content += varint(tag) + varint(len(data)) + data
    yield Part(PartRole.TAGS, _below(path, "tags"), varint(len(present)) + content)


def _encode_field(field: Field, choices: FieldChoices, flexible: bool, path: str) -> Iterator[Part]:
    if not field.is_array:
        yield from _encode_element(field, choices, flexible, path)
        return
    count = choices.count(field, path)
    yield Part(PartRole.COUNT, path, length_bytes(count, compact=flexible, wide=True), compact=flexible)
    for _ in range(count):
        yield from _encode_element(field, choices, flexible, path, is_in_array=True)


def _encode_element(
    field: Field, choices: FieldChoices, flexible: bool, path: str, *, is_in_array: bool = False
) -> Iterator[Part]:
    if field.struct is not None:
        if field.is_nullable and not is_in_array:
            present = choices.is_present(field, path)
            yield Part(PartRole.MARKER, path, b"\x01" if present else _NULL_STRUCT)
            if not present:
                return
        yield from encode(field.struct, choices, path)
        return
    value = choices.value(field, path)
    if field.kafka_type in FIXED:
        yield Part(PartRole.NUMBER, path, fixed_bytes(field.kafka_type, value), field.kafka_type)
        return
    data = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value
    wide = is_wide(PartRole.LENGTH, field.kafka_type)
    if data is not None and not (flexible or wide):
        data = data[:_LEGACY_STRING_BYTES_MAX]
    size = -1 if data is None else len(data)
    length = length_bytes(size, compact=flexible, wide=wide)
    yield Part(PartRole.LENGTH, path, length, field.kafka_type, flexible)
    if data is not None:
        yield Part(PartRole.CONTENT, path, data, field.kafka_type)


def fixed_bytes(kafka_type: str, value: Any) -> bytes:
    """Encode a value of a fixed size; a number that is too large keeps its low bytes."""
    if kafka_type == "uuid":
        return value.bytes if isinstance(value, uuid.UUID) else bytes(16)
    if kafka_type in {"bool", "float64"}:
        return FIXED[kafka_type].pack(value)
    size = FIXED[kafka_type].size
    return (int(value) & ((1 << 8 * size) - 1)).to_bytes(size, "big")


# --- decoding


def decode(frame: bytes, arrays: list[list[Any]] | None = None) -> Mapping[str, Any] | None:
    """Decode the request in a frame without its size; None for an API or version that kio does not have.

    As in Kafka, bytes after the message are ignored, null is rejected for a field that is not nullable, and the size of
    a known tagged field is ignored. A varint is a signed number of 32 bits; a negative number of tagged fields counts
    as zero. Raises `UndecodableError`.

    :param arrays: list to which every array is added, nested ones included; after an error, with the elements that
        were read before it.
    """
    reader = _Reader(frame, [] if arrays is None else arrays)
    api_key, version, _ = HEADER.unpack(reader.take(HEADER.size))
    if version not in known_versions(api_key):
        return None
    message = request_struct(api_key, version)
    reader.skip_string()
    if message.is_flexible:
        reader.tagged({})
    return reader.message(message)


class _Reader:
    def __init__(self, data: bytes, arrays: list[list[Any]]) -> None:
        self._data = data
        self._position = 0
        self._arrays = arrays

    def take(self, size: int) -> bytes:
        end = self._position + size
        if size < 0 or end > len(self._data):
            raise UndecodableError(f"{size} bytes wanted, {len(self._data) - self._position} left")
        taken = self._data[self._position : end]
        self._position = end
        return taken

    def varint(self) -> int:
        value = 0
        for shift in range(0, 35, 7):
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return (value & 0xFFFFFFFF ^ _SIGN) - _SIGN
        raise UndecodableError("a varint of more than five bytes")

    def skip_string(self) -> None:
        (size,) = struct.unpack(">h", self.take(2))
        self.take(max(size, 0))

    def length(self, *, compact: bool, wide: bool) -> int:
        """Read a length or count, -1 for null. Raises `UndecodableError` if fewer bytes are left."""
        if compact:
            size = self.varint() - 1
        else:
            size = struct.unpack(">i", self.take(4))[0] if wide else struct.unpack(">h", self.take(2))[0]
        if size > len(self._data) - self._position:
            raise UndecodableError(f"a length of {size}")
        return size

    def message(self, message: Struct) -> dict[str, Any]:
        values = {field.name: self.field(field, message.is_flexible) for field in message.fields}
        if message.is_flexible:
            values |= self.tagged(message.tagged)
        return values

    def tagged(self, known: Mapping[int, Field]) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for _ in range(self.varint()):
            tag, size = self.varint(), self.varint()
            if tag in known:
                values[known[tag].name] = self.field(known[tag], True)
            else:
                self.take(size)
        return values

    def field(self, field: Field, flexible: bool) -> Any:
        if not field.is_array:
            return self.element(field, flexible, nullable=field.is_nullable or field.tag is not None)
        count = self.length(compact=flexible, wide=True)
        if count < 0 and not field.is_nullable:
            raise UndecodableError(f"{field.name} is null")
        if count < 0:
            return None
        elements: list[Any] = []
        self._arrays.append(elements)
        for _ in range(count):
            elements.append(self.element(field, flexible, nullable=False))  # noqa: PERF401  kept if an element fails
        return elements

    def element(self, field: Field, flexible: bool, *, nullable: bool) -> Any:
        if field.struct is not None:
            if nullable and field.tag is None and self.take(1)[0] >= _NULL_FROM:
                return None
            return self.message(field.struct)
        if field.kafka_type == "uuid":
            return uuid.UUID(bytes=self.take(16))
        if field.kafka_type in FIXED:
            return FIXED[field.kafka_type].unpack(self.take(FIXED[field.kafka_type].size))[0]
        size = self.length(compact=flexible, wide=is_wide(PartRole.LENGTH, field.kafka_type))
        if size < 0 and not nullable:
            raise UndecodableError(f"{field.name} is null")
        if size < 0:
            return None
        data = self.take(size)
        return data.decode("utf-8", "replace") if field.kafka_type == "string" else data
