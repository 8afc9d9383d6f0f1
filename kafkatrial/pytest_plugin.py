"""kafkatrial in pytest: `pytest -m conformance --target apache-kafka:4.3.1`, `-m chaos`, the fixture `kafka_cluster`.

pytest loads this module in every run on a machine with kafkatrial. So it imports other modules of kafkatrial only if
the suite or the fixture is used. The suite runs in child processes, so that a `fixtures` or `reports` package of the
user cannot conflict with those of kafkatrial.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from kafkatrial.cluster import KafkaCluster
    from kafkatrial.pytest_conformance import ConformanceRun

_MARKERS = {
    "conformance": "requirements of the kafkatrial suite, run on each --target",
    "chaos": "runs of the kafkatrial suite under a schedule of faults",
    "simulation": "runs of the kafkatrial suite in deterministic simulation",
    "slow": "takes longer than ten seconds",
}
_OPTIONS: dict[str, dict[str, Any]] = {
    "target": {
        "action": "append",
        "metavar": "KIND[:VERSION]",
        "help": "cluster to test; may be repeated to compare (default: reference)",
    },
    "targets": {
        "metavar": "FILE",
        "help": "TOML file that defines how other brokers start (default: kafkatrial.toml, if it exists)",
    },
    "nodes": {"metavar": "N", "help": "number of brokers per cluster (default: 3)"},
    "seed": {"metavar": "N", "help": "seed of the generated scripts (default: a random one, printed)"},
    "level": {"metavar": "must|should", "help": "weakest level of requirement to check (default: should)"},
    "profile": {"metavar": "ci|nightly", "help": "number of scripts per requirement (default: ci)"},
    "expectations": {
        "metavar": "FILE",
        "help": "TOML file of known violations (default: that of the target, if it has one)",
    },
}
_CLUSTER_SCOPE = "kafkatrial_cluster_scope"
_SCOPES = ("function", "class", "module", "package", "session")
_CLUSTER: pytest.StashKey[KafkaCluster] = pytest.StashKey()
_RUN: pytest.StashKey[ConformanceRun] = pytest.StashKey()


# --- options and markers


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options with the prefix `kafkatrial`, which no other plugin has."""
    group = parser.getgroup("kafkatrial", "kafkatrial: conformance of Kafka brokers")
    for name, attributes in _OPTIONS.items():
        group.addoption(f"--kafkatrial-{name}", dest=_dest(name), **attributes)
    group.addoption(
        "--kafkatrial-cluster-scope",
        dest=_CLUSTER_SCOPE,
        choices=_SCOPES,
        help="scope of kafka_cluster: function is a fresh cluster for each test (default: session)",
    )
    parser.addini(_CLUSTER_SCOPE, "scope of the fixture kafka_cluster", default="session")


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(
    early_config: pytest.Config, parser: pytest.Parser, args: Sequence[str]
) -> Generator[None, None, None]:
    """Add the short options whose names no other plugin or conftest has taken.

    pytest has already parsed the command line once, and took the value of an unknown option for a path. Such values are
    removed from the paths; otherwise pytest would look for conftests there instead of in `testpaths`.
    """
    paths = early_config.known_args_namespace.file_or_dir
    for option, value in itertools.pairwise(args):
        if option.startswith("--") and option[2:] in _OPTIONS and value in paths:
            paths.remove(value)
    yield
    taken = _names_taken(parser)
    group = parser.getgroup("kafkatrial")
    for name, attributes in _OPTIONS.items():
        if f"--{name}" not in taken:
            group.addoption(f"--{name}", dest=_dest(name), **{**attributes, "help": f"short for --kafkatrial-{name}"})


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers that the user has not registered, check the options, and choose a seed for chaos."""
    registered = {line.partition(":")[0].partition("(")[0].strip() for line in config.getini("markers")}
    for name, meaning in _MARKERS.items():
        if name not in registered:
            config.addinivalue_line("markers", f"{name}: {meaning}")
    expression = config.getoption("markexpr", "")
    if _is_distributed(config) and _selects("conformance", expression):
        raise pytest.UsageError(
            "-m conformance runs the same scripts side by side on every target, in one process: leave out "
            "pytest-xdist's -n and --dist, or pass -n 0"
        )
    if targets := config.getoption(_dest("targets")):
        from kafkatrial.environment import TARGETS

        os.environ[TARGETS] = str(Path(targets).absolute())  # for the child processes
    if config.getoption(_dest("seed")) is None and _selects("chaos", expression):
        from kafkatrial.seeds import generate_seed

        seed = getattr(config, "workerinput", {}).get(_dest("seed")) or str(generate_seed())
        setattr(config.option, _dest("seed"), seed)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Pass the seed to a worker of pytest-xdist, so that all workers have the same."""
    node.workerinput[_dest("seed")] = node.config.getoption(_dest("seed"))


def _is_distributed(config: pytest.Config) -> bool:
    """Whether the items are run by workers of pytest-xdist."""
    return config.getoption("dist", "no") != "no" and bool(config.getoption("tx", None))


def _dest(name: str) -> str:
    return f"kafkatrial_{name}"


def _names_taken(parser: pytest.Parser) -> set[str]:
    groups = [parser._anonymous, *parser._groups]  # noqa: SLF001 - pytest has no other list of them
    return {name for group in groups for option in group.options for name in option.names()}


