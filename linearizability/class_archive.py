"""Archives of the classes that a JVM loads (AppCDS, JEP 350), so that it need not read them from jars and verify them.

An archive is made once: a JVM that has run the program writes the archive on exit, for later JVMs with this program.
The archive is in the user's cache, and belongs to one Java and one set of jars. It is not passed to a JVM if it is
missing or was changed. A JVM ignores an archive that does not fit its class path. Without an archive, a JVM starts more
slowly; nothing else changes.
"""

import hashlib
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from linearizability.cache import cache_directory, move_into_cache, rejection_reason

_QUIET: Final = "-Xlog:cds=off", "-Xlog:cds+dynamic=off"
"""Options that suppress warnings: a class that cannot be archived, or an archive that does not fit, only costs time."""


class ClassArchiveError(Exception):
    """Failure to make an archive. The message is one line with the reason."""


@dataclass(frozen=True, slots=True)
class ClassArchive:
    """Path of an archive, which need not exist yet."""

    path: Path

    @classmethod
    def of(cls, name: str, java: Path, jars: Sequence[Path]) -> Self:
        """Return the archive of these jars for this Java; its path changes if a jar or Java is replaced in place.

        :raises OSError: a jar does not exist.
        """
        java = java.resolve()
        files = [java, *jars] if java.exists() else jars
        stats = [(file, file.stat()) for file in files]
        identity = "\n".join(f"{file} {stat.st_size} {stat.st_mtime_ns}" for file, stat in stats)
        digest = hashlib.sha256(identity.encode()).hexdigest()[:16]
        return cls(cache_directory() / "classes" / f"{name}-{digest}.jsa")

    def options(self) -> tuple[str, ...]:
        """Return the JVM's options that use the archive; none if it does not exist or was changed."""
        return () if rejection_reason(self.path) else (f"-XX:SharedArchiveFile={self.path}", *_QUIET)

    def make(self, run: Callable[[Sequence[str]], str]) -> Path:
        """Make the archive unless it exists and is unchanged.

        :param run: function that runs a JVM with the given options until it exits, and returns its last line of output.
        :raises ClassArchiveError: the JVM wrote no archive, or the cache cannot be written.
        """
        if not rejection_reason(self.path):
            return self.path
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=self.path.parent, prefix=".draft-") as folder:
                draft = Path(folder) / self.path.name
                line = run((f"-XX:ArchiveClassesAtExit={draft}", *_QUIET))
                if not draft.is_file():
                    raise ClassArchiveError(line or "the JVM wrote none")
                move_into_cache(draft, self.path)
        except OSError as error:
            place = error.filename or self.path.parent
            raise ClassArchiveError(f"{place}: cannot be used: {error.strerror or error}") from None
        return self.path
