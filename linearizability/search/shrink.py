"""Shrinking of a violation to operations that suffice to show that no order exists.

If a write were simply removed, every read of its value would be a violation, which shows nothing. So an operation is
first made *optional*: it may have taken effect between its invocation and completion, or not at all. It is removed only
if the history is still a violation. (A pure operation does not affect others, and is removed at once.) So the result is
a violation regardless of the removed operations.

Making an operation optional never excludes an order. So an operation that was needed in one attempt is needed in every
later attempt, in which more operations are optional. The search tries halves, quarters and so on. After one pass over
single operations, only needed ones are left.
"""

from dataclasses import dataclass

from linearizability.search.engine import Progress
from linearizability.search.frontier import FrontierSearch
from linearizability.search.timeline import Timeline

TRIAL_STEPS_MAX = 50_000


@dataclass(frozen=True, slots=True)
class Shrunk:
    """The operations that suffice, by number. `minimal` is true if the budget sufficed to show that each is needed."""

    operations: tuple[int, ...]
    minimal: bool
    steps: int


class _Undecided(Exception):  # noqa: N818  it ends one trial and is not an error
    """Signal that a trial used up its steps."""


def shrink(timeline: Timeline, blocked: int, steps: int) -> Shrunk:
    """Return the smallest violation up to the completion of `blocked` that is found within `steps` steps."""
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
            place = 0
            while place < len(kept):
                if self._steps >= self._most_steps:
                    return Shrunk(tuple(sorted([*kept, self._blocked])), minimal=False, steps=self._steps)
                rest = kept[:place] + kept[place + size :]
                try:
                    if self._fails(rest):
                        kept = rest
                        continue
                except _Undecided:
                    minimal = minimal and size > 1
                place += size
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
        """Return the timeline up to `blocked`, in which operations outside `kept` are left out (pure) or optional."""
        timeline, classes = self._timeline, self._timeline.classes
        events = [
            event
            for event in self._events
            if (number := event if event >= 0 else ~event) in kept or not classes[number].pure
        ]
        completing = {~event for event in events if event < 0}
        return timeline.relaxed(events, completing - kept)
