"""Hypothesis, and nobody else's: which scripts are tried, and how one that shows a violation is made small.

The engine wants every script's outcome on every target, while Hypothesis wants to stop at the first that fails. So
`try_scripts` runs it with a test that never fails, and `smallest` runs it again, with the same seed, over one target
and with a test that fails where a violation shows: the same scripts come, and the first violating one is shrunk.
Outcomes are remembered, so that no script is sent twice, and when time is up only remembered scripts violate, which is
how shrinking ends early without Hypothesis finding a test that contradicts itself.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Final

from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings
from hypothesis.errors import HypothesisException
from hypothesis.strategies import SearchStrategy

from conformance.sequential.steps import Script

_SHRINKS_LIKE_A_TEST: Final = (Phase.generate, Phase.shrink)


class _Violated(Exception):  # noqa: N818
    """What the shrinking test raises; always from one place, so that Hypothesis sees one bug."""


def _settings(scripts_max: int, phases: tuple[Phase, ...]) -> settings:
    return settings(
        max_examples=scripts_max,
        phases=phases,
        database=None,
        deadline=None,
        print_blob=False,
        report_multiple_bugs=False,
        verbosity=Verbosity.quiet,
        suppress_health_check=list(HealthCheck),
    )


def try_scripts(
    scripts: SearchStrategy[Script], *, seed_value: int, scripts_max: int, attempt: Callable[[Script], None]
) -> None:
    """Call `attempt` with at most `scripts_max` scripts. What it raises ends the search and is raised here."""
    raised: list[BaseException] = []

    @seed(seed_value)
    @_settings(scripts_max, (Phase.generate,))
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
    violates: Callable[[Script], bool],
    time_is_up: Callable[[], bool],
) -> Script:
    """The smallest script found that violates, beginning with `first`, which does, and ending when time is up."""
    known: dict[Script, bool] = {first: True}
    found = first

    @seed(seed_value)
    @_settings(scripts_max, _SHRINKS_LIKE_A_TEST)
    @given(scripts)
    def no_script_violates(script: Script) -> None:
        nonlocal found
        if script not in known and not time_is_up():
            known[script] = violates(script)
        if known.get(script, False):
            found = script
            raise _Violated

    with suppress(_Violated, HypothesisException):  # the last failing script is the smallest: Hypothesis ends with it
        no_script_violates()
    return found
