"""Configuration of all tests: Hypothesis's profile, and the rotation of samples in the header of pytest."""

from hypothesis import HealthCheck, settings

from tests.sampling import VARIABLE, rotation

# Examples have no deadline, because their duration depends on the load of the machine; pytest-timeout ends tests that
# hang. All else is as in the profile that Hypothesis loads by itself, which repeats the same examples in CI.
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
