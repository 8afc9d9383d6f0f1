"""Configuration of all tests: Hypothesis's profile, samples, and their rotation in the header of pytest."""

from collections import Counter

from hypothesis import HealthCheck, settings

from tests.sampling import VARIABLE, is_in_sample, rotation

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


def pytest_addoption(parser):
    parser.addoption(
        "--sample", action="store_true", help="Of modules marked sampled(parts), run one part, which changes daily."
    )


def pytest_configure():
    rotation()  # before workers of pytest-xdist start, so that all of them have the same rotation


def pytest_report_header():
    return f"rotation of samples: {rotation()} ({VARIABLE}={rotation()} selects the same ones)"


def pytest_collection_modifyitems(config, items):
    if not config.getoption("--sample"):
        return
    counted, kept, others = Counter(), [], []
    for item in items:
        file = item.nodeid.partition("::")[0]
        if (marker := item.get_closest_marker("sampled")) is not None:
            counted[file] += 1
        is_kept = marker is None or is_in_sample(file, counted[file], marker.args[0])
        (kept if is_kept else others).append(item)
    config.hook.pytest_deselected(items=others)
    items[:] = kept
