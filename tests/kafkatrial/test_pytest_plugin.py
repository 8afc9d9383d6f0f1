"""The pytest plugin in separate projects, with a scripted `kafkatrial run` and fake clusters (`kafka_cluster`)."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.sampled(2)

pytest_plugins = ["pytester"]

CHILD = """
import json, os, signal, sys, time

words = sys.argv[1:]
with open("child.log", "a") as log:
    log.write(json.dumps(words) + "\\n")
script = json.load(open("script.json"))
if "error" in script:
    print(script["error"], file=sys.stderr)
    sys.exit(script["code"])
if "--plan" in words:
    targets = [words[n + 1] for n, word in enumerate(words) if word == "--target"] or ["reference"]
    requirements = [{"id": name, "level": "MUST", "text": ""} for name in script["verdicts"]]
    print(json.dumps({"targets": targets, "seed": 99, "requirements": requirements}))
    sys.exit()
events = os.fdopen(int(words[words.index("--events") + 1]), "w")


def send(**event):
    print(json.dumps(event), file=events, flush=True)


send(event="run-started", run_dir="the-run")
fields = {"reason": "because", "text": "THE FINDING"}
targets = [words[n + 1] for n, word in enumerate(words) if word == "--target"] or ["reference"]
for name, standing in script["verdicts"].items():
    if name in words:
        if standing == "hang":
            open("pid", "w").write(str(os.getpid()))
            time.sleep(60)
        if standing == "hang in the last target":
            for target in targets[:-1]:
                send(event="requirement-judged", requirement=name, target=target, **fields, standing="ok")
            open("pid", "w").write(str(os.getpid()))
            time.sleep(60)
        if standing == "die":
            print("kafkatrial: b1 ended by itself", file=sys.stderr)
            sys.exit(3)
        for target in targets:
            send(event="requirement-judged", requirement=name, target=target, **fields, standing=standing)
if "report" in script:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("interrupted"))
    open("pid", "w").write(str(os.getpid()))
    while not os.path.exists("may-report"):
        time.sleep(0.05)
    open("report", "w").write("whole")
