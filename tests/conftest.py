"""What all tests share: Hypothesis's profile, and the rotation of the samples, which the header of a run prints."""

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
