"""Long work in bounded pieces: a generator that yields after each of them, and returns the result.

A piece takes a few milliseconds at most, so that a node which runs one piece per event serves others in between
(`core.work`). Kafka has request handler threads for that.
"""

from collections.abc import Generator
from typing import TypeVar

_T = TypeVar("_T")
Steps = Generator[None, None, _T]

RECORDS_PER_STEP = 4096
BYTES_PER_STEP = 256 * 1024


def finish(steps: Steps[_T]) -> _T:
    """Run all pieces at once."""
    while True:
        try:
            next(steps)
        except StopIteration as done:
            result: _T = done.value
            return result
