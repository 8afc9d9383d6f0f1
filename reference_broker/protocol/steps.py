"""Long computations in bounded steps: a generator that yields after each step and returns the result.

A step usually takes a few milliseconds. A node runs one step per event and handles other requests in between
(`core.work`); Kafka uses several request handler threads.
"""

from collections.abc import Generator
from typing import TypeVar

_T = TypeVar("_T")
Steps = Generator[None, None, _T]

RECORDS_PER_STEP = 4096
BYTES_PER_STEP = 256 * 1024
ELEMENTS_PER_STEP = 256
"""Number of a request's elements that one step handles; one element takes up to a tenth of a millisecond."""


class Pace:
    """Counter for a loop that handles elements in steps. The loop runs `if pace.is_due(): yield` before each element.

    :ivar elements: number of elements in the current step. For an element that takes longer, the loop adds more than 1.
    """

    def __init__(self) -> None:
        self.elements = 0

    def is_due(self) -> bool:
        """Count one element, and return whether it starts the next step."""
        self.elements += 1
        if self.elements <= ELEMENTS_PER_STEP:
            return False
        self.elements = 1
        return True


def finish(steps: Steps[_T]) -> _T:
    """Run all steps and return the result."""
    while True:
        try:
            next(steps)
        except StopIteration as done:
            result: _T = done.value
            return result
