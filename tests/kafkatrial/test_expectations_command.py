"""`kafkatrial expectations update`: one file for each target of a run, which later runs read by default."""

from dataclasses import replace

import pytest

from conformance.expectations import load_expectations
from fixtures.targets.catalogue import parse_target
from kafkatrial.__main__ import exit_code
from kafkatrial.exit_codes import ExitCode
from kafkatrial.running import _expectations
from linearizability.judgement import Verdict
from reports.results import RequirementInfo, TargetInfo, write_results
from tests.reports.conftest import found, sample_results

CORRUPT = "produce/corrupt-batch-is-rejected"
DENSE = "produce/offsets-are-dense"
RECIPE = '[targets.mybroker]\nstart = "/bin/true {listeners}"\n'


@pytest.fixture
def directory(tmp_path, monkeypatch):
    """Change to a directory with a run `run`, in which `mybroker` violates a requirement; return the directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KAFKATRIAL_TARGETS", "")  # so that its value is restored after `--targets` has set it
    save(tmp_path / "run", found(CORRUPT, "mybroker", Verdict.VIOLATION, "step 3: accepted"))
    return tmp_path


def save(path, *findings, targets=("mybroker",)):
    path.mkdir(exist_ok=True)
    requirements = tuple(RequirementInfo(name, "MUST") for name in (CORRUPT, DENSE))
    infos = tuple(TargetInfo(name) for name in targets)
    write_results(replace(sample_results(), requirements=requirements, targets=infos, outcomes=findings), path)


def test_new_violations_are_written_and_printed(directory, capsys):
    assert exit_code(["expectations", "update", "run", "--file", "known.toml"]) is ExitCode.OK
    assert load_expectations(directory / "known.toml")[CORRUPT].reason == "TODO: step 3: accepted"
    assert capsys.readouterr().out.splitlines() == [
        "mybroker: known.toml",
        f"  + {CORRUPT}: TODO: step 3: accepted",
        "  0 expected violations kept, 1 added, 0 removed",
    ]


def test_an_update_without_changes_leaves_the_file_alone(directory, capsys):
    words = ["expectations", "update", "run", "--file", "known.toml"]
    exit_code(words)
    before = (directory / "known.toml").stat()
    assert exit_code(words) is ExitCode.OK
    assert (directory / "known.toml").stat().st_mtime_ns == before.st_mtime_ns
    assert "mybroker: known.toml is up to date\n  1 expected violation kept" in capsys.readouterr().out


def test_an_unexpected_pass_is_removed(directory, capsys):
    exit_code(["expectations", "update", "run", "--file", "known.toml"])
    save(directory / "run", found(CORRUPT, "mybroker", Verdict.OK, expected_violation=True))
    assert exit_code(["expectations", "update", "run", "--file", "known.toml"]) is ExitCode.OK
    assert load_expectations(directory / "known.toml") == {}
    assert f"  - {CORRUPT}: it is ok now\n" in capsys.readouterr().out


def test_a_run_reads_the_file_beside_the_recipe(directory):
    (directory / "kafkatrial.toml").write_text(RECIPE)
    assert exit_code(["expectations", "update", "run"]) is ExitCode.OK
    target = parse_target("mybroker")
    assert set(_expectations([target], None)["mybroker"]) == {CORRUPT}
    (directory / "expectations" / "mybroker.toml").unlink()
    assert _expectations([target], None) == {"mybroker": {}}


def test_the_file_beside_a_recipe_elsewhere_is_updated(directory):
    (directory / "brokers").mkdir()
    (directory / "brokers" / "mine.toml").write_text(RECIPE)
    assert exit_code(["expectations", "update", "run", "--targets", "brokers/mine.toml"]) is ExitCode.OK
    assert (directory / "brokers" / "expectations" / "mybroker.toml").is_file()


def test_each_target_has_its_own_file(directory):
    names = ("bootstrap:localhost:9092", "apache-kafka:4.3.1")
    save(directory / "run", *(found(DENSE, name, Verdict.VIOLATION, "no") for name in names), targets=names)
    assert exit_code(["expectations", "update", "run"]) is ExitCode.OK
    written = {path.name for path in (directory / "expectations").iterdir()}
    assert written == {"bootstrap-localhost-9092.toml", "apache-kafka-4.3.1.toml"}
    assert exit_code(["expectations", "update", "run", "--target", names[0], "--file", "one.toml"]) is ExitCode.OK
    assert set(load_expectations(directory / "one.toml")) == {DENSE}


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["nowhere"], "nowhere/results.json: No such file or directory"),
        (["run"], "mybroker: its recipe is not known; name the file of the recipe with --targets, or the file of exp"),
        (["run", "--target", "other"], "run: the run has no target other; it has mybroker"),
        (["run", "--file", "bad.toml"], "bad.toml is not TOML"),
        (["run", "--file", "."], ".: a directory, not a regular file"),
        (["two", "--file", "known.toml"], "two: --file is for one target; name it with --target: reference, mybroker"),
    ],
)
def test_invalid_input_is_reported_in_one_line(directory, capsys, words, line):
    (directory / "bad.toml").write_text("[[violation]\n")
    save(directory / "two", targets=("reference", "mybroker"))
    assert exit_code(["expectations", "update", *words]) is ExitCode.USAGE
    (message,) = capsys.readouterr().err.splitlines()
    assert line in message
    assert not (directory / "expectations").exists()
