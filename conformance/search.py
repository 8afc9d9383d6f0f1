"""Search for scripts with Hypothesis, and shrinking of a script that shows a violation.

The engine needs every script's result on every target, but Hypothesis stops at the first failure. Therefore
`try_scripts` runs Hypothesis with a test that never fails. For a target with a violation, `smallest` runs Hypothesis
again with the same seed and a test that fails on the violation. Hypothesis then generates the same scripts, and shrinks
the first violating one. Within a search each script runs once: its result is kept, since a real cluster may behave
differently the next time.

Shrinking stays within the scripts of a requirement, because its checks are valid only for those: a script whose cut is
too short violates "the follower leaves the ISR" on every cluster. Therefore `chaos.campaign.shrinking`, which changes
the fields of a trial, is not used here.
"""

import warnings
from collections.abc import Callable, Collection
from typing import TypeVar

from hypothesis import Phase, given, seed
from hypothesis.errors import HypothesisException, HypothesisWarning
from hypothesis.strategies import SearchStrategy

from conformance.reproducible import remove_local_constants, search_settings

warnings.filterwarnings("ignore", "Generating overly large repr", HypothesisWarning)  # scripts with many records

S = TypeVar("S")
"""A script: a value that can be hashed."""


class _Violated(Exception):  # noqa: N818
    """Exception of the shrinking test, raised at only one place, so that Hypothesis sees one bug."""


class _TimeIsUp(BaseException):
    """Exception that ends Hypothesis at once, as Ctrl-C does: only an `Exception` counts as a failing example."""


def try_scripts(
    scripts: SearchStrategy[S], *, seed_value: int, scripts_max: int, attempt: Callable[[S], object]
) -> None:
    """Call `attempt` with at most `scripts_max` scripts. If it raises, the search ends with that exception."""
    remove_local_constants()
    raised: list[BaseException] = []

    @seed(seed_value)
    @search_settings(scripts_max, Phase.generate)
    @given(scripts)
    def every_script(script: S) -> None:
        if raised:
            return
        try:
            attempt(script)
        except BaseException as error:  # noqa: BLE001 - Hypothesis would take it for a failing example and run it again
            raised.append(error)

    every_script()
    if raised:
        raise raised[0]


def scripts_of(scripts: SearchStrategy[S], *, seed_value: int, scripts_max: int) -> list[S]:
    """Return at most `scripts_max` different scripts, the same for the same seed."""
    found: dict[S, None] = {}
    try_scripts(scripts, seed_value=seed_value, scripts_max=scripts_max, attempt=found.setdefault)
    return list(found)


def smallest(
    scripts: SearchStrategy[S],
    *,
    seed_value: int,
    scripts_max: int,
    first: S,
    passed: Collection[S],
    violates: Callable[[S], bool],
    time_is_up: Callable[[], bool],
) -> S:
    """Return the smallest violating script found until the search ends or the time is up: `first` if no other is found.

    :param first: the violating script that was found before.
    :param passed: scripts of the same search without a violation; they are not tried again.
    """
    remove_local_constants()
    known = {**dict.fromkeys(passed, False), first: True}
    violating = [first]

    @seed(seed_value)
    @search_settings(scripts_max, Phase.generate, Phase.shrink)
    @given(scripts)
    def no_script_violates(script: S) -> None:
        if script not in known:
            if time_is_up():
                raise _TimeIsUp
            known[script] = violates(script)
        if known[script]:
            violating.append(script)
            raise _Violated

    try:
        no_script_violates()
    except _Violated:
        return violating[-1]  # Hypothesis runs the smallest again at the end
    except (_TimeIsUp, HypothesisException):
        pass
    return min(violating, key=lambda script: len(repr(script)))
