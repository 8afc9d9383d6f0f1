"""Interface of a search: a generator that yields when its allowance of steps is used up, and can be resumed.

`next(engine)` starts or resumes the search. It yields when `progress.steps` exceeds `progress.allowance`, and returns a
`SearchResult` at its end. A step is one attempt to place one operation in one configuration.
"""

from collections.abc import Generator
from dataclasses import dataclass

Path = tuple[int, ...]
"""Operations in the order in which they were placed."""


@dataclass(slots=True)
class Progress:
    """The steps and memory that an engine has used. The engine updates them whenever it yields or ends."""

    allowance: int = 0
    """The number of steps above which the engine yields."""
    steps: int = 0
    held_bytes: int = 0
    peak_bytes: int = 0
    events_done: int = 0
    """The number of events that the frontier search has processed. Other searches do not set it."""

    def hold(self, held_bytes: int) -> None:
        """Record the estimated memory in use now, and its peak."""
        self.held_bytes = held_bytes
        self.peak_bytes = max(self.peak_bytes, held_bytes)


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The result of an engine. `blocked` is the operation with the earliest completion that cannot be placed."""

    linearizable: bool
    blocked: int | None = None


Engine = Generator[None, None, SearchResult]