"""

CONFTEST = """
import sys
import kafkatrial.pytest_conformance
kafkatrial.pytest_conformance._KAFKATRIAL = (sys.executable, "child.py")
"""


@pytest.fixture
def project(pytester):
    """Return a function that creates a project in which a scripted child process replaces `kafkatrial run`."""

    def make(verdicts=None, conftest="", **script):
        pytester.makeconftest(CONFTEST + conftest)
        pytester.makefile(".py", child=CHILD)
        pytester.makepyfile(test_mine="def test_mine(): pass")
        Path("script.json").write_text(json.dumps({"verdicts": verdicts or {}, **script}))
        return pytester

    return make


def run(pytester, *words):
    return pytester.runpytest_subprocess("-p", "no:cacheprovider", *words, timeout=60)


def children():
    log = Path("child.log")
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


def test_nothing_happens_without_the_marker(project):
    result = run(project({"a/b": "ok"}), "--strict-markers")
    result.assert_outcomes(passed=1)
    assert children() == []


@pytest.mark.parametrize(
    ("expression", "selects"),
    [
        ("conformance", True),
        ("conformance and not slow", True),
        ("slow or conformance", True),
        ("not conformance", False),
        ("not slow", False),
        ("conformance and slow", False),
    ],
)
def test_the_marker_expression_decides(project, expression, selects):
    result = run(project({"a/b": "ok"}), "-m", expression, "--strict-markers")
    assert bool(children()) == selects
    if selects:
        result.assert_outcomes(passed=1, deselected=1)


def test_each_result_has_its_outcome(project):
    standings = ["ok", "violation", "expected violation", "unexpectedly ok", "unknown", "not applicable"]
    result = run(project({f"a/{n}": standing for n, standing in enumerate(standings)}), "-m", "conformance", "-ra")
    result.assert_outcomes(passed=1, failed=3, xfailed=1, skipped=1, deselected=1)
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*THE FINDING*", "SKIPPED*because", "XFAIL*a/2?reference?*because"])
    result.stdout.fnmatch_lines(["kafkatrial seed 99", "kafkatrial report: the-run/report.html"])
    assert "Traceback" not in result.stdout.str()


def test_unknown_as_the_worst_verdict_exits_6(project):
    assert run(project({"a/b": "ok", "a/c": "unknown"}), "-m", "conformance").ret == 6


def test_a_failing_test_of_a_user_is_worse_than_unknown(project):
    pytester = project({"a/c": "unknown"})
    pytester.makepyfile(test_mine="import pytest\n@pytest.mark.conformance\ndef test_mine(): assert False")
    assert run(pytester, "-m", "conformance").ret == 1


def test_options_reach_the_child_in_both_spellings(project):
    pytester = project({"a/b": "ok"})
    result = run(
        pytester,
        "-m",
        "conformance",
        "--target",
        "x",
        "--kafkatrial-target",
        "y:1",
        "--seed",
        "5",
        "--kafkatrial-nodes=3",
    )
    result.assert_outcomes(passed=2, deselected=1)
    result.stdout.fnmatch_lines(["*2 passed*"])
    given = ["--target", "x", "--target", "y:1", "--nodes", "3", "--seed", "5"]
    assert children()[0] == ["run", "--plan", *given]
    assert children()[1][1:9] == given


def test_the_random_seed_of_the_plan_is_the_seed_of_the_run(project):
    run(project({"a/b": "ok"}), "-m", "conformance")
    words = children()[1]
    assert words[words.index("--seed") + 1] == "99"


def test_only_selected_requirements_run(project):
    result = run(project({"a/one": "ok", "a/two": "ok"}), "-m", "conformance", "-k", "two")
    result.assert_outcomes(passed=1, deselected=2)
    assert children()[1][-1] == "a/two"


def test_collecting_only_starts_nothing(project):
    result = run(project({"a/b": "ok"}), "-m", "conformance", "--collect-only", "-q")
    result.stdout.fnmatch_lines(["conformance::a/b[[]reference]"])
    assert len(children()) == 1


def test_a_target_that_is_not_installed_ends_the_session_with_4(project):
    result = run(project(error="kafkatrial: not installed; run: x", code=4), "-m", "conformance")
    assert result.ret == 4
    assert "kafkatrial: not installed; run: x" in result.stdout.str() + result.stderr.str()


def test_a_target_that_dies_ends_the_session_with_3(project):
    result = run(project({"a/b": "ok", "a/c": "die"}), "-m", "conformance")
    assert result.ret == 3
    assert "kafkatrial: b1 ended by itself" in result.stdout.str() + result.stderr.str()


@pytest.mark.parametrize("owner", ["conftest", "plugin"])
def test_an_option_of_another_plugin_is_not_replaced_by_our_short_option(project, owner):
    addoption = "def pytest_addoption(parser): parser.addoption('--seed', dest='theirs')\n"
    pytester = project({"a/b": "ok"}, conftest=addoption if owner == "conftest" else "")
    words = ["-m", "conformance", "--seed", "theirs", "--kafkatrial-seed", "5"]
    if owner == "plugin":
        pytester.makepyfile(their_plugin=addoption)
        words += ["-p", "their_plugin"]
    result = run(pytester, *words)
    result.assert_outcomes(passed=1, deselected=1)
    assert children()[0] == ["run", "--plan", "--seed", "5"]


def test_a_value_of_an_option_is_not_parsed_as_a_path(project):
    """If the value `reference` were a path, pytest would ignore `testpaths` and the option of its conftest."""
    pytester = project({"a/b": "ok"})
    pytester.makeini("[pytest]\ntestpaths = inner")
    pytester.mkpydir("inner").joinpath("conftest.py").write_text(
        "def pytest_addoption(parser): parser.addoption('--mine')\n"
    )
    result = run(pytester, "-m", "conformance", "--target", "reference", "--mine=x")
    result.assert_outcomes(passed=1)


def test_a_directory_named_like_an_option_is_a_path(pytester):
    """pytest must load the conftest of `inner` before it parses the options, because the conftest defines one."""
    for name in ("nodes", "inner"):
        pytester.mkpydir(name).joinpath(f"test_{name}.py").write_text("def test_mine(): pass")
    conftest = "def pytest_addoption(parser): parser.addoption('--mine')"
    pytester.path.joinpath("inner", "conftest.py").write_text(conftest)
    run(pytester, "nodes", "inner", "--mine=x").assert_outcomes(passed=2)


def test_markers_are_registered_once(project):
    pytester = project()
    pytester.makeini("[pytest]\nmarkers = slow: mine")
    lines = [line for line in run(pytester, "--markers").outlines if line.startswith("@pytest.mark.")]
    names = [line.removeprefix("@pytest.mark.").partition(":")[0] for line in lines]
    assert [name for name in names if name in {"conformance", "chaos", "simulation", "slow"}].count("slow") == 1
    assert {"conformance", "chaos", "simulation"} <= set(names)


def start(pytester, *words):
    """Start a pytest session; return its process as soon as the child has written its process id."""
    command = [sys.executable, "-m", "pytest", "-m", "conformance", "-v", "-p", "no:cacheprovider", *words]
    session = subprocess.Popen(
        command,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},  # so that a result can be read while the session runs
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        cwd=pytester.path,
    )
    while not Path("pid").exists() or not Path("pid").read_text():
        assert session.poll() is None
        time.sleep(0.05)
    return session


def read_until(session, text):
    """Return the output of a session up to and including this text. It reads single characters, not whole lines."""
    output = ""
    while text not in output:
        character = session.stdout.read(1)
        assert character, output
        output += character
    return output


def child_has_ended():
    try:
        os.kill(int(Path("pid").read_text()), 0)
    except ProcessLookupError:
        return True
    return False


def test_an_interrupted_session_ends_the_child(project):
    session = start(project({"a/b": "hang"}))
    session.send_signal(signal.SIGINT)
    session.communicate(timeout=60)
    assert session.returncode == 2
    assert child_has_ended()


def test_a_session_that_is_interrupted_in_the_last_target_ends_the_child_and_keeps_the_results(project):
    pytester = project({"a/b": "hang in the last target"})
    session = start(pytester, "--target", "x", "--target", "y")
    output = read_until(session, "a/b[x] PASSED")
    session.send_signal(signal.SIGINT)
    output += session.communicate(timeout=60)[0]
    assert session.returncode == 2
    assert child_has_ended()
    assert "1 passed" in output
    assert "kafkatrial report: the-run/report.html" in output


RECORD_WAIT = """
import pathlib, subprocess

