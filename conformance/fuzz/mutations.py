"""Mutations of a well-formed request: of one part or of the bytes of its body, of its header, or of its size."""

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from conformance.fuzz.values import limits
from conformance.fuzz.wire import HEADER, Part, PartRole, is_wide, length_bytes, varint

Mutation = Callable[[random.Random, list[Part]], str]
"""Changes the parts in place; returns a description, which is empty if there was nothing to change."""

ELEMENTS_BYTES_MAX: Final = 1024 * 1024
"""Maximum size of the elements of an array after they were repeated; larger arrays do not grow."""
_LENGTHS: Final = (-2, -1, 0, 1, 127, 128, 32767, 32768, 65535, 100_000_000, 2**31 - 2, 2**31 - 1)
_REPEATS: Final = (10, 10, 10, 100, 100, 1000, 10_000)
_VARINTS: Final = (
    b"\xff\xff\xff\xff\x0f",
    b"\xff\xff\xff\xff\x07",
    b"\xff\xff\xff\xff\xff\x01",
    b"\x80\x80\x80\x80\x00",
    b"\x80",
)
_MANY_TAGS: Final = varint(10_000) + b"".join(varint(1000 + tag) + b"\x00" for tag in range(10_000))
_BYTES: Final = (0x00, 0x01, 0x7F, 0x80, 0xFE, 0xFF)
_API_KEYS: Final = (-1, 4, 5, 6, 7, 93, 1000, 32767, -32768)
_VERSIONS: Final = (-1, 0, 1, 20, 127, 32767, -32768)


def change_length(rng: random.Random, parts: list[Part]) -> str:
    """Replace a length or count by a usually wrong value, or a compact one by an unusual or malformed varint."""
    place = _place(rng, parts, {PartRole.COUNT, PartRole.LENGTH})
    if place is None:
        return ""
    part = parts[place]
    value = rng.choice(_LENGTHS)
    data = length_bytes(value, compact=part.compact, wide=is_wide(part.role, part.kafka_type))
    if part.compact and rng.random() < 0.2:
        data = rng.choice(_VARINTS)
    parts[place] = replace(part, data=data)
    return f"{part.path}: {part.role} {data.hex()}"


def set_to_limit(rng: random.Random, parts: list[Part]) -> str:
    """Replace a number by one at or near a limit of its type (`limits`)."""
    place = _place(rng, parts, {PartRole.NUMBER})
    if place is None:
        return ""
    part = parts[place]
    size = len(part.data)
    value = rng.choice(limits(8 * size))
    parts[place] = replace(part, data=(value & ((1 << 8 * size) - 1)).to_bytes(size, "big"))
    return f"{part.path}: {value}"


