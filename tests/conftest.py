"""Configuration of all tests: the profile of Hypothesis, and the option `--sample` (see `sampling.py`)."""

from collections import Counter

from hypothesis import HealthCheck, settings

from tests.sampling import VARIABLE, is_in_sample, rotation

# The duration of an example depends on the load of the machine. Therefore no example has a deadline, and slow
# generation is no error; pytest-timeout ends tests that hang. `settings.default` is the profile that Hypothesis has
# selected: in CI, its own profile "ci", which generates the same examples in every run.
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
    rotation()  # sets the environment variable before pytest-xdist starts workers, so that they inherit it


def pytest_report_header():
    return f"rotation of samples: {rotation()} ({VARIABLE}={rotation()} selects the same samples)"


def pytest_collection_modifyitems(config, items):
    if not config.getoption("--sample"):
        return
    cases, kept, deselected = Counter(), [], []
    for item in items:
        file = item.nodeid.partition("::")[0]
        if (marker := item.get_closest_marker("sampled")) is not None:
            cases[file] += 1
        is_kept = marker is None or is_in_sample(file, cases[file], marker.args[0])
        (kept if is_kept else deselected).append(item)
    config.hook.pytest_deselected(items=deselected)
    items[:] = kept
