"""Steps of `make trial` and `make test` on machines with and without Java and Go."""

import importlib.util
import json
import sys
from pathlib import Path

import pytest

from fixtures.targets.java import Java
from fixtures.targets.target import NotInstalledError, TargetError

SPEC = importlib.util.spec_from_file_location("make", Path(__file__).parents[2] / "make.py")
make = importlib.util.module_from_spec(SPEC)
sys.modules["make"] = make  # because `dataclass` looks up the module of its class
SPEC.loader.exec_module(make)


@pytest.fixture
def machine(monkeypatch, tmp_path):
    """Return a function that replaces the tools of this machine, and returns the list of executed commands.

    The tools in `missing` are not found. The command or installation `failing` fails, a command with `exit_code`.
    """

    def build(*, missing=(), failing=None, ci=False, exit_code=7):
        commands = []

        def find_java():
            if "java" in missing:
                raise NotInstalledError("Apache Kafka needs Java")
            return Java("/usr/bin/java", "17.0.1")

        def install(name, progress):
            if name in missing:
                raise NotInstalledError(f"{name} needs Go")
            if name == failing:
                raise TargetError(f"{name}: a download failed")
            return Path("/cache") / name

        def call(words, stdout=None, stderr=None):
            command = " ".join([Path(words[0]).name, *words[1:]])
            commands.append(command)
            if stdout is not None:
                stdout.write(f"the output of {command}\n")
            return exit_code if command == failing else 0

        monkeypatch.setattr(make, "FAILED", tmp_path / "lastfailed")
        monkeypatch.setattr(make, "find_java", find_java)
        monkeypatch.setattr(make, "install", install)
        monkeypatch.setattr(make.subprocess, "call", call)
        monkeypatch.setattr(make.shutil, "which", lambda command: None if command in missing else f"/usr/bin/{command}")
        monkeypatch.setenv("CI", "true" if ci else "")
        return commands

    return build


def run(monkeypatch, *words):
    monkeypatch.setattr(sys, "argv", ["make.py", *words])
    return make.main()


TESTS = " ".join(["pytest", make.CACHE, make.SAMPLE, *make.IN_PARALLEL, make.SLOWEST, "-m not nightly"])
LINT = ["ruff check .", "ruff format --check .", "mypy", "lint-imports", "python -m tools.language"]
SPARK = "kafkatrial targets install spark"
KFAKE = "go build -C docs/examples/kfake ."
REFERENCE = [
    f"pytest -m conformance {make.SUITE_TIMEOUT} --target=reference",
    "pytest -m chaos -k power-cut --target=reference",
]
WITH_KAFKA = [f"{command} --target=apache-kafka:4.3.1" for command in REFERENCE]


def test_all_steps_run_if_all_tools_exist(machine, monkeypatch, capsys):
    commands = machine(ci=True)
    assert run(monkeypatch, "test") == 0
    assert sorted(commands[:7]) == sorted([*LINT, KFAKE, SPARK])
    assert [command for command in commands if command in LINT] == LINT
    assert sorted(commands[7:]) == sorted([TESTS, *WITH_KAFKA])
    installed = capsys.readouterr().out
    assert all(name in installed for name in ("apache-kafka:4.3.1", "apache-kafka:3.9.2", "toxiproxy"))


@pytest.mark.parametrize(
    ("missing", "last"),
    [
        (["java"], [KFAKE, f"{TESTS} and not java and not spark", *REFERENCE]),
        (["go"], [SPARK, TESTS, *WITH_KAFKA]),
        (["toxiproxy"], [KFAKE, SPARK, f"{TESTS} and not toxiproxy", *WITH_KAFKA]),
        (["java", "toxiproxy"], [KFAKE, f"{TESTS} and not java and not spark and not toxiproxy", *REFERENCE]),
    ],
)
def test_steps_of_missing_tools_are_left_out_with_a_line_each(machine, monkeypatch, capsys, missing, last):
    commands = machine(missing=missing)
    assert run(monkeypatch, "test") == 0
    assert sorted(commands) == sorted([*LINT, *last])
    assert capsys.readouterr().out.count("make: skipped: ") == len(missing)


