"""Cache directory of the user, and verification of the files built into it before they are executed.

A file that is built on this machine (a Go binary or a class archive) differs from one toolchain to the next. Its hash
cannot be committed to the repository, as that of a downloaded jar can. Instead, the build records the SHA-256 of a
file, or of each file in a directory, in `NAME.sha256` beside it. Before each use the files are compared with that
record. A file is rejected if the file, its record or their directory is a symbolic link, belongs to a user other than
this one and root, or can be written by a group or by every user. When a file is moved into the cache, others lose the
permission to write it, so that the umask does not matter.
"""

import fcntl
import hashlib
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def cache_directory() -> Path:
    """Return `$XDG_CACHE_HOME/kafkatrial`, or `~/.cache/kafkatrial`. It need not exist."""
    root = os.environ.get("XDG_CACHE_HOME")
    return (Path(root) if root else Path.home() / ".cache") / "kafkatrial"


def move_into_cache(built: Path, final: Path) -> None:
    """Move a file or directory that was just built to its place in the cache, and record its hashes. Raises OSError."""
    for path in (final.parent, built, *(built.rglob("*") if built.is_dir() else ())):
        mode = path.stat().st_mode
        if mode & _WRITABLE_BY_OTHERS:
            path.chmod(stat.S_IMODE(mode) & ~_WRITABLE_BY_OTHERS)
    record = built.with_name(built.name + ".sha256")
    record.write_text(_hashes(built))
    record.chmod(0o644)
    with _locked(final.parent, fcntl.LOCK_EX), tempfile.TemporaryDirectory(dir=final.parent, prefix=".old-") as old:
        if final.is_dir() and not final.is_symlink():  # a rename does not replace a directory
            final.rename(Path(old) / final.name)
        built.replace(final)
        record.replace(record_of(final))


def record_of(path: Path) -> Path:
    """Return the path of the recorded hashes of a built file or directory."""
    return path.with_name(path.name + ".sha256")


def rejection_reason(path: Path) -> str | None:
    """Return why a built file or directory must not be executed, in a phrase; None if it matches its record."""
    try:
        with _locked(path.parent, fcntl.LOCK_SH):
            return _rejection_reason(path, record_of(path))
    except OSError as error:
        return f"it cannot be checked: {error.strerror}"


def _rejection_reason(path: Path, record: Path) -> str | None:
    for file in (path.parent, path, record):
        if reason := _why_changeable(file):
            return reason
    if not record.is_file():
        return f"its build recorded no SHA-256 in {record}"
    recorded = record.read_text(errors="replace")
    return None if _hashes(path) == recorded else "its SHA-256 is not the one that its build recorded"


@contextmanager
def _locked(directory: Path, kind: int) -> Iterator[None]:
    """Hold a lock on the directory, so that a file and its record are replaced as one."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, kind)
        yield
    finally:
        os.close(descriptor)


def sha256_of(path: Path) -> str:
    """Return the file's SHA-256 in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _hashes(path: Path) -> str:
    """Return the hash of a file; for a directory, a line for each file: its hash and its path in the directory."""
    if not path.is_dir():
        return f"{sha256_of(path)}\n"
    return "".join(f"{sha256_of(file)}  {file.relative_to(path)}\n" for file in _files(path))


def _files(directory: Path) -> Iterator[Path]:
    yield from (file for file in sorted(directory.rglob("*")) if not file.is_dir() or file.is_symlink())


def _why_changeable(path: Path) -> str | None:
    """Return how another user could change a file or directory; None if nothing was found, or if it does not exist."""
    if path.is_symlink():
        return f"{path} is a symbolic link"
    if not path.exists():
        return None
    status = path.stat()
    if status.st_uid not in (os.geteuid(), 0):
        return f"{path} belongs to another user"
    return f"{path} can be written by other users" if status.st_mode & _WRITABLE_BY_OTHERS else None