def chosen_options(config: pytest.Config) -> list[str]:
    """Return the given options of this plugin as arguments of `kafkatrial run`."""
    words = []
    for name in _OPTIONS:
        given = config.getoption(_dest(name))
        for value in given if isinstance(given, list) else [given]:
            if value is not None:
                words += [f"--{name}", str(value)]
    return words


# --- requirements as items


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    """Append the items of the suites that `-m` selects: requirements, findings and generated rounds, each per target.

    This hook runs before `-m` and `-k` deselect items.
    """
    if _selects("chaos", config.getoption("markexpr", "")):
        from kafkatrial.pytest_chaos import ChaosSession

        chaos = ChaosSession(config.getoption(_dest("target")) or (), config.getoption(_dest("seed")))
        _append(session, items, "chaos", chaos.collect(session))
    if _selects("conformance", config.getoption("markexpr", "")):
        from kafkatrial.pytest_conformance import ConformanceRun

        run = config.stash[_RUN] = ConformanceRun(chosen_options(config))
        _append(session, items, "conformance", run.collect(session))


def _append(session: pytest.Session, items: list[pytest.Item], nodeid: str, more: Iterable[pytest.Item]) -> None:
    """Add items, and count them as collected."""
    added = [*more]
    session.ihook.pytest_collectreport(report=pytest.CollectReport(nodeid, "passed", None, [*added]))
    items += added


def pytest_collection_finish(session: pytest.Session) -> None:
    """Pass the items that were not deselected to the run, which selects their requirements."""
    run = session.config.stash.get(_RUN, None)
    if run is not None:
        run.keep(session.items)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """End the child process. If every failure is an unknown verdict, change the exit status to INCONCLUSIVE."""
    run = session.config.stash.get(_RUN, None)
    if run is not None:
        run.stop()
        session.exitstatus = run.exit_status(session.exitstatus, session.testsfailed)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Print the seed and the path of the report at the end."""
    if _selects("chaos", config.getoption("markexpr", "")):
        terminalreporter.write_line(f"kafkatrial seed {config.getoption(_dest('seed'))}")
    run = config.stash.get(_RUN, None)
    if run is not None:
        for line in run.summary():
            terminalreporter.write_line(line)


def _selects(marker: str, expression: str) -> bool:
    """Whether a marker expression selects an item with only that marker, and no item without markers."""
    if marker not in expression:
        return False
    from _pytest.mark.expression import Expression

    try:
        compiled = Expression.compile(expression)
    except SyntaxError:
        return False  # pytest itself reports it

    def has_that_marker_alone(name: str, /, **arguments: object) -> bool:
        return name == marker and not arguments

    return compiled.evaluate(has_that_marker_alone) and not compiled.evaluate(_has_no_marker)


def _has_no_marker(name: str, /, **arguments: object) -> bool:
    return False


# --- a cluster for a user's own tests


def _cluster_scope(fixture_name: str, config: pytest.Config) -> Any:
    """Return the scope of `kafka_cluster`: the command line's, or else that of the configuration file."""
    return config.getoption(_CLUSTER_SCOPE) or config.getini(_CLUSTER_SCOPE)


@pytest.fixture(scope=_cluster_scope)
def kafka_cluster(pytestconfig: pytest.Config) -> Iterator[KafkaCluster]:
    """Provide a running cluster with fault injection: the first `--target`, or else the reference broker.

    The cluster is restored after each test, and before each test that names this fixture or `request`: all faults are
    ended, every node that is down is restarted, and all replicas are in sync again. Topics, records and groups are kept
    as long as the cluster runs: for the session, or for the scope that `--kafkatrial-cluster-scope` sets.
    """
    from kafkatrial.cluster import ClusterError, KafkaCluster

    targets = pytestconfig.getoption(_dest("target")) or ["reference"]
    nodes = pytestconfig.getoption(_dest("nodes"))
    try:
        cluster = KafkaCluster.start(targets[0], nodes=nodes)
    except ClusterError as error:
        pytest.fail(str(error), pytrace=False)
    with cluster:
        pytestconfig.stash[_CLUSTER] = cluster
        try:
            yield cluster
        finally:
            del pytestconfig.stash[_CLUSTER]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Restore the cluster, if something between two tests, such as a process that ended late, has left it broken.

    A test with the fixture `request` may request the cluster by name while it runs, and pytest calls no hook then. So
    the cluster is restored before such a test, too. If that fails, the test does not fail.
    """
    names = getattr(item, "fixturenames", ())
    if "kafka_cluster" in names:
        _restore_cluster(item.config, "before")
    elif "request" in names:
        with suppress(pytest.fail.Exception):
            _restore_cluster(item.config, "before")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, None, None]:
    """Restore the cluster after the teardown of the test's own fixtures."""
    try:
        yield
    finally:
        _restore_cluster(item.config, "after")


def _restore_cluster(config: pytest.Config, when: str) -> None:
    cluster = config.stash.get(_CLUSTER, None)
    if cluster is None:
        return
    from kafkatrial.cluster import ClusterError

    try:
        cluster.restore()
    except ClusterError as error:
        message = f"the cluster was not restored {when} this test: {error}"
        raise pytest.fail.Exception(message, pytrace=False) from None
