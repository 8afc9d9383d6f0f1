"""Explanation of a violation of linearizability.

It consists of the operation that cannot be placed, the longest partial linearizations before it, and a few operations
that are a violation by themselves.
"""

from dataclasses import dataclass

from linearizability.model import Model, State
from linearizability.operation import Operation
from linearizability.search.engine import Progress
from linearizability.search.frontier import STATE_MASK, FrontierSearch, Trail
from linearizability.search.shrink import shrink
from linearizability.search.states import STATE_BITS
from linearizability.search.timeline import Prepared, Timeline

Place = tuple[int, int]
"""A configuration of the frontier search, and the set of unknown operations that it has used, each packed in an int."""

PATHS_MAX = 10
"""The maximum number of partial linearizations of an explanation."""
EVENTS_EXPLAINED_MAX = 4_000
"""The maximum number of events that a partial linearization covers.

They are the invocations and completions just before the completion of the blocked operation.
"""
STEPS_PER_EVENT = 30
"""The number of steps per event that the search for partial linearizations may always take."""


@dataclass(frozen=True, slots=True)
class PartialLinearization:
    """One way to place as many operations as possible, the resulting state, and why the blocked operation fails there.

    In a long history, `operations` has only the operations placed last. `earlier` is the number of operations that were
    placed before these, and `begin` is the state after the earlier operations.
    """

    operations: tuple[Operation, ...]
    state: str
    reason: str
    begin: State
    earlier: int = 0

    def __len__(self) -> int:
        return self.earlier + len(self.operations)


@dataclass(frozen=True, slots=True)
class Explanation:
    """The evidence that one subhistory is not linearizable.

    `blocked` is the operation with the earliest completion that cannot be placed. `partial_linearizations` are the
    longest ones, one for each state, at most `PATHS_MAX`. There are none if the search for them used up its steps. The
    `shrunk` operations are a violation by themselves, regardless of the other operations. `minimal` is true if each of
    them is needed.
    """

    blocked: Operation
    partial_linearizations: tuple[PartialLinearization, ...]
    shrunk: tuple[Operation, ...]
    minimal: bool
    model: Model

    def text(self) -> str:
        """Return the explanation as lines for a terminal."""
        lines = [f"operation {self.blocked.op_id!r} cannot be placed: {self._call(self.blocked)}"]
        lines += [
            f"  in state {path.state}, after {len(path)} operations: {path.reason}"
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
        return self.model.operation_text(operation.input, operation.output)


def explain(prepared: Prepared, timeline: Timeline, model: Model, blocked: int, steps: int) -> Explanation:
    """Return the evidence against a timeline in which `blocked` cannot be placed.

    Shrinking and the search for partial linearizations take about `steps` steps each. In a long history, the search may
    take up to `STEPS_PER_EVENT` steps per event instead.
    """
    small = shrink(timeline, blocked, steps)
    return Explanation(
        blocked=prepared.operations[timeline.origins[blocked]],
        partial_linearizations=_longest(prepared, timeline, model, blocked, steps),
        shrunk=tuple(prepared.operations[timeline.origins[number]] for number in small.operations),
        minimal=small.minimal,
        model=model,
    )


def _longest(
    prepared: Prepared, timeline: Timeline, model: Model, blocked: int, steps: int
) -> tuple[PartialLinearization, ...]:
    trail: Trail = {}
    begin = max(0, timeline.events.index(~blocked) - EVENTS_EXPLAINED_MAX)
    # A long history needs some steps for each event.
    allowance = max(steps, STEPS_PER_EVENT * len(timeline.events))
    search = FrontierSearch(timeline, Progress(allowance=allowance), trail, trail_from=begin)
    if next(search.run(), "ended") != "ended":
        return ()
    completed = sum(event < 0 for event in timeline.events[:begin])
    longest: dict[int, tuple[int, Place, tuple[int, ...]]] = {}
    for end in search.dead_ends:
        first, path = _path(trail, end)
        earlier = completed + (first[0] >> STATE_BITS).bit_count() + first[1].bit_count()
        number = end[0] & STATE_MASK
        if number not in longest or earlier + len(path) > longest[number][0]:
            longest[number] = earlier + len(path), first, path
    kind = timeline.classes[blocked]
    found = []
    ranked = sorted(longest.items(), key=lambda item: (-item[1][0], item[0]))
    for number, (length, first, path) in ranked[:PATHS_MAX]:
        state = search.states.states[number]
        operations = tuple(prepared.operations[timeline.origins[op]] for op in path)
        reason = model.reason(state, kind.input, kind.output) or "it is possible here, but too late"
        begun = search.states.states[first[0] & STATE_MASK]
        found.append(PartialLinearization(operations, model.state_text(state), reason, begun, length - len(operations)))
    return tuple(found)


def _path(trail: Trail, end: Place) -> tuple[Place, tuple[int, ...]]:
    """Return the configuration in which the path to `end` begins, and the operations of the path in order."""
    parts: list[tuple[int, ...]] = []
    place = end
    while place in trail:
        before, part = trail[place]
        parts.append(part)
        assert before is not None
        place = before
    return place, tuple(number for part in reversed(parts) for number in part)
