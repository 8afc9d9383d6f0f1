"""`pytest -m chaos` in separate projects, with a scripted `kafkatrial chaos` in place of the real one."""

import json
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

pytestmark = pytest.mark.sampled(2)

pytest_plugins = ["pytester"]

TIMEOUT_S = 60
CHILD = """
import json, os, sys, time

words = sys.argv[1:]
with open("child.log", "a") as log:
    log.write(json.dumps(words) + "\\n")
codes = json.load(open("script.json"))
if words == ["chaos", "--show", "list"]:
    print("".join(f"{name}  what is seen\\n" for name in codes if name != "generated"), end="")
    sys.exit()
print("first line\\nTHE LAST LINE", flush=True)
if "wrecked" in words:
    open("kept.txt", "w").write("ZeroDivisionError: oops")
    print("kafkatrial: internal error: oops (traceback in kept.txt)", flush=True)
if "sleeper" in words:
    open("child.pid", "w").write(str(os.getpid()))
    time.sleep(600)
sys.exit(codes[words[words.index("--show") + 1] if "--show" in words else "generated"])
"""
CONFTEST = """
import sys
import kafkatrial.pytest_chaos
kafkatrial.pytest_chaos._KAFKATRIAL = (sys.executable, "child.py")
"""


def prepare(pytester, codes):
    pytester.makeconftest(CONFTEST)
    pytester.makefile(".py", child=CHILD)
    pytester.makepyfile(test_mine="def test_mine(): pass")
    Path("script.json").write_text(json.dumps({"generated": 0, **codes}))


@pytest.fixture
def run(pytester):
    def run(codes, *words):
        prepare(pytester, codes)
        return pytester.runpytest_subprocess("-p", "no:cacheprovider", *words, timeout=60)

    return run


def commands():
    log = Path("child.log")
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


def test_nothing_runs_without_the_marker(run):
    run({"one": 0}).assert_outcomes(passed=1)
    assert commands() == []


def test_an_item_for_each_finding_and_target_and_generated_rounds(run):
    result = run(
        {"one": 0, "two": 0}, "-m", "chaos", "--target", "reference", "--target", "apache-kafka", "--seed", "7"
    )
    result.assert_outcomes(passed=6, deselected=1)
    result.stdout.fnmatch_lines(["*collected 7 items / 1 deselected / 6 selected*"])
    for target in ("reference", "apache-kafka"):
        assert ["chaos", "--target", target, "--show", "two"] in commands()
        assert any(words[:5] == ["chaos", "--target", target, "--seed", "7"] for words in commands())
    result.stdout.fnmatch_lines(["*kafkatrial seed 7*"])


@pytest.mark.parametrize(
    ("code", "outcome"), [(0, "passed"), (1, "failed"), (5, "skipped"), (6, "failed"), (3, "failed"), (2, "failed")]
)
def test_the_exit_code_of_the_command_decides_the_outcome(run, code, outcome):
    result = run({"one": code}, "-m", "chaos", "-k", "one", "-ra")
    result.assert_outcomes(**{outcome: 1, "deselected": 2})
    if outcome != "passed":
        result.stdout.fnmatch_lines(["*THE LAST LINE*"])


def test_the_saved_traceback_of_a_command_is_shown(run):
    run({"wrecked": 3}, "-m", "chaos", "-k", "wrecked").stdout.fnmatch_lines(["*ZeroDivisionError: oops*"])


def test_a_killed_pytest_leaves_no_child(pytester):
    prepare(pytester, {"sleeper": 0})
    words = ("-p", "no:cacheprovider", "-m", "chaos", "-k", "sleeper")
    killed = pytester.popen([sys.executable, "-m", "pytest", *words], stdin=subprocess.DEVNULL)
    pid_file = Path("child.pid")
    deadline_s = time.monotonic() + TIMEOUT_S
    while not (pid_file.exists() and pid_file.read_text()):
        assert time.monotonic() < deadline_s
        time.sleep(0.05)
    child = psutil.Process(int(pid_file.read_text()))
    killed.kill()
    killed.communicate()
    child.wait(TIMEOUT_S)


def test_workers_of_xdist_share_the_items_and_one_seed(run):
    result = run({"one": 0, "two": 1}, "-m", "chaos", "-n", "2", "--target", "reference", "--target", "apache-kafka")
    result.assert_outcomes(passed=4, failed=2)
    generated = [words[words.index("--seed") + 1] for words in commands() if "--seed" in words]
    assert len(generated) == 2
    assert len(set(generated)) == 1
    assert result.stdout.str().count(f"kafkatrial seed {generated[0]}") == 1
