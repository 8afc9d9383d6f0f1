"""Findings in other brokers: the entries of the page, and that it is complete."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from conformance.expectations import ExpectedViolation
from conformance.sequential.steps import ApiKey, CreateTopic, RawRequest, Script
from fixtures.targets.catalogue import parse_target
from kafkatrial.expected import expectations_of_target
from linearizability.judgement import Verdict
from reports.results import RequirementInfo, TargetInfo, write_results
from tests.reports.conftest import found, sample_results
from tools.findings import MARKER, ShownScript, causes, differing, page, scripts_of

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/findings.md").read_text().partition(MARKER)[2]
REASON = "a batch with a wrong checksum is appended"
FIRST, SECOND, COSMETIC = "produce/first", "produce/second", "produce/cosmetic"
KNOWN = {
    FIRST: ExpectedViolation(FIRST, REASON, ""),
    SECOND: ExpectedViolation(SECOND, REASON, ""),
    COSMETIC: ExpectedViolation(COSMETIC, "a wrong offset", ""),
}
STEPS = """1. CreateTopic()
   error NONE
2. Produce(
    acks=2,
)
   error NONE
   ! error: expected CORRUPT_MESSAGE, was NONE
3. Fetch()
   error NONE
"""
PROGRAM = "from conformance.sequential.steps import *\nSCRIPT = Script((CreateTopic(),))\n"


def violation(requirement, failure, step=2):
    return replace(
        found(requirement, "tansu", Verdict.VIOLATION, f"{requirement} was seen (expected: it)"),
        expected=f"step {step}, Produce: error CORRUPT_MESSAGE" if step else "",
        actual=f"step {step}, Produce: error NONE" if step else "",
        failure_dir=f"/elsewhere/failures/{failure}",
    )


@pytest.fixture
def run(tmp_path):
    outcomes = (violation(COSMETIC, 4), violation(FIRST, 1, step=None), violation(SECOND, 2), violation("a/new", 3))
    levels = {FIRST: "MUST", SECOND: "MUST", COSMETIC: "SHOULD", "a/new": "MUST"}
    results = replace(
        sample_results(),
        targets=(TargetInfo("tansu", 3),),
        requirements=tuple(RequirementInfo(name, level) for name, level in levels.items()),
        outcomes=outcomes,
    )
    write_results(results, tmp_path)
    for failure in (2, 4):
        directory = tmp_path / f"failures/{failure}"
        directory.mkdir(parents=True)
        (directory / "steps.txt").write_text(STEPS)
        (directory / "repro.py").write_text(PROGRAM)
    return tmp_path


def test_requirements_with_one_cause_are_one_entry_and_must_is_first(run):
    entries = causes([run], KNOWN, "tansu")
    assert [each.level for each in entries] == ["MUST", "SHOULD"]
    assert [each.finding.requirement for each in entries[0].violations] == [FIRST, SECOND]
    assert causes([run], KNOWN, "another") == []


def test_an_entry_has_the_script_up_to_the_step_that_shows_it(run):
    text = "\n".join(page({"tansu": causes([run], KNOWN, "tansu")}, "apache-kafka:4.3.1", 20, "2026-11-24"))
    script = (
        "1. CreateTopic()\n2. Produce(\n    acks=2,\n)\n   expected: error CORRUPT_MESSAGE\n   returned: error NONE\n"
    )
    head = "### 1. a batch with a wrong checksum is appended\n\n"
    assert f"{head}**MUST** `{SECOND}`. The cause also violates `{FIRST}`.\n\n```\n{script}```" in text
    assert "### 2. a wrong offset\n\n**SHOULD**" in text
    assert "| [tansu](#tansu) | 0.6.0 | 1 | 1 | 3 |" in text


def test_a_target_with_a_version_has_the_anchor_of_its_heading(run):
    entries = causes([run], KNOWN, "tansu")
    text = "\n".join(page({"apache-kafka:2.8.2": entries}, "apache-kafka:4.3.1", 20, "2026-11-24"))
    assert "| [apache-kafka:2.8.2](#apache-kafka282) | 2.8.2 | 1 | 1 | 3 |" in text
    assert "\n## apache-kafka:2.8.2\n" in text


def test_a_violation_without_a_script_shows_its_reason(run):
    only = {FIRST: KNOWN[FIRST]}
    text = "\n".join(page({"tansu": causes([run], only, "tansu")}, "apache-kafka:4.3.1", 20, "2026-11-24"))
    assert f"> {FIRST} was seen\n" in text


def test_scripts_are_those_of_the_shown_findings(run):
    assert scripts_of(causes([run], KNOWN, "tansu")) == {
        str(run / f"failures/{failure}/repro.py"): ShownScript(Script((CreateTopic(),)), 2, "error", 3)
        for failure in (2, 4)
    }


def test_a_script_in_which_the_confirming_target_differs_too_is_named():
    fields = {"transactional_id": None, "producer_id": 7, "producer_epoch": -1}
    scripts = {
        name: ShownScript(Script((RawRequest(ApiKey.INIT_PRODUCER_ID, fields, (error,), version=4),)), 1, field, 1)
        for name, error, field in (
            ("same", "INVALID_REQUEST", "errors"),
            ("other", "NONE", "errors"),
            ("other field", "NONE", "names"),
        )
    }
    with parse_target("reference", 1) as target:
        assert [line.partition(":")[0] for line in differing(target, scripts)] == ["other"]


@pytest.mark.parametrize("target", ["kfake", "tansu", "librdkafka-mock", "apache-kafka:2.8.2", "apache-kafka:3.7.2"])
def test_the_page_has_known_violations_with_their_reasons(target, monkeypatch):
    """A known violation may be missing: in a whole run, another one may block it."""
    monkeypatch.setenv("KAFKATRIAL_TARGETS", str(ROOT / "docs/examples/kfake/kafkatrial.toml"))
    [of_target] = [each for each in re.split(r"^## ", PAGE, flags=re.MULTILINE) if each.startswith(f"{target}\n")]
    entries = re.findall(r"^### \d+\. (.+)\n\n\*\*\w+\*\* (.+)$", of_target, flags=re.MULTILINE)
    listed = {name: reason for reason, names in entries for name in re.findall(r"`([^`]+)`", names)}
    known = {name: each.reason for name, each in expectations_of_target(target).items()}
    assert listed.items() <= known.items()
    assert len(listed) > 0.9 * len(known)


def test_entries_are_numbered():
    numbers = [int(number) for number in re.findall(r"^### (\d+)\. ", PAGE, flags=re.MULTILINE)]
    assert numbers == list(range(1, len(numbers) + 1))
    assert len(numbers) >= 40
