"""Picture of a history that is not linearizable: the result of the generic checker, with one lane for each process.

    picture = draw_verification(verification)

The longest partial linearizations are shown step by step, with the states before and after each step. In a long
history, a partial linearization has only its last steps, and of these the picture shows only those in the window.
"""

from collections.abc import Iterable, Sequence
from itertools import chain

from linearizability.explain import Explanation, PartialLinearization
from linearizability.model import Model, State
from linearizability.operation import UNKNOWN, Operation, Outcome
from linearizability.picture.drawing import Bar, Break, Lane, LaneKind, Mark, Order, Picture, Step, short
from linearizability.picture.window import around, gaps
from linearizability.printable import counted
from linearizability.verify import SubhistoryVerdict, Verification

FOCUS_MAX = 40
"""Maximum number of shrunk operations around which the window is selected, and of placed operations beside them."""
_MARKED_MAX = 100
"""If shrinking has left more operations than this, they are not marked."""
EXPLAIN_STEPS = 500_000
"""Default number of steps for each part of the explanation."""


def draw_verification(
    verification: Verification,
    found: SubhistoryVerdict | None = None,
    *,
    bars_max: int = 240,
    steps: int = EXPLAIN_STEPS,
) -> Picture:
    """Return the picture of a subhistory in violation, by default the first one.

    At most `bars_max` operations are shown. Each part of the explanation takes about `steps` steps (`explain`). Raises
    ValueError if the subhistory is not a violation.
    """
    explanation = verification.explain(found, steps=steps)
    partition = verification.model.partition
    key = None if partition is None else partition(explanation.blocked.input)
    return _Drawing(verification.subhistory(key), explanation, verification.model, bars_max).picture()


