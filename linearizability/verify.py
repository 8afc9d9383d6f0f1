"""Generic checker of linearizability, for any model.

    from linearizability.judgement import Verdict
    from linearizability.models.compare_and_set import compare_and_set
    from linearizability.verify import Budget, check

    verification = check(history, compare_and_set(), Budget(time_s=60))
    if verification.verdict is Verdict.VIOLATION:
        print(verification.explain().text())

Each subhistory has its own verdict: ok, violation, or unknown with a reason. An undecided subhistory is unknown, never
ok or a violation, however small the budget is. Subhistories take turns, and each round of turns is twice as long as the
round before. Therefore easy subhistories are decided before a hard one has used up the budget.

A check exceeds its budget of steps by at most one configuration, and its budgets of time and memory by at most one
piece of an engine's work, which takes about twenty milliseconds. Memory is an estimate of what the searches store.
"""

import math
import time
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field, fields

from linearizability.explain import Explanation, explain
from linearizability.judgement import Verdict
from linearizability.model import Model
from linearizability.operation import Event, Operation
from linearizability.search.competition import Competition, Competitor, EngineName
from linearizability.search.timeline import Prepared

Clock = Callable[[], int]
"""Nanoseconds on any monotonic clock."""

BOTH = (EngineName.FRONTIER, EngineName.DEPTH_FIRST)
PIECE_NS = 20_000_000
"""The intended duration of a piece of an engine's work. The budgets are checked after each piece."""
PIECE_STEPS_MAX = 1 << 16
FIRST_TURN_STEPS = 256
"""The length of the first turn of each subhistory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The limits of a whole check; None and infinity mean no limit.

    The limit of memory applies to the searches, not to the history. Raises ValueError for a limit that is neither None
    nor a number of at least 0.
    """

    steps: float | None = None
    time_s: float | None = 60.0
    memory_mb: float | None = 1024

    def __post_init__(self) -> None:
        for limit in fields(self):
            value = getattr(self, limit.name)
            if value is not None and not (isinstance(value, int | float) and value >= 0):
                raise ValueError(f"the budget's {limit.name} is {value!r}, neither None nor a number of at least 0")


@dataclass(frozen=True, slots=True)
class SubhistoryVerdict:
    """The result for one subhistory. `key` is the key of its partition, None if the model has no partitions.

    `reason` explains an unknown verdict or a violation. `blocked` is the operation of a violation that cannot be
    placed. `steps` counts the attempts of all engines to place one operation. `peak_bytes` estimates the most memory
    that the engines held.
    """

    key: Hashable
    verdict: Verdict
    operations: int
    steps: int
    peak_bytes: int
    engine: EngineName | None = None
    blocked: Operation | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Verification:
    """The result for a history: one outcome for each subhistory, in the order of their first operations."""

    outcomes: tuple[SubhistoryVerdict, ...]
    model: Model
    _competitions: tuple[Competition, ...] = field(repr=False, compare=False)
    _prepared: Prepared = field(repr=False, compare=False)

    @property
    def verdict(self) -> Verdict:
        """Violation if any subhistory is a violation, else unknown if any is unknown, else ok."""
        verdicts = {outcome.verdict for outcome in self.outcomes}
        return next((bad for bad in (Verdict.VIOLATION, Verdict.UNKNOWN) if bad in verdicts), Verdict.OK)

    def explain(self, outcome: SubhistoryVerdict | None = None, *, steps: int = 2_000_000) -> Explanation:
        """Explain why a subhistory (by default the first violation) cannot be linearized.

        Raises ValueError if it is not a violation.
        """
        chosen = outcome or next((one for one in self.outcomes if one.verdict is Verdict.VIOLATION), None)
        if chosen is None or chosen.verdict is not Verdict.VIOLATION:
            raise ValueError("there is no violation to explain")
        competition = self._competitions[self.outcomes.index(chosen)]
        assert competition.finding is not None
        assert competition.finding.blocked is not None
        return explain(self._prepared, competition.timeline, self.model, competition.finding.blocked, steps)

    def subhistory(self, key: Hashable) -> list[Operation]:
        """Return all operations of a partition, or of the history if the model has no partitions; failed ones too."""
        operations, partition = self._prepared.operations, self.model.partition
        return [operation for operation in operations if partition is None or partition(operation.input) == key]


def check(
    history: Iterable[Operation] | Iterable[Event],
    model: Model,
    budget: Budget | None = None,
    *,
    first_violation_only: bool = False,
    engines: tuple[EngineName, ...] = BOTH,
    clock: Clock = time.monotonic_ns,
) -> Verification:
    """Judge a history of operations (in any order) or of events (in their order).

    With `first_violation_only` the check ends at the first violation; subhistories that are not decided yet are
    unknown. Raises HistoryError, with the operation, for an invalid history, and ModelError for a model that raises.
    """
    prepared = Prepared(history, model)
    competitions = [Competition(timeline, model, engines) for timeline in prepared.timelines]
    reasons = _Scheduler(competitions, budget or Budget(), clock, first_violation_only).run()
    outcomes = tuple(_outcome(prepared, model, competition, reasons) for competition in competitions)
    return Verification(outcomes, model, tuple(competitions), prepared)


