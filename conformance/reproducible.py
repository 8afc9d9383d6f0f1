"""The same seed draws the same scripts, whatever else is loaded.

Now and then Hypothesis draws a constant that it has found in the local modules of the process. That is good for a
project's own tests; here a seed would mean other scripts in a wheel than in a source tree, and for one requirement
alone than for all. Hypothesis has no setting for it, so its function is replaced, in this process, which is not the
user's.
"""

from hypothesis.internal.conjecture import providers


def draw_from_the_seed_alone() -> None:
    """Have Hypothesis forget local constants. Idempotent; nothing to do for versions without them."""
    constants = getattr(providers, "Constants", None)
    if constants is None or not hasattr(providers, "_get_local_constants"):
        return
    nothing = constants()
    providers._get_local_constants = lambda: nothing
    providers.CONSTANTS_CACHE.cache.clear()