class _Drawing:
    def __init__(self, operations: Sequence[Operation], explanation: Explanation, model: Model, bars_max: int) -> None:
        self._model, self._explanation = model, explanation
        self._all = sorted(operations, key=lambda op: (op.invoke_ns, op.complete_ns is None, op.complete_ns or 0))
        self._shrunk = {op.op_id for op in explanation.shrunk} if len(explanation.shrunk) <= _MARKED_MAX else set()
        self._kept = self._window(bars_max)
        self._numbers = {self._all[place].op_id: number for number, place in enumerate(self._kept)}

    def picture(self) -> Picture:
        """Return the whole picture."""
        blocked, explanation = self._explanation.blocked, self._explanation
        shown = [self._all[place] for place in self._kept]
        ends = [op.complete_ns for op in shown if op.complete_ns is not None]
        return Picture(
            title=f"{self._model.name}: no order explains operation {short(repr(blocked.op_id), 40)}",
            statement=self._statement(),
            facts=tuple(self._facts()),
            origin_ns=self._all[0].invoke_ns,
            begin_ns=shown[0].invoke_ns,
            end_ns=max([*ends, *(op.invoke_ns for op in shown)]),
            lanes=_lanes(shown, [self._bar(number, op) for number, op in enumerate(shown)]),
            breaks=tuple(Break(shown[index].invoke_ns, count) for index, count in gaps(self._kept)),
            orders=tuple(self._order(path) for path in explanation.partial_linearizations),
            bad_ns=blocked.complete_ns,
            notes=tuple(self._notes()),
        )

    def _window(self, bars_max: int) -> list[int]:
        places = {op.op_id: place for place, op in enumerate(self._all)}
        blocked = self._explanation.blocked
        nearest = sorted(self._explanation.shrunk, key=lambda op: op.invoke_ns, reverse=True)[:FOCUS_MAX]
        paths = self._explanation.partial_linearizations
        last_placed = paths[0].operations[: -FOCUS_MAX - 1 : -1] if paths else ()
        running = (op for op in reversed(self._all[: places[blocked.op_id]]) if _overlap(op, blocked))
        return around(
            len(self._all),
            [places[op.op_id] for op in (blocked, *nearest)],
            bars_max,
            beside=(places[op.op_id] for op in chain(last_placed, running)),
        )

    def _bar(self, number: int, op: Operation) -> Bar:
        blocked = self._explanation.blocked.op_id
        mark = Mark.BAD if op.op_id == blocked else Mark.EVIDENCE if op.op_id in self._shrunk else Mark.PLAIN
        return Bar(
            number=number,
            name=short(op.op_id, 40),
            label=short(self._call(op), 120),
            begin_ns=op.invoke_ns,
            end_ns=op.complete_ns,
            outcome=op.outcome,
            mark=mark,
            details=(("Call", short(self._call(op))), ("Outcome", _OUTCOMES[op.outcome])),
        )

    def _call(self, op: Operation) -> str:
        text = self._model.operation_text(op.input, op.output if op.outcome is Outcome.OK else UNKNOWN)
        return text.replace(repr(UNKNOWN), "?")

    def _order(self, path: PartialLinearization) -> Order:
        """Return a path with its steps in the window. The model computes all possible states of each step again."""
        model = self._model
        states: tuple[State, ...] = (path.begin,)
        steps = []
        for place, op in enumerate(path.operations, start=path.earlier + 1):
            output = op.output if op.outcome is Outcome.OK else UNKNOWN
            after = dict.fromkeys(
                chain.from_iterable(model.next_states(state, op.input, output, pure=False) for state in states)
            )
            number = self._numbers.get(op.op_id)
            if number is not None:
                steps.append(Step(number, place, self._states_text(states), self._states_text(after)))
            states = tuple(after)
        return Order(short(path.state), short(path.reason), len(path), tuple(steps))

    def _states_text(self, states: Iterable[object]) -> str:
        return short(" or ".join(short(self._model.state_text(state)) for state in states))

    def _statement(self) -> str:
        blocked = self._explanation.blocked
        return (
            f"Operation {short(repr(blocked.op_id), 40)}, {short(self._call(blocked))}, fits into no order of the "
            "operations that had completed before it completed."
        )

    def _facts(self) -> Iterable[tuple[str, str]]:
        yield "Model", self._model.name
        yield "Operations", f"{len(self._all):,}"
        if self._shrunk:
            named = sorted(self._explanation.shrunk, key=lambda op: op.invoke_ns)
            calls = ", ".join(f"{short(op.op_id, 20)} {short(self._call(op), 60)}" for op in named[:12])
            more = f" and {len(named) - 12:,} more" if len(named) > 12 else ""
            each_needed = ", each needed" if self._explanation.minimal else ""
            yield f"Operations that suffice{each_needed}", short(calls, 600) + more

    def _notes(self) -> Iterable[str]:
        left_out = len(self._all) - len(self._kept)
        if left_out:
            yield (
                f"{counted(left_out, 'operation')} of {len(self._all):,} left out: "
                "the window contains the operations that show the violation, and those near them."
            )
        if not self._shrunk:
            yield "The history was not shrunk to a few operations within the allowed steps."
        if not self._explanation.partial_linearizations:
            yield "The partial linearizations were not found within the allowed steps."


_OUTCOMES = {
    Outcome.OK: "ok: it took effect between invocation and completion",
    Outcome.INFO: "info: unknown whether it took effect",
    Outcome.FAIL: "fail: it took no effect",
}


def _overlap(op: Operation, blocked: Operation) -> bool:
    return op.complete_ns is None or op.outcome is Outcome.INFO or op.complete_ns >= blocked.invoke_ns


def _lanes(operations: Sequence[Operation], bars: Sequence[Bar]) -> tuple[Lane, ...]:
    """Return one lane for each process: numbers first, then other names. Operations without a process are last."""
    lanes: dict[object, list[Bar]] = {}
    for op, bar in zip(operations, bars, strict=True):
        lanes.setdefault(op.process, []).append(bar)
    return tuple(
        Lane("no process" if name is None else f"process {short(name, 24)}", LaneKind.PROCESS, tuple(lanes[name]))
        for name in sorted(lanes, key=_name_order)
    )


def _name_order(name: object) -> tuple[bool, bool, int, str]:
    is_number = isinstance(name, int)
    return name is None, not is_number, name if isinstance(name, int) else 0, str(name)
