"""Making logs durable for good: a segment that is rolled, and all the logs of a broker that stops."""

from collections.abc import Iterable
from typing import Protocol

from reference_broker.core.disk import Disk


class Closable(Protocol):
    """What a log offers for this."""

    directory: str

    def finish(self) -> list[str]:
        """Write what is left to write; the paths of what is to be flushed."""
        ...


def close_logs(disk: Disk, logs: Iterable[Closable]) -> None:
    """Write and flush what is left, of all logs at once: thousands cost little more than one."""
    logs = tuple(logs)
    disk.flush(*[path for log in logs for path in log.finish()])
    disk.flush_directory(*[log.directory for log in logs])
