"""`--targets FILE`: every command accepts the target that a table `[targets.NAME]` of the file defines."""

import json
import re
from pathlib import Path

import pytest

from conformance.engine import reproduce_command
from conformance.trial.document import document
from conformance.trial.trial import ClusterSettings, Topic, Trial
from fixtures.clients.steps import Producer, SendBatches
from fixtures.targets.recipe_file import VARIABLE
from kafkatrial.__main__ import exit_code
from kafkatrial.exit_codes import ExitCode

pytest_plugins = ["pytester"]

KFAKE = Path(__file__).parents[2] / "docs/examples/kfake/kfake"
needs_kfake = pytest.mark.skipif(not KFAKE.is_file(), reason="kfake is not built: go build -C docs/examples/kfake")


@pytest.fixture(autouse=True)
def _in_an_empty_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(VARIABLE, "")  # so that its value is restored after `--targets` has set it


@pytest.fixture
def kfake():
    return str(KFAKE.with_name("kafkatrial.toml"))


COMMANDS = {
    "run": ["run", "--target", "x"],
    "chaos": ["chaos", "--target", "x"],
    "replay": ["replay", "trial.json", "--target", "x"],
    "broker": ["broker", "--target", "x"],
    "doctor": ["doctor"],
    "targets": ["targets"],
}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_an_invalid_file_is_reported_in_one_line_with_exit_code_4(command, capsys):
    Path("brokers.toml").write_text("[targets.x]\nstrat = 'x'\n")
    assert exit_code([*command, "--targets", "brokers.toml"]) == ExitCode.USAGE
    error = capsys.readouterr().err
    assert re.fullmatch(
        r"kafkatrial: .*/brokers.toml, \[targets.x\], strat: unknown key; did you mean start\?\n", error
    )


@pytest.mark.parametrize("command", [COMMANDS[name] for name in ("run", "chaos", "broker")])
def test_a_command_that_does_not_exist_is_reported_in_one_line_with_exit_code_4(command, capsys):
    Path("kafkatrial.toml").write_text("[targets.x]\nstart = 'no-such-broker'\nnodes = 3\n")
    assert exit_code(command) == ExitCode.USAGE
    line = "kafkatrial: kafkatrial.toml, [targets.x], start: the command no-such-broker is not on PATH\n"
    assert capsys.readouterr().err == line


@pytest.mark.parametrize("settings", ["", " {properties}"])
def test_a_node_that_ends_is_reported_in_one_line_with_exit_code_3(settings, capsys):
    Path("kafkatrial.toml").write_text(f"[targets.x]\nstart = \"sh -c 'echo no room; exit 1'{settings}\"\n")
    assert exit_code(["broker", "--target", "x", "--data", "data"]) == ExitCode.INTERNAL
    error = capsys.readouterr().err
    assert error.startswith("kafkatrial: x did not start: node 1 ended by itself: no room (log: ")
    assert error.endswith("; see kafkatrial.toml, [targets.x], start\n")


def test_targets_and_doctor_list_the_target(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    Path("brokers.toml").write_text("[targets.x]\nstart = 'true'\nnodes = [3, 1]\n[targets.y]\nstart = 'no-broker'\n")
    assert exit_code(["targets", "--targets", "brokers.toml"]) == ExitCode.OK
    x, y = (line for line in capsys.readouterr().out.splitlines() if re.match(r"\s*[xy] ", line))
    assert re.search(r"the command of \[targets.x\] in brokers.toml\s+3, 1\s+yes", x)
    assert "no;" in y
    assert exit_code(["doctor", "--targets", "brokers.toml"]) == ExitCode.OK
    out = capsys.readouterr().out
    assert re.search(r"x\s+the command of \[targets.x\] in brokers.toml\s+yes", out)
    assert "[targets.y], start: the command no-broker is not on PATH" in " ".join(out.split())


def test_a_subcommand_without_targets_rejects_the_option(capsys):
    Path("brokers.toml").write_text("[targets.x]\nstart = 'true'\n")
    code = exit_code(["targets", "--targets", "brokers.toml", "probe", "localhost:1"])
    assert (code, capsys.readouterr().err) == (
        ExitCode.USAGE,
        "kafkatrial: --targets: `targets probe` reads no file of targets\n",
    )


def test_a_reproduce_command_names_the_file(monkeypatch):
    assert reproduce_command({"x": 1}, 7, "ci", "area/id") == "kafkatrial run --target x --nodes 1 --seed 7 area/id"
    monkeypatch.setenv(VARIABLE, "my brokers.toml")
    assert reproduce_command({"x": 1}, 7, "ci", "area/id").startswith("kafkatrial run --targets 'my brokers.toml' --ta")


@needs_kfake
def test_requirements_run_on_kfake(kfake, capsys):
    out = Path("out").absolute()
    command = ["run", "--targets", kfake, "--target", "kfake", "--seed", "1", "--out", str(out)]
    code = exit_code([*command, "produce/offsets-are-dense"])
    results = json.loads((out / "results.json").read_text())
    assert code == ExitCode.OK, capsys.readouterr().out
    assert results["targets"][0]["name"] == "kfake"


@needs_kfake
def test_a_saved_trial_runs_on_kfake(kfake, capsys):
    trial = Trial(
        cluster=ClusterSettings(nodes=1),
        topics=(Topic(replication_factor=1),),
        clients=(Producer(steps=(SendBatches(),)),),
    )
    Path("trial.json").write_text(document(trial, {}))
    assert exit_code(["replay", "trial.json", "--targets", kfake, "--target", "kfake", "--json"]) == ExitCode.OK
    result = json.loads(capsys.readouterr().out)
    assert (result["target"], result["verdict"]) == ("kfake", "ok")


@needs_kfake
def test_the_fixture_of_pytest_starts_kfake(kfake, pytester, monkeypatch):
    pytester.makepyfile(
        """
        def test_kill(kafka_cluster):
            kafka_cluster.kill(1)
            kafka_cluster.restart(1)
            assert [node.state for node in kafka_cluster.nodes] == ["running"]
        """
    )
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", "--targets", kfake, "--target", "kfake")
    result.assert_outcomes(passed=1)
