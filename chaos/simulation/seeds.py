"""Trial of a seed: the seed gives random bytes, from which Hypothesis draws the trial (`fuzz_one_input`).

A seed gives the same trial in any process and on any machine, but only with the same versions of kafkatrial and
Hypothesis. To keep a trial for longer, save the trial itself.
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
"""Number of bytes from which Hypothesis draws one value. A trial uses a tenth of them."""


def trial_of_seed(seed: int) -> Trial:
    """Return the trial of a seed."""
    return drawn_from_seed(_trials(), seed)


@cache
def _trials() -> SearchStrategy[Trial]:
    return trials()


def drawn_from_seed(strategy: SearchStrategy[T], seed: int) -> T:
    """Return the value that a strategy draws from the bytes of a seed.

    If a filter rejects the value of these bytes, the next bytes are used. Pass the same strategy object each time,
    because the first use of an object takes long.
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
