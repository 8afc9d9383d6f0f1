"""Depth-first search: place operations one after the other, backtrack where nothing fits, try no configuration twice.

The *barrier* is the operation that completes first among those that are not placed. Only operations that were invoked
before the barrier completed may be placed next. Of these, the operation that was invoked last is tried first: on real
logs this finds an order several times faster than the opposite. When no operation is left to try, the search
backtracks. For a valid history, it finds an order almost directly, and builds few states. Otherwise it must try every
configuration.

Visited configurations are stored. A configuration is small: the index of the barrier represents all operations that
complete before the barrier, because they are placed. Only later operations need a bit, in a ring as wide as the longest
overlap in the history. The bits of unknown operations are above the ring.

Pure operations are placed as soon as they are possible, before any other operation is tried. Unknown operations are
optional; identical unknown operations are placed in the order of their invocations. For a nondeterministic model, a
state of the search is the set of all possible states of the model.

The search is that of J. Wing and C. Gong (1993), with the stored configurations that G. Lowe added (2017).
"""

from collections.abc import Callable, Generator, Iterator
from typing import Any

from linearizability.model import Model, ModelError, Rejected, State
from linearizability.search.engine import Progress, SearchResult
from linearizability.search.timeline import Timeline
from linearizability.search.weight import Weight

ENTRY_BYTES = 190
"""Estimated memory of one stored configuration: a tuple, its entry in the set, and an int of several words."""
NO_STATE = Rejected()
Step = Callable[[Any, Any, Any], Any]


class DepthFirstSearch:
    """The search of one timeline."""

    def __init__(self, timeline: Timeline, model: Model, progress: Progress) -> None:
        self._model = model
        self._progress = progress
        self._timeline = timeline
        self._weight = Weight()
        self._completing, self._admitted = _barriers(timeline)
        self._bits, self._barrier_bit = _bits(timeline, self._completing, self._admitted)

    def run(self) -> Generator[None, None, SearchResult]:  # noqa: C901, PLR0912, PLR0915
        """Search, yielding whenever the allowance is spent.

        One long function, because the search spends most of its time here: a call for each step would double that time.
        """
        model, progress, bits, admitted = self._model, self._progress, self._bits, self._admitted
        states = model.first_states()
        state: State = frozenset(states) if model.nondeterministic else states[0]
        step: Step = _step_of_sets(model, progress) if model.nondeterministic else model.step
        classes = self._timeline.classes
        inputs = [kind.input for kind in classes]
        outputs = [kind.output for kind in classes]
        # A pure operation changes no state, but may be possible in only some of a set of states.
        is_pure = [kind.pure and not model.nondeterministic for kind in classes]
        twins = self._timeline.twins
        earlier = [bits[twins[number]] if twins.get(number, -1) >= 0 else 0 for number in range(len(classes))]
        waits = [bits[number] for number in self._completing]
        passes = [self._barrier_bit - bit for bit in waits]
        last = len(waits)
        seen: set[tuple[int, State]] = set()
        weight = self._weight
        stack: list[tuple[Iterator[int], int, State, int, list[int], list[int]]] = []
        placed = barrier = furthest = number = 0
        steps = progress.steps
        choices = [number for number in admitted[0] if not is_pure[number]]
        reads = [number for number in admitted[0] if is_pure[number]]
        untried = reversed(choices)
        try:
            while True:
                rejected = []
                for number in reads:
                    steps += 1
                    after = step(state, inputs[number], outputs[number])
                    if after.__class__ is Rejected:
                        rejected.append(number)
                    elif after != state:
                        raise model.impure(state, inputs[number], outputs[number], after)
                    else:
                        placed += bits[number]
                reads = rejected
                while barrier < last and placed & waits[barrier]:
                    placed += passes[barrier]
                    barrier += 1
                    for number in admitted[barrier]:
                        if not is_pure[number]:
                            choices = [*choices, number]
                            continue
                        steps += 1
                        after = step(state, inputs[number], outputs[number])
                        if after.__class__ is Rejected:
                            reads = [*reads, number]
                        elif after != state:
                            raise model.impure(state, inputs[number], outputs[number], after)
                        else:
                            placed += bits[number]
                if barrier == last:
                    self._note(steps, len(seen))
                    return SearchResult(linearizable=True)
                furthest = max(furthest, barrier)
                untried = reversed(choices)
                while True:
                    for number in untried:
                        need = earlier[number]
                        if need and not placed & need:
                            continue
                        steps += 1
                        after = step(state, inputs[number], outputs[number])
                        if after.__class__ is Rejected:
                            continue
                        reached = placed + bits[number]
                        known = len(seen)
                        seen.add((reached, after))
                        if len(seen) != known:
                            break
                    else:
                        if not stack:
                            self._note(steps, len(seen))
                            return SearchResult(linearizable=False, blocked=self._completing[furthest])
                        untried, placed, state, barrier, choices, reads = stack.pop()
                        continue
                    break
                # `check_states` is called only for these results: a call in each step would double the step's time.
                if after is Rejected or (after.__class__ is tuple and len(after) == 2 and after[0] is False):
                    model.check_states(state, inputs[number], outputs[number], after)
                if known >= weight.look_at:
                    weight.look(known, after, state, inputs[number], outputs[number])
                stack.append((untried, placed, state, barrier, choices, reads))
                choices = [other for other in choices if other != number]
                placed, state = reached, after
                if steps > progress.allowance:
                    self._note(steps, len(seen))
                    yield
        except ModelError:
            raise
        except Exception as error:
            raise model.error(state, inputs[number], outputs[number], error) from error

    def _note(self, steps: int, entries: int) -> None:
        self._progress.steps = steps
        unknown = len(self._timeline.twins) // 7
        self._progress.hold(entries * (ENTRY_BYTES + unknown) + self._weight.bytes(entries))


