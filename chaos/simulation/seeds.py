"""From a seed to a script: bytes of the seed drive the strategies, through Hypothesis's door for fuzzers.

One seed gives one script, in any process and on any machine with this version of kafkatrial and of Hypothesis. What is
to be kept for longer is the script itself.
"""

from collections.abc import Callable
from functools import cache
from random import Random
from typing import Final

from hypothesis import given, settings
from hypothesis.core import HypothesisHandle

from chaos.simulation.strategies import scripts
from chaos.trial import Trial

_BYTES: Final = 8_192
"""What Hypothesis takes for one example at most; a script takes a tenth."""


def script_of(seed: int) -> Trial:
    """The script of a seed. Bytes that are no script, since a filter refused what they gave, are passed over."""
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
    @given(scripts())
    def collect(script: Trial) -> None:
        drawn.append(script)

    handle: HypothesisHandle = collect.hypothesis  # type: ignore[attr-defined]  # put there by `given`
    return handle.fuzz_one_input, drawn
