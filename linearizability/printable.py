"""Text for terminals and reports: escapes of text from a history, a broker, a file name or an exception, and counts.

Such text may contain anything. A terminal executes escape sequences, bidirectional controls change the order in which a
line is read, XML permits no control characters, and no encoding has half of a surrogate pair. So all of these are
written as Python escapes. A text that is too long is cut, and a mark shows how much is missing. Everything that prints
such text uses this module.
"""

import re
from typing import Final

TEXT_MAX: Final = 4_000
"""The maximum number of characters of a text: more than any message has, few enough to show a thousand texts."""
PROGRAM_MAX: Final = 1_000_000
"""The maximum number of characters of a program. It is higher, because a program that is cut does not run."""

_UNPRINTABLE: Final = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 but for tab and line feed, DEL, C1
    r"\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff"  # bidirectional controls, separators, no width
    r"\ud800-\udfff\ufff9-\ufffb\ufffe\uffff\U000e0000-\U000e0fff]"  # surrogates, annotations, noncharacters, tags
)


def printable(text: object, length_max: int | None = TEXT_MAX) -> str:
    r"""Return the text with control characters written as `\x1b` or `\u202e`, cut after `length_max` characters."""
    whole = text if isinstance(text, str) else str(text)
    shown = whole if length_max is None else whole[:length_max]
    left_out = len(whole) - len(shown)
    escaped = _UNPRINTABLE.sub(_escaped, shown)
    return f"{escaped}… ({left_out:,} more characters)" if left_out else escaped


def cut(text: str, length_max: int = TEXT_MAX) -> str:
    """Cut a text that is too long, with the same mark but without escapes, for JSON."""
    left_out = len(text) - length_max
    return f"{text[:length_max]}… ({left_out:,} more characters)" if left_out > 0 else text


def one_line(text: object, length_max: int | None = TEXT_MAX) -> str:
    """Return printable text (see `printable`) without line breaks or repeated spaces."""
    whole = text if isinstance(text, str) else str(text)
    near = whole if length_max is None else whole[: 2 * length_max]
    left_out = len(whole) - len(near)
    joined = " ".join(near.split())
    return printable(joined + " " * left_out if left_out else joined, length_max)


def in_cell(text: object, length_max: int | None = TEXT_MAX) -> str:
    r"""Return printable text (see `printable`) for a table's cell: with `\n` and `\t` for line feeds and tabs."""
    return printable(text, length_max).replace("\n", "\\n").replace("\t", "\\t")


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, such as `1 operation` or `1,204 operations`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _escaped(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
