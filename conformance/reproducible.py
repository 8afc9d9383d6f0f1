"""Settings of Hypothesis: the same seed generates the same scripts in every process, and nothing is printed.

Hypothesis sometimes draws a constant from the local modules of the process. A seed would then generate different
scripts in a wheel and in a source tree, and different ones in a run of one requirement and in a run of all. Hypothesis
has no setting for this, so the function that returns these constants is replaced. This affects only this process; the
user's tests run in another one.
"""

from hypothesis import HealthCheck, Phase, Verbosity, settings
from hypothesis.internal.conjecture import providers


def search_settings(scripts_max: int, *phases: Phase) -> settings:
    """Return settings without a database and output, and without a deadline for single scripts."""
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


def remove_local_constants() -> None:
    """Make Hypothesis generate from the seed alone: without constants of local modules. Idempotent."""
    constants = getattr(providers, "Constants", None)
    if constants is None or not hasattr(providers, "_get_local_constants"):
        return
    nothing = constants()
    providers._get_local_constants = lambda: nothing  # noqa: SLF001 - Hypothesis has no setting for it
    providers.CONSTANTS_CACHE.cache.clear()
