"""Shrinking of a trial to the smallest one found with the same violation.

Shrinking changes the trial itself, and repeats two steps until neither finds a smaller trial:

1. Delete faults, clients, steps of each client, topics and properties: all at once, then halves, quarters, and finally
   single ones (delta debugging: Zeller and Hildebrandt, 2002).
2. Set each field that is left to its default. A number that must differ from it is bisected; a large one is rounded.

This takes a few hundred runs for any trial, whether generated, hand-written or saved. Hypothesis would need several
times as many, because it can change only the numbers from which a trial is drawn.

No trial runs twice. The caller limits the runs by their number and by time. If there is no limit by time, the result is
the same on every machine. A run on a real cluster is expensive; `chaos.live.shrinking` tries fewer candidates there.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass, replace
from typing import Any, Final

from conformance.trial.limits import check_limits
from conformance.trial.trial import Trial
from conformance.value_json import NotAValueError

Path = tuple[str | int, ...]
"""Path to a part of a trial: names of fields, and indexes in tuples."""

_SEEDS: Final = 6
"""Seeds below this number are tried. A seed is not bisected, because a lower seed is not simpler."""
_EXACT: Final = 32
"""A number at most this far from its default is bisected to the end. A number further away is rounded instead."""
_ROUND: Final = (10_000, 1_000, 100, 10)


@dataclass(frozen=True, slots=True)
class Smallest:
    """The smallest trial found, and the number of trials that ran."""

    trial: Trial
    runs: int


def smallest(
    trial: Trial,
    shows: Callable[[Trial], bool],
    may_run: Callable[[int], bool],
    passes: "Callable[[Shrinker], None] | None" = None,
    prepared: Callable[[Trial], Trial | None] = lambda candidate: candidate,
) -> Smallest:
    """Return the smallest trial found that shows the same violation. The given trial itself does not run again.

    :param shows: runs a trial; returns whether it shows the violation.
    :param may_run: returns whether another trial may run, from the number of trials that ran.
    :param passes: tries candidates (default: `all_parts`). It is called again until it finds no smaller trial.
    :param prepared: returns the trial that runs for a candidate, or None if the candidate is invalid.
    """
    shrinker = Shrinker(trial, shows, may_run, prepared)
    before = None
    with suppress(_Enough):
        while before != shrinker.trial:
            before = shrinker.trial
            (passes or all_parts)(shrinker)
    return Smallest(shrinker.trial, shrinker.runs)


class _Enough(Exception):  # noqa: N818 - no error: there is a result
    """Signal that no further trial may run."""


@dataclass(slots=True)
class Shrinker:
    """The smallest trial so far, and the candidates that have run. The other fields are the parameters of `smallest`.

    :ivar known: candidates that have run, and whether each showed the violation.
    """

    trial: Trial
    shows: Callable[[Trial], bool]
    may_run: Callable[[int], bool]
    prepared: Callable[[Trial], Trial | None]
    known: dict[Trial, bool] = field(default_factory=dict)

    @property
    def runs(self) -> int:
        """Number of trials that ran."""
        return len(self.known)

    def try_smaller(self, wanted: Trial) -> bool:
        """Return whether a candidate is valid and shows the violation; if so, continue with it. It runs only once."""
        candidate = self.prepared(wanted)
        if candidate is None or candidate == self.trial or not _is_valid(candidate):
            return False
        if candidate not in self.known:
            if not self.may_run(self.runs):
                raise _Enough
            self.known[candidate] = self.shows(candidate)
        if self.known[candidate]:
            self.trial = candidate
        return self.known[candidate]

    def delete(self, path: Path, *, least: int = 0) -> None:
        """Delete elements of the tuple at a path: all at once, then halves, quarters, and so on, from the end.

        :param least: number of elements at the start that are kept.
        """
        size = len(_get(self.trial, path)) - least
        while size >= 1:
            end = len(_get(self.trial, path))
            while end > least:
                begin = max(least, end - size)
                parts = _get(self.trial, path)
                if begin < end <= len(parts):
                    self.try_smaller(_put(self.trial, path, parts[:begin] + parts[end:]))
                end = begin
            size //= 2

    def make_plain(self) -> None:
        """Set each field to its default. If the violation is lost, bisect a number; for the seed, try the `_SEEDS`."""
        for path in list(_paths(self.trial)):
            try:
                value, plain = _get(self.trial, path), _default(self.trial, path)
            except (AttributeError, IndexError):
                continue  # its parent was deleted
            if value == plain or self.try_smaller(_put(self.trial, path, plain)):
                continue
            if path == ("seed",):
                any(self.try_smaller(replace(self.trial, seed=seed)) for seed in range(1, min(value, _SEEDS)))
            elif isinstance(value, int) and not isinstance(value, bool):
                self._lower(path, plain if isinstance(plain, int) else 0)

    def _lower(self, path: Path, least: int) -> None:
        """Bring a number closer to `least`, its default, by bisection. A number that stays far away is rounded."""
        rejected = least
        while (value := _get(self.trial, path)) - rejected not in {-1, 0, 1}:
            half = rejected + (value - rejected) // 2
            if self.try_smaller(_put(self.trial, path, half)):
                continue
            if abs(value - least) > _EXACT:
                self._round(path, rejected)
                return
            rejected = half

    def _round(self, path: Path, rejected: int) -> None:
        value = _get(self.trial, path)
        for unit in _ROUND:
            rounded = value - value % unit
            if rounded == value or (rounded > rejected and self.try_smaller(_put(self.trial, path, rounded))):
                return


def _is_valid(candidate: Trial) -> bool:
    """Whether the trial is within the limits of a saved trial; for example, two topics have different names."""
    try:
        check_limits(candidate)
    except NotAValueError:
        return False
    return True


def all_parts(shrinker: Shrinker) -> None:
    """Delete parts of every kind, then set fields to their defaults."""
    shrinker.delete(("schedule",))
    shrinker.delete(("clients",))
    for client in range(len(shrinker.trial.clients)):
        shrinker.delete(("clients", client, "steps"))
    shrinker.delete(("topics",), least=1)
    for topic in range(len(shrinker.trial.topics)):
        shrinker.delete(("topics", topic, "properties"))
    shrinker.delete(("cluster", "properties"))
    shrinker.make_plain()


def _paths(value: Any, path: Path = ()) -> Iterator[Path]:
    """Yield the path of every field inside a value; a field comes before the fields inside it."""
    if is_dataclass(value):
        for each in fields(value):
            yield (*path, each.name)
            yield from _paths(getattr(value, each.name), (*path, each.name))
    elif isinstance(value, tuple):
        for index, each in enumerate(value):
            yield from _paths(each, (*path, index))


def _get(value: Any, path: Path) -> Any:
    for step in path:
        value = value[step] if isinstance(step, int) else getattr(value, step)
    return value


def _put(value: Any, path: Path, part: Any) -> Any:
    """Return a copy of the value, with another part at a path."""
    if not path:
        return part
    step, rest = path[0], path[1:]
    if isinstance(step, int):
        return (*value[:step], _put(value[step], rest, part), *value[step + 1 :])
    return replace(value, **{step: _put(getattr(value, step), rest, part)})


def _default(trial: Trial, path: Path) -> Any:
    """Return the simplest value of a field: its default; for a number without default 0; else its present value."""
    owner, name = _get(trial, path[:-1]), path[-1]
    described: Field[Any] = next(each for each in fields(owner) if each.name == name)
    if described.default is not MISSING:
        return described.default
    value = getattr(owner, described.name)
    return 0 if isinstance(value, int) and not isinstance(value, bool) else value