class _Scheduler:
    """Scheduler of turns for undecided subhistories, until all are decided or the budget is used up."""

    def __init__(self, competitions: list[Competition], budget: Budget, clock: Clock, first_only: bool) -> None:
        self._waiting = competitions
        self._budget = budget
        self._clock = clock
        self._first_only = first_only
        self._begin_ns = self._now_ns = clock()
        self._steps = self._held_bytes = 0
        self._most_steps = math.inf if budget.steps is None else budget.steps
        # A float product that is too large is infinite, which is correct; an int would raise an error.
        self._most_ns = math.inf if budget.time_s is None else budget.time_s * 10**9
        self._most_bytes = math.inf if budget.memory_mb is None else budget.memory_mb * 2**20

    def run(self) -> dict[int, str]:
        """Run all turns. Return why subhistories stay undecided, by the identity of their competition."""
        reasons: dict[int, str] = {}
        turn = FIRST_TURN_STEPS
        while self._waiting:
            undecided: list[Competition] = []
            for place, competition in enumerate(self._waiting):
                stop = self._give_turn(competition, turn)
                if competition.exhausted:
                    reasons[id(competition)] = f"the memory budget of {self._budget.memory_mb} MB was used up"
                elif competition.finding is None:
                    undecided.append(competition)
                elif self._first_only and not competition.finding.linearizable:
                    stop = "another subhistory has a violation, and the check ended there"
                if stop is not None:
                    return reasons | self._stop([*undecided, *self._waiting[place + 1 :]], stop)
            self._waiting = undecided
            turn *= 2
        return reasons

    def _give_turn(self, competition: Competition, turn: int) -> str | None:
        """Run a competition for `turn` steps, in pieces. Return the reason to stop, if a budget is used up."""
        enough = competition.steps + turn
        while competition.finding is None and not competition.exhausted:
            left = math.ceil(min(enough - competition.steps, self._most_steps - self._steps))
            if self._steps >= self._most_steps:
                return f"the budget of {self._budget.steps} steps was used up"
            if self._now_ns - self._begin_ns >= self._most_ns:
                return f"the time budget of {self._budget.time_s} s was used up"
            if left <= 0:
                return None
            steps, held_bytes = competition.steps, competition.held_bytes
            self._adapt(competition.work(left))
            self._steps += competition.steps - steps
            self._held_bytes += competition.held_bytes - held_bytes
            while self._held_bytes > self._most_bytes:
                self._shed()
        return None

    def _adapt(self, competitor: Competitor) -> None:
        """Make an engine's next piece longer if this one was short, shorter if it was long."""
        now_ns = self._clock()
        took_ns, self._now_ns = now_ns - self._now_ns, now_ns
        if took_ns > PIECE_NS:
            competitor.piece_steps = max(1, competitor.piece_steps * PIECE_NS // took_ns)
        elif took_ns < PIECE_NS // 4:
            competitor.piece_steps = min(competitor.piece_steps * 2, PIECE_STEPS_MAX)

    def _shed(self) -> None:
        """End the engine that holds the most memory."""
        largest = max(self._waiting, key=lambda competition: competition.held_bytes)
        held_bytes = largest.held_bytes
        largest.shed()
        self._held_bytes += largest.held_bytes - held_bytes

    @staticmethod
    def _stop(undecided: list[Competition], reason: str) -> dict[int, str]:
        for competition in undecided:
            competition.release()
        return {id(competition): reason for competition in undecided}


def _outcome(prepared: Prepared, model: Model, competition: Competition, reasons: dict[int, str]) -> SubhistoryVerdict:
    timeline, finding = competition.timeline, competition.finding
    size, used = len(timeline.classes), (competition.steps, competition.peak_bytes)
    if finding is None:
        return SubhistoryVerdict(timeline.key, Verdict.UNKNOWN, size, *used, reason=reasons[id(competition)])
    if finding.blocked is None:
        return SubhistoryVerdict(timeline.key, Verdict.OK, size, *used, competition.winner)
    blocked = prepared.operation(timeline.origins[finding.blocked])
    text = model.operation_text(blocked.input, blocked.output)
    reason = f"operation {blocked.op_id!r}, {text}, cannot be placed: no order explains what had completed by that time"
    return SubhistoryVerdict(timeline.key, Verdict.VIOLATION, size, *used, competition.winner, blocked, reason)
