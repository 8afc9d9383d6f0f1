"""The page of deviations: its entries, and that it is complete."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from kafkatrial.expected import expectations_of_target
from linearizability.judgement import Verdict
from reports.results import RequirementInfo, TargetInfo, write_results
from tests.reports.conftest import found, sample_results
from tools.deviations import page

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/deviations.md").read_text()
REQUIREMENT = "produce/corrupt-batch-is-rejected"
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


def test_an_entry_has_the_script_up_to_the_step_that_shows_it(tmp_path):
    finding = replace(
        found(REQUIREMENT, "tansu", Verdict.VIOLATION),
        expected="step 2, Produce: error CORRUPT_MESSAGE",
        actual="step 2, Produce: error NONE",
        failure_dir="/elsewhere/failures/1",
    )
    results = replace(
        sample_results(),
        targets=(TargetInfo("tansu"),),
        requirements=(RequirementInfo(REQUIREMENT, "MUST"),),
        outcomes=(finding,),
    )
    write_results(results, tmp_path)
    (tmp_path / "failures/1").mkdir(parents=True)
    (tmp_path / "failures/1/steps.txt").write_text(STEPS)
    text = "\n".join(page([tmp_path], {}))
    assert "## tansu: 1 requirements" in text
    entry = (
        "1. CreateTopic()\n2. Produce(\n    acks=2,\n)\n   expected: error CORRUPT_MESSAGE\n   returned: error NONE\n"
    )
    assert f"**MUST**: a batch with a wrong checksum is appended.\n\n```\n{entry}```" in text


@pytest.mark.parametrize("target", ["kfake", "tansu", "librdkafka-mock"])
def test_the_page_has_known_violations_with_their_reasons(target, monkeypatch):
    """A known violation may be missing: in a whole run, another one may block it."""
    monkeypatch.setenv("KAFKATRIAL_TARGETS", str(ROOT / "docs/examples/kfake/kafkatrial.toml"))
    section = re.split(r"^## ", PAGE, flags=re.MULTILINE)
    [of_target] = [each for each in section if each.startswith(f"{target}: ")]
    listed = dict(re.findall(r"^### `(.+)`\n\n\*\*\w+\*\*: (.+)\.$", of_target, flags=re.MULTILINE))
    known = {name: each.reason for name, each in expectations_of_target(target).items()}
    assert listed.items() <= known.items()
    assert len(listed) > 0.9 * len(known)