def repeat_element(rng: random.Random, parts: list[Part]) -> str:
    """Repeat the elements of an array many times, with a correct count."""
    place = _place(rng, parts, {PartRole.COUNT})
    if place is None:
        return ""
    count = parts[place]
    end = _end_of(parts, place)
    content = b"".join(part.data for part in parts[place + 1 : end])
    if not content:
        return ""
    times = min(rng.choice(_REPEATS), max(1, ELEMENTS_BYTES_MAX // len(content)))
    elements = max(1, _count_of(count)) * times
    counted = replace(count, data=length_bytes(elements, compact=count.compact, wide=True))
    parts[place:end] = [counted, Part(PartRole.CONTENT, f"{count.path}.elements", content * times)]
    return f"{count.path}: {elements} elements"


def flip_bytes(rng: random.Random, parts: list[Part]) -> str:
    """Change up to eight bytes at random positions."""
    whole = bytearray(b"".join(part.data for part in parts))
    if not whole:
        return ""
    places = [rng.randrange(len(whole)) for _ in range(rng.randrange(1, 9))]
    for place in places:
        whole[place] = rng.choice(_BYTES) if rng.random() < 0.5 else whole[place] ^ 1 << rng.randrange(8)
    parts[:] = [Part(PartRole.CONTENT, "", bytes(whole))]
    return f"bytes {sorted(places)}"


def cut_or_copy(rng: random.Random, parts: list[Part]) -> str:
    """Remove a range of bytes, repeat it in place, or append a copy of it."""
    whole = b"".join(part.data for part in parts)
    if not whole:
        return ""
    start = rng.randrange(len(whole))
    end = min(len(whole), start + rng.choice((1, 2, 4, 16, len(whole))))
    kind = rng.choice(("removed", "repeated", "appended again"))
    match kind:
        case "removed":
            changed = whole[:start] + whole[end:]
        case "repeated":
            changed = whole[:end] + whole[start:]
        case _:
            changed = whole + whole[start:end]
    parts[:] = [Part(PartRole.CONTENT, "", changed)]
    return f"bytes {start} to {end} {kind}"


def replace_tags(rng: random.Random, parts: list[Part]) -> str:
    """Replace a section of tagged fields (KIP-482).

    The new section has one unknown field, 10,000 unknown fields, the same tag twice, or a wrong size or count.
    """
    place = _place(rng, parts, {PartRole.TAGS})
    if place is None:
        return ""
    data = rng.choice(
        (
            varint(1) + varint(1000) + varint(3) + b"abc",
            _MANY_TAGS,
            varint(2) + (varint(7) + varint(1) + b"x") * 2,
            varint(1) + varint(0) + varint(2**31 - 1),
            varint(2**32 - 1),
        )
    )
    parts[place] = replace(parts[place], data=data)
    return f"{parts[place].path}: {data[:12].hex()}"


BODY_MUTATIONS: Final[Sequence[Mutation]] = (
    change_length,
    change_length,
    set_to_limit,
    set_to_limit,
    set_to_limit,
    repeat_element,
    flip_bytes,
    flip_bytes,
    cut_or_copy,
    replace_tags,
)


def mutated_header(rng: random.Random, frame: bytes) -> tuple[bytes, str]:
    """Replace the API key, the version, the correlation id or the length of the client id, or truncate the frame.

    A truncated frame keeps at most the bytes up to the length of the client id. Returns the frame and a description.
    """
    api_key, version, correlation_id = HEADER.unpack_from(frame)
    match rng.choice(("key", "version", "correlation", "client id", "cut")):
        case "key":
            api_key = rng.choice((*_API_KEYS, rng.randrange(93)))
            return HEADER.pack(api_key, version, correlation_id) + frame[HEADER.size :], f"API key {api_key}"
        case "version":
            version = rng.choice((*_VERSIONS, version + 1, version - 1))
            return HEADER.pack(api_key, version, correlation_id) + frame[HEADER.size :], f"version {version}"
        case "correlation":
            correlation_id = rng.choice((-1, 0, -(2**31), 2**31 - 1))
            return HEADER.pack(api_key, version, correlation_id) + frame[HEADER.size :], "correlation id"
        case "client id":
            length = rng.choice((-2, -(2**15), 2**15 - 1, len(frame)))
            client_id = (length & 0xFFFF).to_bytes(2, "big")
            return frame[: HEADER.size] + client_id + frame[HEADER.size + 2 :], f"client id of {length} bytes"
    end = rng.randrange(HEADER.size + 3)
    return frame[:end], f"only {end} bytes"


def mutated_size(rng: random.Random, frame: bytes) -> tuple[bytes, str]:
    """Return the frame with a wrong size in front, and a description."""
    size = rng.choice((-(2**31), -1, 0, 1, 8, len(frame) - 1, len(frame) + 1, 2**20, 2**31 - 1))
    return (size & 0xFFFFFFFF).to_bytes(4, "big") + frame, f"frame size {size} instead of {len(frame)}"


def _place(rng: random.Random, parts: Sequence[Part], roles: set[PartRole]) -> int | None:
    places = [place for place, part in enumerate(parts) if part.role in roles]
    return rng.choice(places) if places else None


def _end_of(parts: Sequence[Part], place: int) -> int:
    """Return the index after an array's elements.

    The path of a part of a struct is below the array's path; that of a primitive element equals the array's path.
    """
    path = parts[place].path
    for index in range(place + 1, len(parts)):
        part = parts[index]
        if not (part.path.startswith(f"{path}.") or (part.path == path and part.role is not PartRole.COUNT)):
            return index
    return len(parts)


def _count_of(part: Part) -> int:
    if not part.compact:
        return int.from_bytes(part.data, "big", signed=True)
    return sum((byte & 0x7F) << 7 * index for index, byte in enumerate(part.data)) - 1
