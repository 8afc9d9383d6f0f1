"""Bounded reading of regular files: reading a FIFO or a device could block, or never end."""

import os
import stat
from pathlib import Path
from typing import Final

from linearizability.history.errors import HistoryError

DOCUMENT_BYTES_MAX: Final = 64 * 2**20
"""Bound on a file that is read as a whole: run.json with a hundred thousand topics has about 10 MB."""

_KINDS: Final = (
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a character device"),
    (stat.S_ISBLK, "a block device"),
)


def check_regular(path: Path) -> int:
    """Return the size of a file. Raises HistoryError unless it is a regular file or a link to one."""
    try:
        status = path.stat()
    except OSError as error:
        reason = "a link to a file that does not exist" if path.is_symlink() else error.strerror
        raise HistoryError(f"{path}: {reason}") from None
    if not stat.S_ISREG(status.st_mode):
        kind = next((name for has_kind, name in _KINDS if has_kind(status.st_mode)), "an unknown kind of file")
        raise HistoryError(f"{path}: {kind}, not a regular file")
    return status.st_size


def read_bounded(path: Path, bytes_max: int = DOCUMENT_BYTES_MAX) -> bytes:
    """Return the content of a small file. Raises HistoryError for a larger one, and as `check_regular` does.

    The file may grow or be replaced meanwhile. Therefore at most `bytes_max` + 1 bytes are read, without blocking.
    """
    check_regular(path)
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            content = file.read(bytes_max + 1)
    except OSError as error:
        raise HistoryError(f"{path}: cannot be read: {error.strerror}") from None
    if len(content) > bytes_max:
        raise HistoryError(f"{path}: larger than {bytes_max // 2**20} MiB")
    return content
