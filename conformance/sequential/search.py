"""Hypothesis, and nobody else's: which scripts are tried, and how one that shows a violation is made small.

The engine wants every script's outcome on every target, while Hypothesis wants to stop at the first that fails. So
`try_scripts` runs it with a test that never fails, and `smallest` runs it again, with the same seed, over one target
and with a test that fails where a violation shows: the same scripts come, and the first violating one is shrunk.
Outcomes are remembered, so that no script is sent twice.
"""

from collections.abc import Callable, Collection

from hypothesis import Phase, given, seed
from hypothesis.errors import HypothesisException
from hypothesis.strategies import SearchStrategy

from conformance.reproducible import draw_from_the_seed_alone, search_settings
from conformance.sequential.steps import Script


class _Violated(Exception):  # noqa: N818
    """What the shrinking test raises; always from one place, so that Hypothesis sees one bug."""


class _TimeIsUp(BaseException):
    """Leaves Hypothesis at once, as Ctrl-C does: what is no `Exception` is not a failing example."""


def try_scripts(
    scripts: SearchStrategy[Script], *, seed_value: int, scripts_max: int, attempt: Callable[[Script], None]
) -> None:
    """Call `attempt` with at most `scripts_max` scripts. What it raises ends the search and is raised here."""
    draw_from_the_seed_alone()
    raised: list[BaseException] = []

    @seed(seed_value)
    @search_settings(scripts_max, Phase.generate)
    @given(scripts)
    def every_script(script: Script) -> None:
        if raised:
            return
        try:
            attempt(script)
        except BaseException as error:  # noqa: BLE001 - Hypothesis would take it for a failing example and run it again
            raised.append(error)

    every_script()
    if raised:
        raise raised[0]


def smallest(
    scripts: SearchStrategy[Script],
    *,
    seed_value: int,
    scripts_max: int,
    first: Script,
    passed: Collection[Script],
    violates: Callable[[Script], bool],
    time_is_up: Callable[[], bool],
) -> Script:
    """The smallest script found that violates when the search or the time ends; `first`, which does, if none other.

    :param passed: scripts of the same search that do not; they are not tried again.
    """
    draw_from_the_seed_alone()
    known = {**dict.fromkeys(passed, False), first: True}
    violating = [first]

    @seed(seed_value)
    @search_settings(scripts_max, Phase.generate, Phase.shrink)
    @given(scripts)
    def no_script_violates(script: Script) -> None:
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
        return violating[-1]  # Hypothesis ends by running the smallest once more
    except (_TimeIsUp, HypothesisException):
        pass
    return min(violating, key=lambda script: (len(script), len(repr(script))))
