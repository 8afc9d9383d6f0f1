"""Long computations in bounded steps: a generator that yields after each step and returns the result.

A step takes a few milliseconds at most. A node runs one step per event and handles other requests in between
(`core.work`); Kafka uses several request handler threads.
"""

from collections.abc import Generator
from typing import TypeVar

_T = TypeVar("_T")
Steps = Generator[None, None, _T]

RECORDS_PER_STEP = 4096
BYTES_PER_STEP = 256 * 1024


def finish(steps: Steps[_T]) -> _T:
    """Run all steps and return the result."""
    while True:
        try:
            next(steps)
        except StopIteration as done:
            result: _T = done.value
            return result