@pytest.mark.parametrize("missing", ["go", "java", "toxiproxy"])
def test_a_missing_tool_in_ci_is_a_failure(machine, monkeypatch, capsys, missing):
    commands = machine(missing=[missing], ci=True)
    assert run(monkeypatch, "test") == 4
    assert set(commands) <= {*LINT, KFAKE, SPARK}
    assert "make: failed: " in capsys.readouterr().out


def test_no_linter_and_no_test_runs_after_a_failure(machine, monkeypatch):
    commands = machine(failing="mypy")
    assert run(monkeypatch, "test") == 7
    assert [command for command in commands if command != KFAKE] == LINT[: LINT.index("mypy") + 1]


@pytest.mark.parametrize("failing", [TESTS, *WITH_KAFKA])
def test_a_step_that_fails_beside_another_fails_the_run_and_hides_no_output(machine, monkeypatch, capsys, failing):
    commands = machine(failing=failing)
    assert run(monkeypatch, "test") == 7
    assert TESTS in commands
    printed = capsys.readouterr().out
    assert f"make: failed with 7: {failing.split()[0]}\n" in printed
    if failing != TESTS:  # after a failure of the tests, no further step starts
        assert f"the output of {WITH_KAFKA[0]}\n" in printed
        assert (WITH_KAFKA[1] in commands) == (failing == WITH_KAFKA[1])


REPEATED = f"pytest {make.CACHE} --last-failed -m not nightly"


@pytest.mark.parametrize(
    ("failed", "exit_code", "is_repeated"),
    [
        (["a"], 1, True),
        (["a", "b", "c"], 1, True),
        (["a", "b", "c", "d"], 1, False),
        ([], 1, False),
        (["a"], 2, False),
        (["a"], -9, False),
    ],
)
def test_up_to_three_failed_tests_are_repeated_alone(machine, monkeypatch, capsys, failed, exit_code, is_repeated):
    machine()
    call = make.subprocess.call

    def call_and_fail(words, stdout=None, stderr=None):
        if "--numprocesses" not in " ".join(words[1:]):
            return call(words, stdout, stderr)
        make.FAILED.write_text(json.dumps(dict.fromkeys(failed, True)))
        return exit_code

    monkeypatch.setattr(make.subprocess, "call", call_and_fail)
    code = run(monkeypatch, "test")
    printed = capsys.readouterr().out
    assert (code == 0) == is_repeated
    assert (f"make: flaky, passed when repeated: {', '.join(failed)}\n" in printed) == is_repeated
    assert (make.CACHE + " --last-failed" in printed) == is_repeated


def test_a_test_that_fails_again_fails_the_run(machine, monkeypatch, capsys):
    machine(failing=REPEATED, exit_code=1)
    call = make.subprocess.call

    def call_and_fail(words, stdout=None, stderr=None):
        if make.SLOWEST not in words:  # any other command, some of which run while `make` reads the file
            return call(words, stdout, stderr)
        make.FAILED.write_text(json.dumps({"a": True}))
        return make.TESTS_FAILED

    monkeypatch.setattr(make.subprocess, "call", call_and_fail)
    assert run(monkeypatch, "test") == 1
    assert "flaky" not in capsys.readouterr().out


def test_a_failed_build_of_the_example_is_an_internal_error(machine, monkeypatch):
    commands = machine(failing=KFAKE)
    assert run(monkeypatch, "test") == 3
    assert sorted(commands) == sorted([*LINT, SPARK, KFAKE])


def test_a_failed_download_is_an_internal_error(machine, monkeypatch):
    machine(failing="apache-kafka:4.3.1")
    assert run(monkeypatch, "test") == 3


def test_trial_runs_the_reference_broker(machine, monkeypatch):
    commands = machine(missing=["java", "toxiproxy"])
    assert run(monkeypatch, "trial") == 0
    assert commands == ["kafkatrial run --target=reference"]


def test_trial_also_runs_apache_kafka(machine, monkeypatch):
    commands = machine()
    assert run(monkeypatch, "trial", "--kafka", "3.9.2") == 0
    assert commands == ["kafkatrial run --target=reference --target=apache-kafka:3.9.2"]


def test_trial_of_apache_kafka_without_java_is_rejected(machine, monkeypatch, capsys):
    commands = machine(missing=["java"])
    assert run(monkeypatch, "trial", "--kafka", "4.3.1") == 4
    assert commands == []
    assert "make: failed: Apache Kafka needs Java" in capsys.readouterr().out
