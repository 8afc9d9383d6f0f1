"""Trial of a seed: random bytes generated from the seed drive the strategies (Hypothesis's `fuzz_one_input`).

One seed gives one trial, in any process and on any machine with this version of kafkatrial and of Hypothesis. To keep
it for longer, save the trial itself.
"""

from collections.abc import Callable
from functools import cache
from random import Random
from typing import Final

from hypothesis import given, settings
from hypothesis.core import HypothesisHandle

from chaos.simulation.strategies import trials
from conformance.trial.trial import Trial

_BYTES: Final = 8_192
"""Maximum number of bytes that Hypothesis uses for one example; a trial uses a tenth."""


def trial_of_seed(seed: int) -> Trial:
    """Return the trial of a seed. Bytes that give no trial, since a filter rejects them, are skipped."""
    random = Random(seed)
    draw, drawn = _drawing()
    drawn.clear()
    while not drawn:
        draw(random.randbytes(_BYTES))
    return drawn.pop()


@cache
def _drawing() -> tuple[Callable[[bytes], bytes | None], list[Trial]]:
    drawn: list[Trial] = []

    @settings(database=None, deadline=None)
    @given(trials())
    def collect(trial: Trial) -> None:
        drawn.append(trial)

    handle: HypothesisHandle = collect.hypothesis  # type: ignore[attr-defined]  # put there by `given`
    return handle.fuzz_one_input, drawn
