"""Recognition of the form of a history file by its first bytes; its name is ignored."""

import gzip
import re
import zlib
from enum import Enum
from pathlib import Path
from typing import Final

from linearizability.history.errors import HistoryError, NotARunError
from linearizability.history.files import check_regular
from linearizability.history.run import RUN_FILE
from linearizability.importers.source import GZIP_MAGIC, shown

HEAD_BYTES: Final = 65_536
_PARQUET_MAGIC: Final = b"PAR1"


class Form(Enum):
    """The known forms, with their names for messages."""

    ETCD_LOG = "a log of Jepsen against etcd: a register with compare-and-set"
    KEY_VALUE_LOG = "a log of a key-value store with append"
    JEPSEN_EDN = "a history of Jepsen, as EDN"
    JEPSEN_JSON = "a history of Jepsen, as JSON"
    NDJSON = "the tables of a history, as NDJSON"
    OPERATIONS = "operations of some object, as NDJSON"


_SIGNS: Final = (
    # Lines of other loggers and of the nemesis may precede the first line of a client.
    (
        Form.ETCD_LOG,
        re.compile(
            r"(?:(?!INFO\s+jepsen\.util\s)(?:TRACE|DEBUG|INFO|WARN|ERROR|FATAL)[ \t][^\n]*\n\s*)*+INFO\s+jepsen\.util\s"
        ),
    ),
    (Form.KEY_VALUE_LOG, re.compile(r"(?:\{:process :nemesis,[^\n]*\n)*\{:process [^\n]*:f :(get|put|append), :key ")),
    (Form.NDJSON, re.compile(r'\{[^\n]*"table"\s*:')),
    (Form.OPERATIONS, re.compile(r'\{[^\n]*"(input|kind)"\s*:')),
    (Form.JEPSEN_JSON, re.compile(r'[\[\s]*\{[\s\S]{0,4000}?"(type|process)"\s*:')),
    (Form.JEPSEN_EDN, re.compile(r"(?:[\s\[(]|;[^\n]*\n|#[\w.]+)*+\{[\s\S]{0,4000}?:(type|process)\s")),
)


def recognise(path: Path) -> Form:
    """Return the form of a file. Raises NotARunError if it is unknown, HistoryError if the file cannot be read."""
    head = _head(path)
    if head.startswith(_PARQUET_MAGIC):
        raise NotARunError(f"{path}: one table of a run; name the directory that holds the {RUN_FILE}")
    text = head.decode("utf-8", errors="replace").removeprefix("\ufeff").lstrip()
    if not text:
        raise NotARunError(f"{path}: the file is empty")
    for form, sign in _SIGNS:
        if sign.match(text):
            return form
    begins = "with binary data" if "\0" in text else f"with {shown(text)!r}"
    raise NotARunError(f"{path}: not a history of a known form (see `kafkatrial check --help`); it begins {begins}")


def _head(path: Path) -> bytes:
    check_regular(path)
    try:
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
        if not head.startswith(GZIP_MAGIC):
            return head
        with gzip.open(path) as unpacked:
            return unpacked.read(HEAD_BYTES)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise HistoryError(f"{path}: the compressed file is damaged: {error}") from None
    except OSError as error:
        raise HistoryError(f"{path}: cannot be read: {error.strerror}") from None
