"""Temporary folder that is removed even if the process that created it is killed.

The process holds a lock on the folder while it runs (`flock`). The kernel releases the lock however the process ends.
When a later process creates its first folder, it removes all folders of this user that are neither locked nor kept. It
tests the locks and compares no pids. Therefore it also works for processes of another pid namespace, and a reused pid
cannot keep or remove a folder.
"""

import fcntl
import os
import shutil
import subprocess
import tempfile
import weakref
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final

_HELD: Final = "kafkatrial-held-"
_DRAFT: Final = "kafkatrial-new-"
_KEPT: Final = ".kept"
_UNMOUNT: Final = (["fusermount3", "-u", "-z"], ["umount", "-l"])
_UNMOUNT_TIMEOUT_S: Final = 10.0


class TemporaryFolder:
    """A folder that is removed by `remove`, when this object is garbage-collected, or after the process has ended.

    :ivar path: path of the folder.
    """

    def __init__(self) -> None:
        """Create the folder. Raises OSError."""
        remove_abandoned(tempfile.gettempdir())
        draft = Path(tempfile.mkdtemp(prefix=_DRAFT))
        lock = os.open(draft, os.O_RDONLY)
        fcntl.flock(lock, fcntl.LOCK_EX)
        # Other processes look for abandoned folders by this name, so it is given only once the lock is held.
        self.path = draft.rename(draft.with_name(_HELD + draft.name.removeprefix(_DRAFT)))
        self._removal = weakref.finalize(self, _remove, self.path, lock)

    def remove(self) -> None:
        """Remove the folder. Idempotent."""
        self._removal()

    def keep(self) -> None:
        """Disable the removal of the folder, so that its content can be inspected."""
        (self.path / _KEPT).touch()
        self._removal.detach()

    def __enter__(self) -> Path:
        return self.path

    def __exit__(self, *error: object) -> None:
        self.remove()


@cache
def remove_abandoned(place: str) -> None:
    """Remove this user's folders that are neither locked nor kept. Later calls for the same place do nothing."""
    for path in Path(place).glob(f"{_HELD}*"):
        with suppress(OSError):
            _remove_if_abandoned(path)


def _remove_if_abandoned(path: Path) -> None:
    lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        if os.fstat(lock).st_uid != os.geteuid() or (path / _KEPT).exists():
            return
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _unmount(path)
        if not _mounts(path):
            shutil.rmtree(path, ignore_errors=True)
    finally:
        os.close(lock)


def _remove(path: Path, lock: int) -> None:
    shutil.rmtree(path, ignore_errors=True)
    os.close(lock)


def _unmount(path: Path) -> None:
    """Unmount what a killed process left mounted below a folder, so that `rmtree` does not delete the mounted files."""
    for point in _mounts(path):
        for command in _UNMOUNT:
            with suppress(OSError, subprocess.TimeoutExpired):
                subprocess.run([*command, point], capture_output=True, timeout=_UNMOUNT_TIMEOUT_S, check=False)


def _mounts(path: Path) -> list[str]:
    """Return the mount points at or below a folder, the innermost first."""
    with suppress(OSError):
        lines = Path("/proc/self/mounts").read_text(errors="surrogateescape").splitlines()
        points = [line.split(" ")[1] for line in lines]
        return sorted((each for each in points if Path(each).is_relative_to(path)), reverse=True)
    return []
