"""Trial of a seed: random bytes generated from the seed drive the strategies (Hypothesis's `fuzz_one_input`).

One seed gives one trial, in any process and on any machine with this version of kafkatrial and of Hypothesis. To keep
it for longer, save the trial itself.
"""

from collections.abc import Callable
from functools import cache
from random import Random
from typing import Any, Final, TypeVar

from hypothesis import given, settings
from hypothesis.core import HypothesisHandle
from hypothesis.strategies import SearchStrategy

from chaos.simulation.strategies import trials
from conformance.trial.trial import Trial

T = TypeVar("T")

_BYTES: Final = 8_192
"""Maximum number of bytes that Hypothesis uses for one example; a trial uses a tenth."""


def trial_of_seed(seed: int) -> Trial:
    """Return the trial of a seed."""
    return drawn_from_seed(_trials(), seed)


@cache
def _trials() -> SearchStrategy[Trial]:
    return trials()


def drawn_from_seed(strategy: SearchStrategy[T], seed: int) -> T:
    """Return the value that a strategy draws from the bytes of a seed.

    Bytes that give no value, since a filter rejects them, are skipped. The strategy must be the same object each time,
    because its first use takes long.
    """
    random = Random(seed)
    draw, drawn = _drawing(strategy)
    drawn.clear()
    while not drawn:
        draw(random.randbytes(_BYTES))
    value: T = drawn.pop()
    return value


@cache
def _drawing(strategy: SearchStrategy[Any]) -> tuple[Callable[[bytes], bytes | None], list[Any]]:
    drawn: list[Any] = []

    @settings(database=None, deadline=None)
    @given(strategy)
    def collect(value: Any) -> None:
        drawn.append(value)

    handle: HypothesisHandle = collect.hypothesis  # type: ignore[attr-defined]  # put there by `given`
    return handle.fuzz_one_input, drawn
