"""How Hypothesis draws here: the same seed draws the same scripts, whatever else is loaded, and nothing is printed.

Now and then Hypothesis draws a constant that it has found in the local modules of the process. That is good for a
project's own tests; here a seed would mean other scripts in a wheel than in a source tree, and for one requirement
alone than for all. Hypothesis has no setting for it, so its function is replaced, in this process, which is not the
user's.
"""

from hypothesis import HealthCheck, Phase, Verbosity, settings
from hypothesis.internal.conjecture import providers


def search_settings(scripts_max: int, *phases: Phase) -> settings:
    """A search that keeps nothing, says nothing and takes its time: the engine has its own clock, words and files."""
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


def draw_from_the_seed_alone() -> None:
    """Have Hypothesis forget local constants. Idempotent; nothing to do for versions without them."""
    constants = getattr(providers, "Constants", None)
    if constants is None or not hasattr(providers, "_get_local_constants"):
        return
    nothing = constants()
    providers._get_local_constants = lambda: nothing  # noqa: SLF001 - Hypothesis has no setting for it
    providers.CONSTANTS_CACHE.cache.clear()
