"""Fast encoder of kio's entities, which returns the same bytes as kio's writer.

kio's writer writes each field into a buffer. For a short message, this takes longer than all other work. Here a writer
is compiled once per message class from kio's dataclasses. It packs adjacent fields of fixed size together, and joins
the parts at the end.

If thousands of elements of a message have the same array, it is a `SharedArray`, which is encoded once.
"""

import struct
from collections.abc import Callable
from dataclasses import MISSING, Field, fields, is_dataclass
from datetime import datetime
from typing import Any, get_args, get_origin, get_type_hints

from kio.serial._implicit_defaults import get_tagged_field_default

from reference_broker.protocol.bounds import without_null
from reference_broker.protocol.durations import milliseconds

Encode = Callable[[Any], bytes]
"""Function from an entity to its bytes. An entity with invalid values raises a Python error, such as `struct.error`."""

_FORMATS = {
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "uint16": "H",
    "error_code": "h",
    "int32": "i",
    "uint32": "I",
    "timedelta_i32": "i",
    "int64": "q",
    "timedelta_i64": "q",
    "datetime_i64": "q",
    "float64": "d",
    "uuid": "16s",
}
_CONVERSIONS = {
    "error_code": "{}._value_",
    "timedelta_i32": "milliseconds({})",
    "timedelta_i64": "milliseconds({})",
    "datetime_i64": "epoch_ms({})",
    "uuid": "uuid_bytes({})",
}
_NO_TAGGED_FIELDS = "x"
"""`struct` format for an entity without tagged fields: a pad byte, which is zero like the count of tagged fields."""


_ENCODERS: dict[Any, Encode] = {}


def encoder(entity_type: Any) -> Encode:
    """Return the writer of a message class, which is compiled at the first call."""
    encode = _ENCODERS.get(entity_type)
    if encode is None:
        encode = _ENCODERS[entity_type] = _Compiler().compile(entity_type)
    return encode


def varint(value: int) -> bytes:
    """Encode an unsigned varint."""
    if value < len(_SHORT):
        return _SHORT[value]
    written = bytearray()
    while value >= 0x80:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    written.append(value)
    return bytes(written)


_SHORT = tuple(bytes((value,)) for value in range(0x80))


_TEXT, _SHORTENED_TEXT = "value.encode()", "shortened(value)"
_LEGACY_STRING_MAX_BYTES = 32767


def _shortened(text: str) -> bytes:
    """Cut an error message, which may quote the request, to the limit of a signed 16-bit length."""
    encoded = text.encode()
    if len(encoded) <= _LEGACY_STRING_MAX_BYTES:
        return encoded
    return encoded[:_LEGACY_STRING_MAX_BYTES].decode(errors="ignore").encode()


def _uuid_bytes(uuid: Any) -> bytes:
    return bytes(16) if uuid is None else uuid.bytes


def _epoch_ms(moment: datetime | None) -> int:
    return -1 if moment is None else round(moment.timestamp() * 1000)


class SharedArray(tuple[Any, ...]):  # noqa: SLOT001 - a tuple cannot have slots that hold a value
    """An array that several elements of a message contain, with its encoding.

    :ivar encoded: the bytes of the array; null until it is encoded. They are valid only for one version of one API.
    """

    encoded: bytes | None = None


class _Compiler:
    """Compiler of a message class: one Python function for it and for each nested class."""

    def __init__(self) -> None:
        self._namespace: dict[str, Any] = {
            "varint": varint,
            "milliseconds": milliseconds,
            "epoch_ms": _epoch_ms,
            "uuid_bytes": _uuid_bytes,
            "shortened": _shortened,
            "SharedArray": SharedArray,
        }
        self._names: dict[Any, str] = {}
        self._lines: list[str] = []

    def compile(self, entity_type: Any) -> Encode:
        name = self.entity(entity_type)
        self._lines += [
            "def encode(entity):",
            "    parts = []",
            f"    {name}(parts.append, entity)",
            "    return b''.join(parts)",
        ]
        exec("\n".join(self._lines), self._namespace)  # noqa: S102 - generated here from the field names of kio's classes
        encode: Encode = self._namespace["encode"]
        return encode

    def entity(self, entity_type: Any) -> str:
        """Return the name of the function that writes entities of this class."""
        if entity_type not in self._names:
            self._names[entity_type] = f"write_{len(self._names)}_{entity_type.__name__}"
            self._lines += _Function(self, entity_type).lines(self._names[entity_type])
        return self._names[entity_type]

    def constant(self, value: Any) -> str:
        """Add a value to the namespace and return its name."""
        name = f"constant_{len(self._namespace)}"
        self._namespace[name] = value
        return name


