"""The TOML file of expected violations, and the messages of its errors."""

from pathlib import Path

import pytest

from conformance.expectations import ExpectationsError, load_expectations
from conformance.expectations_update import TODO
from conformance.registry import REQUIREMENTS
from kafkatrial.expected import expectations_of_target

ROOT = Path(__file__).parents[2]
SHIPPED = sorted([*ROOT.glob("fixtures/data/expectations/*.toml"), *ROOT.glob("docs/examples/*/expectations/*.toml")])

GOOD = '[[violation]]\nrequirement = "a/b"\nreason = "r"\nlink = "l"\n'


def test_entries_by_requirement(tmp_path):
    path = tmp_path / "known.toml"
    path.write_text(GOOD)
    assert load_expectations(path)["a/b"].reason == "r"


def test_the_link_may_be_left_out(tmp_path):
    path = tmp_path / "known.toml"
    path.write_text(GOOD.replace('link = "l"\n', ""))
    assert load_expectations(path)["a/b"].link == ""


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (GOOD + GOOD, "violation 2: a/b is listed twice"),
        ("[[violation]]\nrequirement = 'a/b'\n", "violation 1: no reason; requirement and reason are required"),
        (GOOD + "extra = 1\n", "violation 1: unknown key extra; the keys are requirement, reason, link"),
        ("[[violation]]\nrequirement = 'a/b'\nreason = 7\n", "violation 1: reason must be a string"),
        ("violation = ['a/b']\n", "violation 1: not a table"),
        ("[[failure]]\n", "unknown table failure"),
        ("[violation]\n", "two brackets"),
        ("not toml", "is not TOML"),
    ],
)
def test_a_bad_file_is_rejected_in_one_line(text, complaint, tmp_path):
    path = tmp_path / "known.toml"
    path.write_text(text)
    with pytest.raises(ExpectationsError, match=complaint) as rejected:
        load_expectations(path)
    assert str(path) in str(rejected.value)
    assert "\n" not in str(rejected.value)


def test_a_missing_file_is_rejected(tmp_path):
    with pytest.raises(ExpectationsError, match="cannot read"):
        load_expectations(tmp_path / "none.toml")


@pytest.mark.parametrize("kind", ["reference", "apache-kafka", "apache-kafka:4.3.1", "no-such-kind", "no-such-kind:1"])
def test_our_own_files_expect_nothing(kind):
    assert expectations_of_target(kind) == {}


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_shipped_files_name_requirements_in_order_with_reasons(path):
    entries = load_expectations(path)
    assert entries.keys() <= {requirement.id for requirement in REQUIREMENTS}
    assert list(entries) == sorted(entries)
    assert all(entry.reason and not entry.reason.startswith(TODO) for entry in entries.values())


def test_files_of_other_brokers_are_shipped():
    assert {"kfake", "tansu", "librdkafka-mock"} <= {path.stem for path in SHIPPED}


@pytest.mark.parametrize(
    ("target", "file"),
    [
        ("tansu", "tansu"),
        ("librdkafka-mock", "librdkafka-mock"),
        ("librdkafka-mock:2.16.0", "librdkafka-mock"),
        ("apache-kafka:2.8.2", "apache-kafka-2.8.2"),
    ],
)
def test_a_run_reads_the_shipped_file_of_its_target_or_of_its_version(target, file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert expectations_of_target(target) == load_expectations(ROOT / f"fixtures/data/expectations/{file}.toml") != {}
