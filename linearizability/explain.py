"""Why a history is a violation, for a person.

The operation that fits nowhere, what was possible before it, and the few operations that are enough to show it.
"""

from dataclasses import dataclass

from linearizability.model import Model
from linearizability.operation import Operation
from linearizability.search.engine import Progress
from linearizability.search.frontier import STATE_MASK, FrontierSearch, Trail
from linearizability.search.shrink import shrink
from linearizability.search.timeline import Prepared, Timeline

PATHS_MAX = 10


@dataclass(frozen=True, slots=True)
class PartialLinearization:
    """One way to place as much as possible; the state that leads to; why the blocked operation is refused there."""

    operations: tuple[Operation, ...]
    state: str
    reason: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """The evidence of one subhistory.

    `blocked` has the earliest completion that cannot be placed. `partial_linearizations` are the longest ones, one for
    each state, at most ten; none if the budget was used up before. `shrunk` operations fail by themselves, and would
    whatever the others did; `minimal` if each of them is needed.
    """

    blocked: Operation
    partial_linearizations: tuple[PartialLinearization, ...]
    shrunk: tuple[Operation, ...]
    minimal: bool
    model: Model

    def text(self) -> str:
        """Some lines for a terminal."""
        lines = [f"operation {self.blocked.op_id!r} cannot be placed: {self._call(self.blocked)}"]
        lines += [
            f"  in state {path.state}, after {len(path.operations)} operations: {path.reason}"
            for path in self.partial_linearizations
        ]
        few = "the fewest operations" if self.minimal else "operations"
        lines.append(f"{few} that show it:")
        for operation in sorted(self.shrunk, key=lambda op: op.invoke_ns):
            end = "never returned" if operation.complete_ns is None else str(operation.complete_ns)
            times = f"{operation.invoke_ns} to {end}"
            lines.append(f"  {operation.op_id!r}, process {operation.process!r}, {times}: {self._call(operation)}")
        return "\n".join(lines)

    def _call(self, operation: Operation) -> str:
        return self.model.describe_operation(operation.input, operation.output)


def explain(prepared: Prepared, timeline: Timeline, model: Model, blocked: int, steps: int) -> Explanation:
    """The evidence against a timeline in which `blocked` cannot be placed, found within about so many steps."""
    small = shrink(timeline, blocked, steps)
    return Explanation(
        blocked=prepared.operation(timeline.origins[blocked]),
        partial_linearizations=_longest(prepared, timeline, model, blocked, steps),
        shrunk=tuple(prepared.operation(timeline.origins[number]) for number in small.operations),
        minimal=small.minimal,
        model=model,
    )


def _longest(
    prepared: Prepared, timeline: Timeline, model: Model, blocked: int, steps: int
) -> tuple[PartialLinearization, ...]:
    trail: Trail = {}
    search = FrontierSearch(timeline, Progress(allowance=steps), trail)
    if next(search.run(), "ended") != "ended":
        return ()
    longest: dict[int, tuple[int, ...]] = {}
    for end in search.dead_ends:
        path, number = _path(trail, end), end[0] & STATE_MASK
        if number not in longest or len(path) > len(longest[number]):
            longest[number] = path
    kind = timeline.classes[blocked]
    found = []
    for number, path in sorted(longest.items(), key=lambda item: (-len(item[1]), item[0]))[:PATHS_MAX]:
        state = search.states.states[number]
        operations = tuple(prepared.operation(timeline.origins[op]) for op in path)
        reason = model.reason(state, kind.input, kind.output) or "it is possible here, but came too late"
        found.append(PartialLinearization(operations, model.describe_state(state), reason))
    return tuple(found)


def _path(trail: Trail, end: tuple[int, int]) -> tuple[int, ...]:
    parts: list[tuple[int, ...]] = []
    place: tuple[int, int] | None = end
    while place is not None and place in trail:
        place, part = trail[place]
        parts.append(part)
    return tuple(number for part in reversed(parts) for number in part)
