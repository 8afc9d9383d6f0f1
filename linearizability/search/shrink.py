"""Shrinking of a violation to operations that suffice to show that no order exists.

If a write were simply removed, every read of its value would be a violation that shows nothing. Therefore an operation
is first made *optional*: it may have taken effect between its invocation and completion, or not at all. If the history
is still a violation, the operation is removed. (A pure operation does not affect other operations, and is removed
without this.) The remaining operations are a violation whether or not the removed operations took effect.

An optional operation permits every order that it permitted before. Therefore an operation that is needed in one trial
is needed in every later trial, in which more operations are optional. Trials remove a half of the operations, then
quarters and so on. After one pass over single operations, each of those that are left is needed.
"""

from dataclasses import dataclass

from linearizability.search.engine import Progress
from linearizability.search.frontier import FrontierSearch
from linearizability.search.timeline import Timeline

TRIAL_STEPS_MAX = 50_000
"""Maximum number of steps of the search in one trial."""


@dataclass(frozen=True, slots=True)
class Shrunk:
    """The numbers of the operations that suffice. `minimal` is true if each was shown to be needed."""

    operations: tuple[int, ...]
    minimal: bool
    steps: int


class _Undecided(Exception):  # noqa: N818  it ends one trial and is not an error
    """Signal that a trial has used up its steps."""


def shrink(timeline: Timeline, blocked: int, steps: int) -> Shrunk:
    """Return the smallest violation up to the completion of operation `blocked` that `steps` steps find."""
    return _Shrinker(timeline, blocked, steps).run()


class _Shrinker:
    def __init__(self, timeline: Timeline, blocked: int, steps: int) -> None:
        self._timeline = timeline
        self._events = timeline.events[: timeline.events.index(~blocked) + 1]
        self._steps = 0
        self._most_steps = steps
        self._blocked = blocked

    def run(self) -> Shrunk:
        kept = [~event for event in self._events if event < 0 and ~event != self._blocked]
        minimal = True
        size = max(1, len(kept) // 2)
        while True:
            index = 0
            while index < len(kept):
                if self._steps >= self._most_steps:
                    return Shrunk(tuple(sorted([*kept, self._blocked])), minimal=False, steps=self._steps)
                rest = kept[:index] + kept[index + size :]
                try:
                    if self._fails(rest):
                        kept = rest
                        continue
                except _Undecided:
                    minimal = minimal and size > 1
                index += size
            if size == 1:
                break
            size = max(1, size // 2)
        return Shrunk(tuple(sorted([*kept, self._blocked])), minimal, self._steps)

    def _fails(self, kept: list[int]) -> bool:
        """Whether no order exists although every operation is optional, except those in `kept` and the blocked one."""
        left = min(TRIAL_STEPS_MAX, self._most_steps - self._steps)
        if left <= 0:
            raise _Undecided
        progress = Progress(allowance=left)
        search = FrontierSearch(self._relaxed({*kept, self._blocked}), progress).run()
        try:
            next(search)
        except StopIteration as done:
            self._steps += progress.steps
            return not done.value.linearizable
        search.close()
        self._steps += progress.steps
        raise _Undecided

    def _relaxed(self, kept: set[int]) -> Timeline:
        """Return the timeline up to `blocked`. Pure operations outside `kept` are left out; the rest are optional."""
        timeline, classes = self._timeline, self._timeline.classes
        events = [
            event
            for event in self._events
            if (number := event if event >= 0 else ~event) in kept or not classes[number].pure
        ]
        completing = {~event for event in events if event < 0}
        return timeline.relaxed(events, completing - kept)