wait = subprocess.Popen.wait


def recorded_wait(self, timeout=None):
    if timeout is not None:
        pathlib.Path("waiting").touch()
    return wait(self, timeout)


subprocess.Popen.wait = recorded_wait
"""


def test_a_child_that_has_judged_the_last_target_is_not_interrupted_while_it_writes_its_report(project):
    session = start(project({"a/b": "ok"}, conftest=RECORD_WAIT, report=True), "--target", "x", "--target", "y")
    while not Path("waiting").exists():
        assert session.poll() is None
        time.sleep(0.05)
    Path("may-report").touch()
    output = session.communicate(timeout=60)[0]
    assert session.returncode == 0, output
    assert Path("report").read_text() == "whole"
    assert child_has_ended()


def test_the_plugin_alone_imports_nothing_of_the_suite(project):
    """pytest imports the plugin in every run on a machine with kafkatrial."""
    pytester = project()
    pytester.makepyfile(
        test_mine="""
        import sys

        def test_mine():
            ours = {name for name in sys.modules if name.startswith("kafkatrial")}
            assert ours == {"kafkatrial", "kafkatrial.pytest_plugin"}
            assert not {"conformance", "fixtures", "reports", "pyarrow", "hypothesis", "typer"} & set(sys.modules)
        """
    )
    pytester.makeconftest("")
    run(pytester, "-p", "no:hypothesispytest").assert_outcomes(passed=1)


# --- the fixture kafka_cluster, on clusters that only record the actions

FAKE_CLUSTER = """
import kafkatrial.cluster
from kafkatrial.cluster import ClusterError, KafkaCluster


class FakeCluster(KafkaCluster):
    started = 0

    @classmethod
    def start(cls, target, nodes=None):
        cls.started += 1
        cluster = cls.__new__(cls)
        cluster.number = cls.started
        cluster.record("started")
        return cluster

    def record(self, action):
        with open("cluster.log", "a") as log:
            log.write(f"{self.number} {action}\\n")

    def kill(self, node):
        self.record(f"kill {node}")
        self.is_broken = node == "beyond repair"

    def restore(self):
        self.record("restored")
        if getattr(self, "is_broken", False):
            raise ClusterError("node 2 does not start again")

    def stop(self):
        self.record("stopped")


kafkatrial.cluster.KafkaCluster = FakeCluster
"""
TWO_TESTS = """
import pytest


@pytest.fixture
def broken(kafka_cluster):
    yield kafka_cluster.kill(1)
    kafka_cluster.record("fixture ended")


def test_one(broken): pass
def test_two(kafka_cluster): kafka_cluster.kill(2)
"""


@pytest.fixture
def clusters(pytester):
    """Return a function that runs a test file on fake clusters; it returns pytest's result and the recorded actions."""
    pytester.makeconftest(FAKE_CLUSTER)

    def clusters(text, *words, ini="", **outcomes):
        pytester.makepyfile(test_theirs=text)
        pytester.makeini(f"[pytest]\n{ini}")
        result = run(pytester, *words)
        if outcomes:
            result.assert_outcomes(**outcomes)
        log = Path("cluster.log")
        return result, log.read_text().splitlines() if log.exists() else []

    return clusters


def test_a_cluster_is_restored_after_each_test_and_before_the_next(clusters):
    _, done = clusters(TWO_TESTS, passed=2)
    assert done == [
        *("1 started", "1 kill 1", "1 fixture ended", "1 restored"),
        *("1 restored", "1 kill 2", "1 stopped"),  # the last test's teardown ends the session's fixtures too
    ]


