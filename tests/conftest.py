"""What all tests share: Hypothesis's profile, and the rotation of the samples, which the header of a run prints."""

from collections import Counter

import pytest
from hypothesis import HealthCheck, settings

from tests.sampling import VARIABLE, rotation

# How long an example takes depends on what else this machine does, so it decides nothing here; pytest-timeout ends what
# hangs. Everything else is as in the profile that Hypothesis loads by itself: the same examples again where CI is set.
settings.register_profile(
    "any machine",
    settings.default,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    print_blob=True,
)
settings.load_profile("any machine")


def pytest_configure():
    rotation()  # before workers of pytest-xdist start, so that all of them have the same


def pytest_report_header():
    return f"rotation of samples: {rotation()} ({VARIABLE}={rotation()} selects the same ones)"


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    """Let parallel processes start files with slow tests first, then those with many tests: no slow file is last."""
    if hasattr(config, "workerinput"):
        slow = {item.path for item in items if item.get_closest_marker("slow")}
        tests = Counter(item.path for item in items)
        items.sort(key=lambda item: (item.path not in slow, -tests[item.path]))
