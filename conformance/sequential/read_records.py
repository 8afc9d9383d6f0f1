"""Records of a Fetch response as text for messages: offsets, and the first difference from the expected records."""

from collections.abc import Sequence
from dataclasses import fields
from itertools import pairwise
from typing import Any, Final, TypeAlias

from conformance.sequential.response import ReadRecord

Records: TypeAlias = tuple[ReadRecord, ...]

_CONTENT: Final = tuple(field.name for field in fields(ReadRecord) if field.name != "offset")


def are_records(value: Any) -> bool:
    """Whether a value is a tuple of records; it may be empty."""
    return isinstance(value, tuple) and all(isinstance(each, ReadRecord) for each in value)


def compared(alternatives: Sequence[Records], actual: Records) -> tuple[str, str]:
    """Return the expected and the actual records as text.

    If the first different record has the expected offset, the texts are about its content, else about all offsets.

    :param alternatives: the permitted values; each of them begins with all shorter ones.
    """
    shortest, longest = min(alternatives, key=len), max(alternatives, key=len)
    same = _common_length(longest, actual)
    wanted, found = longest[same : same + 1], actual[same : same + 1]
    if wanted and found and wanted[0].offset == found[0].offset:
        different = [name for name in _CONTENT if getattr(wanted[0], name) != getattr(found[0], name)]
        return _content(wanted[0], different), _content(found[0], different)
    more = f", or up to offset {longest[-1].offset}" if len(longest) > len(shortest) else ""
    return f"{_offsets(shortest)}{more}", f"{_offsets(actual)}{_first_difference(longest, actual, same)}"


def _common_length(one: Records, other: Records) -> int:
    """Return the number of records with which both begin."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (here, there) in pairs if here != there), min(len(one), len(other)))


def _first_difference(wanted: Records, actual: Records, same: int) -> str:
    """Return in brackets which offset is missing or not expected, after the first `same` records."""
    if not wanted or not actual:
        return ""
    if same < len(wanted) and (same == len(actual) or actual[same].offset > wanted[same].offset):
        return f" (offset {wanted[same].offset} is missing)"
    if same and actual[same].offset <= actual[same - 1].offset:
        return f" (offset {actual[same].offset} follows offset {actual[same - 1].offset})"
    return f" (offset {actual[same].offset} is not expected)"


def _content(record: ReadRecord, names: Sequence[str]) -> str:
    return f"{', '.join(f'{name} {getattr(record, name)!r}' for name in names)} at offset {record.offset}"


def _offsets(records: Records) -> str:
    """Return the offsets of records, such as "offsets 0 to 4, 6"; "none" without records."""
    if not records:
        return "none"
    offsets = [record.offset for record in records]
    starts = [0, *(place for place, (one, after) in enumerate(pairwise(offsets), start=1) if after != one + 1)]
    spans = [offsets[start:end] for start, end in pairwise([*starts, len(offsets)])]
    listed = ", ".join(f"{span[0]} to {span[-1]}" if len(span) > 1 else f"{span[0]}" for span in spans)
    return f"offset{'s' if len(offsets) > 1 else ''} {listed}"
