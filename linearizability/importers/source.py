"""Lines of an imported file, plain or compressed by gzip, and error messages about bad lines."""

import gzip
import json
import zlib
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from linearizability.history.errors import HistoryError
from linearizability.history.files import check_regular

GZIP_MAGIC: Final = b"\x1f\x8b"
LINE_BYTES_MAX: Final = 256 * 2**20
"""The maximum length of a line in bytes. It is large because a whole history may be one line of JSON."""
UNPACKED_BYTES_MAX: Final = 2**30
"""Limit for a compressed file: an import holds all rows in memory, and a few kilobytes may unpack to any size."""
SHOWN_MAX: Final = 80
"""The maximum number of characters of a bad line in a message."""


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield each line with its number, from 1.

    Raises HistoryError for a file that cannot be read, is not UTF-8, has a line of more than LINE_BYTES_MAX, or unpacks
    to more than UNPACKED_BYTES_MAX.
    """
    number = unpacked = 0
    check_regular(path)
    try:
        with path.open("rb") as file:
            compressed = file.read(len(GZIP_MAGIC)) == GZIP_MAGIC
        with gzip.open(path) if compressed else path.open("rb") as lines:
            for number, line in enumerate(iter(partial(lines.readline, LINE_BYTES_MAX + 1), b""), start=1):
                if len(line) > LINE_BYTES_MAX:
                    raise bad_line(path, number, f"longer than {LINE_BYTES_MAX} bytes")
                unpacked += len(line)
                if compressed and unpacked > UNPACKED_BYTES_MAX:
                    what = f"the compressed file unpacks to more than {UNPACKED_BYTES_MAX} bytes"
                    raise bad_line(path, number, f"{what}; unpack it first to judge all of it")
                yield number, line.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError as error:
        raise bad_line(path, number, f"not UTF-8: {error.reason}") from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise bad_line(path, number + 1, f"the compressed file is damaged: {error}") from None
    except OSError as error:
        raise HistoryError(f"{path}: cannot be read: {error.strerror}") from None


class RepeatedMemberError(ValueError):
    """Error for an object that has a member twice, so that its value is unclear."""


def no_member_twice(members: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Build an object from its members, as `object_pairs_hook` of `json`. Raises RepeatedMemberError."""
    found = dict(members)
    if len(found) < len(members):
        names = [name for name, _ in members]
        name = next(name for place, name in enumerate(names) if name in names[:place])
        raise RepeatedMemberError(f"an object has the member {shown(name)!r} twice")
    return found


def json_of(path: Path, number: int, text: str) -> Any:
    """Parse a line of JSON. Raises HistoryError with the line, also if an object has a member twice."""
    try:
        return json.loads(text, object_pairs_hook=no_member_twice)
    except RepeatedMemberError as error:
        raise bad_line(path, number, str(error)) from None
    except (ValueError, RecursionError) as error:
        raise bad_line(path, number, f"not JSON: {error}") from None


def bad_line(path: Path, number: int, what: str) -> HistoryError:
    """Return the error for an invalid line. Its message is one line."""
    return HistoryError(f"{path}, line {number}: {what}")


def shown(text: object) -> str:
    """Return the beginning of a text, for a message."""
    line = " ".join(str(text).split())
    return line if len(line) <= SHOWN_MAX else line[:SHOWN_MAX] + "…"