def test_a_cluster_is_restored_after_a_failing_test_and_around_a_test_that_requests_it_by_name(clusters):
    text = """
def test_one(request): request.getfixturevalue("kafka_cluster").kill(1); assert False
def test_two(): pass
def test_three(request): request.getfixturevalue("kafka_cluster").kill(3)
def test_four(): pass
"""
    _, done = clusters(text, passed=3, failed=1)
    assert done == [
        *("1 started", "1 kill 1", "1 restored"),
        "1 restored",
        *("1 restored", "1 kill 3", "1 restored"),
        "1 stopped",
    ]


FRESH = ["1 started", "1 kill 1", "1 fixture ended", "1 stopped", "2 started", "2 kill 2", "2 stopped"]


@pytest.mark.parametrize(
    ("words", "ini", "expected"),  # None: one cluster for both tests
    [
        (["--kafkatrial-cluster-scope=function"], "", FRESH),
        ([], "kafkatrial_cluster_scope = function", FRESH),
        (["--kafkatrial-cluster-scope=module"], "kafkatrial_cluster_scope = function", None),
    ],
)
def test_the_scope_of_the_cluster_is_chosen(clusters, words, ini, expected):
    _, done = clusters(TWO_TESTS, *words, ini=ini, passed=2)
    assert done == (expected or ["1 started", *done[1:]])
    assert (len([line for line in done if line.endswith("started")]) == 1) is (expected is None)


def test_an_unknown_scope_is_reported_in_one_line(clusters):
    result, done = clusters(TWO_TESTS, "--kafkatrial-cluster-scope=world")
    assert result.ret == 4
    assert "invalid choice: 'world'" in result.stderr.str()
    assert done == []


def test_a_cluster_that_cannot_be_restored_is_an_error_of_the_test_that_broke_it(clusters):
    text = """
def test_one(kafka_cluster): kafka_cluster.kill("beyond repair")
def test_two(): pass
"""
    result, _ = clusters(text, "-rE", passed=2, errors=1)
    result.stdout.fnmatch_lines(
        ["*ERROR at teardown of test_one*", "the cluster was not restored after this test: node 2 does not start again"]
    )


def test_a_cluster_that_cannot_be_restored_is_no_error_of_a_test_that_did_not_request_it(clusters):
    text = """
def test_one(kafka_cluster): kafka_cluster.kill("beyond repair")
def test_two(request): pass
"""
    _, done = clusters(text, passed=2, errors=1)
    assert done == ["1 started", "1 kill beyond repair", "1 restored", "1 restored", "1 stopped"]


def test_without_a_cluster_its_modules_are_not_imported(clusters):
    text = """
import sys
def test_one(): pass
def test_two(): assert "kafkatrial.commands.broker" not in sys.modules
"""
    assert clusters(text, passed=2)[1] == []


def test_faults_of_one_test_do_not_affect_the_next(pytester):
    """This test starts a real cluster."""
    pytester.makepyfile("""
        def test_one(kafka_cluster):
            kafka_cluster.pause("controller").__enter__()
            kafka_cluster.kill(kafka_cluster.follower("__cluster_tests"))

        def test_two(kafka_cluster):
            assert [node.state for node in kafka_cluster.nodes] == ["running"] * 3
            assert set(kafka_cluster.partition("__cluster_tests").isr) == {1, 2, 3}
    """)
    pytester.makeconftest("""
        import pytest
        from confluent_kafka.admin import AdminClient
        from confluent_kafka.cimpl import NewTopic

        @pytest.fixture(scope="session", autouse=True)
        def topic(kafka_cluster):
            admin = AdminClient({"bootstrap.servers": kafka_cluster.bootstrap_servers})
            admin.create_topics([NewTopic("__cluster_tests", 1, 3)])["__cluster_tests"].result(60)
    """)
    run(pytester).assert_outcomes(passed=2)


@pytest.mark.parametrize(
    "words",
    [
        ("-n", "2"),
        ("-n", "1", "-k", "a/b", "-x"),
        ("-n", "2", "--dist", "loadgroup", "--maxfail", "1"),
        ("--tx", "2*popen", "--dist", "load"),
    ],
)
def test_distributed_requirements_are_rejected_in_one_line_before_anything_starts(project, words):
    pytester = project({"a/b": "ok"})
    result = run(pytester, "-m", "conformance", "--target", "x", "--target", "y", *words)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    output = result.stdout.str() + result.stderr.str()
    assert output.count("-m conformance runs the same scripts side by side") == 1
    assert "INTERNALERROR" not in output
    assert "Traceback" not in output
    assert children() == []


def test_workers_without_requirements_are_permitted(project):
    pytester = project({"a/b": "ok"})
    run(pytester, "-n", "1").assert_outcomes(passed=1)
    run(pytester, "-n", "0", "-m", "conformance").assert_outcomes(passed=1, deselected=1)
