"""results.json: written and read back; other files are rejected."""

import json
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linearizability.finding import Finding, Standing
from linearizability.judgement import Verdict
from reports.results import ResultsError, read_results, write_results

GOLDEN = Path(__file__).parent / "golden"


def test_written_results_are_read_back(results, tmp_path):
    write_results(results, tmp_path)
    assert read_results(tmp_path) == results
    assert [path.name for path in tmp_path.iterdir()] == ["results.json"]


def test_format_1_is_unchanged_to_the_byte(results, tmp_path):
    assert write_results(results, tmp_path).read_bytes() == (GOLDEN / "results.json").read_bytes()


def test_results_have_the_public_format(results, tmp_path):
    written = json.loads(write_results(results, tmp_path).read_text())
    assert written["format"] == 1
    assert set(written) == {
        "kafkatrial", "started_at", "seed", "profile", "targets", "requirements", "outcomes", "complete", "seconds",
        "exit_code", "conclusion", "format",
    }  # fmt: skip
    assert written["outcomes"][2]["judgement"]["anomalies"][0]["evidence"][0] == {
        "op_ids": [4, 17],
        "topic": "orders",
        "partition": 0,
        "offset": 40,
        "value": 1000,
        "text": "acknowledged at 40 by op 4, op 17 passed it",
    }


def test_results_of_an_earlier_version_are_read(tmp_path):
    """Commit 6e9a9b01 (2026-11-21) wrote the file. The id of its first requirement has been renamed since."""
    shutil.copy(GOLDEN / "results-written-by-6e9a9b01.json", tmp_path / "results.json")
    read = read_results(tmp_path)
    assert [(finding.requirement, finding.verdict) for finding in read.outcomes] == [
        ("produce/corrupt-batch-is-refused", Verdict.OK),
        ("ordering/idempotent-producer-keeps-send-order", Verdict.OK),
    ]
    judgement = read.outcomes[1].judgement
    assert judgement is not None
    assert (judgement.operations, len(judgement.anomalies)) == (266, 0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": 2}, "format: Input should be 1"),
        ({"seed": "many"}, "seed: Input should be a valid integer"),
        ({"outcomes": [{"verdict": "fine"}]}, "outcomes.0.verdict: Input should be 'ok'"),
        ({"outcomes": [{"verdict": "ok", "target": "t"}]}, "outcomes: Value error, a requirement, a target and"),
    ],
)
def test_other_format_is_rejected_in_one_line(results, tmp_path, change, message):
    path = write_results(results, tmp_path)
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(ResultsError) as caught:
        read_results(tmp_path)
    assert str(caught.value).startswith(f"{path}: not a results file of format 1: {message}")
    assert "\n" not in str(caught.value)


def test_damaged_and_missing_files_are_rejected(tmp_path):
    with pytest.raises(ResultsError, match="No such file"):
        read_results(tmp_path)
    (tmp_path / "results.json").write_text('{"format": 1,')
    with pytest.raises(ResultsError, match="Invalid JSON"):
        read_results(tmp_path)


VERDICTS = st.sampled_from([verdict for verdict in Verdict if verdict is not Verdict.PERMITTED])


@given(VERDICTS, st.booleans())
def test_only_ok_expected_violations_and_blocked_requirements_are_successes(verdict, is_expected):
    standing = Finding(verdict, expected_violation=is_expected).standing
    assert (standing in {Standing.OK, Standing.EXPECTED}) == (
        (verdict, is_expected) in {("ok", False), ("violation", True), ("unknown", True)}
    )
    assert (standing is Standing.UNKNOWN) == ((verdict, is_expected) == ("unknown", False))


def test_counts_are_in_the_order_of_the_enum(results):
    counts = results.counts()
    assert list(counts) == [standing for standing in Standing if standing in counts]
    assert sum(counts.values()) == len(results.outcomes)
