"""From a seed to a script: bytes of the seed drive the strategies, through Hypothesis's door for fuzzers.

One seed gives one script, in any process and on any machine with this version of kafkatrial and of Hypothesis. What is
to be kept for longer is the script itself.
"""

from collections.abc import Callable, Iterator
from functools import cache
from random import Random
from typing import Final

from hypothesis import given, settings
from hypothesis.core import HypothesisHandle

from chaos.simulation.script import Script
from chaos.simulation.strategies import scripts

_BYTES: Final = 8_192
"""What Hypothesis takes for one example at most; a script takes a tenth."""


def script_of(seed: int) -> Script:
    """The script of a seed."""
    return next(_scripts(seed))[1]


def bytes_of(seed: int) -> bytes:
    """From which Hypothesis draws the script of a seed."""
    return next(_scripts(seed))[0]


def _scripts(seed: int) -> Iterator[tuple[bytes, Script]]:
    """Bytes that are no script, since a filter refused what they gave, are passed over."""
    random = Random(seed)
    draw, drawn = _drawing()
    while True:
        data = random.randbytes(_BYTES)
        drawn.clear()
        draw(data)
        if drawn:
            yield data, drawn[0]


@cache
def _drawing() -> tuple[Callable[[bytes], bytes | None], list[Script]]:
    drawn: list[Script] = []

    @settings(database=None, deadline=None)
    @given(scripts())
    def collect(script: Script) -> None:
        drawn.append(script)

    return fuzzing(collect), drawn


def fuzzing(test: Callable[[], None]) -> Callable[[bytes], bytes | None]:
    """Hypothesis's function that runs a test on the example of some bytes."""
    handle: HypothesisHandle = test.hypothesis  # type: ignore[attr-defined]  # put there by `given`
    return handle.fuzz_one_input
