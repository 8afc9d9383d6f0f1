"""Search for scripts with Hypothesis, and shrinking of a script that shows a violation.

The engine needs every script's outcome on every target, while Hypothesis stops at the first failure. Therefore
`try_scripts` runs it with a test that never fails, and `smallest` runs it again, with the same seed, on one target
and with a test that fails on a violation: Hypothesis generates the same scripts and shrinks the first violating one.
Outcomes are cached, so that no script is sent twice.
"""

from collections.abc import Callable, Collection

from hypothesis import Phase, given, seed
from hypothesis.errors import HypothesisException
from hypothesis.strategies import SearchStrategy

from conformance.reproducible import draw_from_the_seed_alone, search_settings
from conformance.sequential.steps import Script


class _Violated(Exception):  # noqa: N818
    """Raised by the shrinking test, always from one place, so that Hypothesis sees one bug."""


class _TimeIsUp(BaseException):
    """Ends Hypothesis at once, as Ctrl-C does: an exception outside `Exception` is not a failing example."""


def try_scripts(
    scripts: SearchStrategy[Script], *, seed_value: int, scripts_max: int, attempt: Callable[[Script], None]
) -> None:
    """Call `attempt` with at most `scripts_max` scripts. An exception of it ends the search and is raised again."""
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
    """Return the smallest violating script that is found before the search or the time ends; at least `first`.

    :param passed: scripts of the same search without a violation; they are not tried again.
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
        return violating[-1]  # Hypothesis runs the smallest again at the end
    except (_TimeIsUp, HypothesisException):
        pass
    return min(violating, key=lambda script: (len(script), len(repr(script))))