class _Function:
    """Source code of one function that writes an entity, or of the lines that write one of its fields.

    Adjacent fields of fixed size are collected in `_format` and `_packed`, until `_pack` adds one line for all of them.
    """

    def __init__(self, compiler: _Compiler, entity_type: Any) -> None:
        self._compiler = compiler
        self._type = entity_type
        self._flexible: bool = entity_type.__flexible__
        self._written: list[str] = []
        self._format = ""
        self._packed: list[str] = []

    def lines(self, name: str) -> list[str]:
        """Return the lines of the function."""
        hints = get_type_hints(self._type)
        tagged = {field.metadata["tag"]: field for field in fields(self._type) if "tag" in field.metadata}
        for field in fields(self._type):
            if "tag" not in field.metadata:
                self._value(f"entity.{field.name}", hints[field.name], field.metadata.get("kafka_type"))
        if tagged:
            self._tagged_fields([(tag, tagged[tag], hints[tagged[tag].name]) for tag in sorted(tagged)])
        elif self._flexible:
            self._format += _NO_TAGGED_FIELDS
        self._pack()
        return [f"def {name}(add, entity):", *(f"    {line}" for line in self._written or ["pass"])]

    def _value(self, source: str, hint: Any, kafka_type: str | None, *, tagged: bool = False) -> None:
        """Add the code that writes the value of an expression.

        :param source: the expression.
        :param hint: type of the value.
        """
        inner = without_null(hint)
        is_nullable = inner is not hint and not tagged
        if get_origin(inner) is tuple:
            self._array(source, get_args(inner)[0], kafka_type)
        elif is_dataclass(inner):
            self._nested(source, inner, is_nullable=is_nullable)
        elif kafka_type in _FORMATS:
            self._format += _FORMATS[kafka_type]
            self._packed.append(_CONVERSIONS.get(kafka_type, "{}").format(source))
        else:
            is_message = source == "entity.error_message" and not self._flexible
            to_text = _SHORTENED_TEXT if is_message else _TEXT
            self._bytes(source, to_text if kafka_type == "string" else None, is_nullable=is_nullable)

    def _pack(self) -> None:
        """Add a line that packs the collected fields of fixed size."""
        if self._format:
            pack = self._compiler.constant(struct.Struct(f">{self._format}").pack)
            self._written.append(f"add({pack}({', '.join(self._packed)}))")
            self._format, self._packed = "", []

    def _nested(self, source: str, entity_type: Any, *, is_nullable: bool) -> None:
        self._pack()
        write = self._compiler.entity(entity_type)
        if not is_nullable:
            self._written.append(f"{write}(add, {source})")
            return
        self._written += [  # KIP-893
            f"if {source} is None:",
            r"    add(b'\xff')",
            "else:",
            r"    add(b'\x01')",
            f"    {write}(add, {source})",
        ]

    def _array(self, source: str, element: Any, kafka_type: str | None) -> None:
        self._pack()
        inside = _Function(self._compiler, self._type)
        inside._value("element", element, kafka_type)
        inside._pack()
        null, length = (r"b'\x00'", "varint(len(value) + 1)") if self._flexible else self._lengths("i")
        write = [f"add({length})", "for element in value:", *(f"    {line}" for line in inside._written)]
        self._written += [f"value = {source}", "if value is None:", f"    add({null})"]
        if is_dataclass(element):
            self._written += [
                "elif type(value) is SharedArray:",
                "    if value.encoded is None:",
                "        shared, add_other, parts = value, add, []",
                "        add = parts.append",
                *(f"        {line}" for line in write),
                "        add, shared.encoded = add_other, b''.join(parts)",
                "    add(value.encoded)",
            ]
        self._written += ["else:", *(f"    {line}" for line in write)]

    def _bytes(self, source: str, to_text: str | None, *, is_nullable: bool) -> None:
        """Add lines that write bytes, or a string that the expression `to_text` encodes."""
        self._pack()
        null, length = (
            (r"b'\x00'", "varint(len(value) + 1)") if self._flexible else self._lengths("i" if to_text is None else "h")
        )
        encoded = [] if to_text is None else [f"value = {to_text}"]
        some = [*encoded, f"add({length})", "add(value)"]
        self._written.append(f"value = {source}")
        if is_nullable:
            some = ["if value is None:", f"    add({null})", "else:", *(f"    {line}" for line in some)]
        self._written += some

    def _lengths(self, number_format: str) -> tuple[str, str]:
        pack = struct.Struct(f">{number_format}").pack
        return repr(pack(-1)), f"{self._compiler.constant(pack)}(len(value))"

    def _tagged_fields(self, tagged: list[tuple[int, "Field[Any]", Any]]) -> None:
        """Add lines that write a count, and then the tagged fields whose value is not the default (KIP-482)."""
        self._pack()
        self._written += ["tagged = []"]
        for tag, field, hint in tagged:
            default = field.default if field.default is not MISSING else get_tagged_field_default(field)
            name = self._compiler.constant(default)
            inside = _Function(self._compiler, self._type)
            inside._value(f"entity.{field.name}", hint, field.metadata.get("kafka_type"), tagged=True)
            inside._pack()
            self._written += [
                f"if entity.{field.name} is not {name} and entity.{field.name} != {name}:",
                "    outer_add, content = add, []",
                "    add = content.append",
                *(f"    {line}" for line in inside._written),
                "    add, content = outer_add, b''.join(content)",
                f"    tagged += ({varint(tag)!r}, varint(len(content)), content)",
            ]
        self._written += [
            "if tagged:",
            "    add(varint(len(tagged) // 3))",
            "    add(b''.join(tagged))",
            "else:",
            r"    add(b'\x00')",
        ]
