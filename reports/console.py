"""Rich console for untrusted text: no markup, no control sequences, only characters of the terminal's encoding.

`plain_table` gives all tables the same style.
"""

import errno
import os
from collections.abc import Iterable
from typing import Any, Final

from rich import box
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Column, Table
from rich.text import Text

from linearizability.printable import PROGRAM_MAX, printable

_ASCII_SIGNS: Final = str.maketrans(
    {"✔": "+", "✘": "x", "✗": "x", "·": ".", "→": "->", "…": "...", "─": "-", "━": "-", "⚡": "!"}
)
"""ASCII replacements of the signs that this project prints."""


class DataConsole(Console):
    """The console of every command and report. Colours come from styles alone, never from the text."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"markup": False, "highlight": False, "emoji": False, **options})

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Render as Rich does, but escape each segment, and cut a text above `PROGRAM_MAX` before Rich wraps it."""
        encoding = (options or self.options).encoding
        if isinstance(renderable, Text) and len(renderable) > PROGRAM_MAX:
            renderable = Text(printable(renderable.plain), renderable.style)
        for segment in super().render(renderable, options):
            if segment.control:
                yield segment
            else:
                yield Segment(encodable(printable(segment.text, None), encoding), segment.style)

    def on_broken_pipe(self) -> None:
        """Leave the exit code to `kafkatrial.__main__`: Rich's own is 1, which means a violation here."""
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))


def plain_table(*columns: Column | str, header_style: str = "bold") -> Table:
    """Return a table with a line below its headings."""
    return Table(*columns, box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style=header_style)


def encodable(text: str, encoding: str) -> str:
    """Replace characters that an encoding does not have: the project's signs by ASCII, others by escapes."""
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return text.translate(_ASCII_SIGNS).encode(encoding, "backslashreplace").decode(encoding)
    except LookupError:
        return encodable(text, "ascii")
    return text
