"""Settings of Hypothesis: the same seed generates the same scripts in every process, and nothing is printed.

Hypothesis sometimes draws a constant that it has found in the local modules of the process. That is good for a
project's tests; here a seed would generate other scripts in a wheel than in a source tree, and other ones for one
requirement than for all. Hypothesis has no setting for it, so its function is replaced, in this process only, which
is not the user's.
"""

from hypothesis import HealthCheck, Phase, Verbosity, settings
from hypothesis.internal.conjecture import providers


def search_settings(scripts_max: int, *phases: Phase) -> settings:
    """Return settings without database, output and deadline, which the engine has itself."""
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
    """Remove local constants from Hypothesis. Idempotent; nothing to do for versions without them."""
    constants = getattr(providers, "Constants", None)
    if constants is None or not hasattr(providers, "_get_local_constants"):
        return
    nothing = constants()
    providers._get_local_constants = lambda: nothing  # noqa: SLF001 - Hypothesis has no setting for it
    providers.CONSTANTS_CACHE.cache.clear()