def _barriers(timeline: Timeline) -> tuple[list[int], list[list[int]]]:
    """Return the operations in the order of their completions, and for each the operations that it admits.

    A completion admits the operations that were invoked between the previous completion and itself. One more list at
    the end contains the operations that were invoked after the last completion.
    """
    completing: list[int] = []
    admitted: list[list[int]] = [[]]
    for event in timeline.events:
        if event >= 0:
            admitted[-1].append(event)
        else:
            completing.append(~event)
            admitted.append([])
    return completing, admitted


def _bits(timeline: Timeline, completing: list[int], admitted: list[list[int]]) -> tuple[list[int], int]:
    """Return a bit for each operation, and the lowest bit of the barrier's index, which is above the ring.

    Of the operations that complete, the nth in the order of invocation has the bit n modulo the ring's width. From the
    time when it may be placed until the barrier passes it, no other operation needs that bit.
    """
    completed = set(completing)
    ordered = [number for number in range(len(timeline.classes)) if number in completed]
    rank = {number: index for index, number in enumerate(ordered)}
    width, waiting, invoked, lowest = 1, set[int](), 0, 0
    for index, number in enumerate(completing):
        here = [rank[other] for other in admitted[index] if other in rank]
        waiting.update(here)
        invoked = max([invoked, *here])
        while lowest not in waiting and lowest < invoked:
            lowest += 1
        width = max(width, invoked - lowest + 1)
        waiting.discard(rank[number])
    above = width + len(completing).bit_length()
    bits = [0] * len(timeline.classes)
    for number, index in rank.items():
        bits[number] = 1 << index % width
    for index, number in enumerate(timeline.twins):
        bits[number] = 1 << above + index
    return bits, 1 << width


def _step_of_sets(model: Model, progress: Progress) -> Step:
    """Return a step over a set of states. It counts as one step for each state, so that the search yields in time."""

    def step(states: Any, given: Any, output: Any) -> Any:
        progress.allowance -= len(states) - 1
        after: set[State] = set()
        for state in states:
            after.update(model.next_states(state, given, output, pure=False))
        return frozenset(after) if after else NO_STATE

    return step
