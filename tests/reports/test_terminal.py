"""Terminal output: compared with golden files, and safe for hostile text.

The environment variable UPDATE_GOLDEN=1 rewrites the golden files; read their diff before you commit them.
"""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from linearizability.judgement import Anomaly, Evidence, Judgement, Verdict
from reports.terminal import as_text, place, render_finding, render_judgement, render_results

GOLDEN = Path(__file__).parent / "golden"


def check(name, text):
    path = GOLDEN / name
    if os.environ.get("UPDATE_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text + "\n")
    assert text + "\n" == path.read_text()


def test_results(results):
    check("results.txt", as_text(render_results(results, Path("RUN")), width=120))


def test_judgement():
    evidence = Evidence((1, 2), "orders", 0, 7, None, "gone")
    judgement = Judgement(
        1234567,
        89,
        (
            Anomaly("duplicate", Verdict.PERMITTED, 3, ()),
            Anomaly("lost-write", Verdict.VIOLATION, 5000, (evidence,) * 10),
            Anomaly("unseen", Verdict.UNKNOWN, 0, ()),
        ),
        ("the run is not complete",),
    )
    check("judgement.txt", as_text(render_judgement(judgement)))


@pytest.mark.parametrize(
    ("known", "shown"),
    [(("t", 0, 5), "t-0@5"), (("t", 0, None), "t-0"), (("t", None, None), "t"), ((None, None, None), "")],
)
def test_place(known, shown):
    assert place(*known) == shown


def test_no_text_of_a_history_breaks_the_line_of_its_cell():
    text = "a\nforged-row  violation  1\tb|c"
    anomaly = Anomaly("lost-write", Verdict.VIOLATION, 1, (Evidence((1,), text, 0, 1, 2, text),))
    shown = as_text(render_judgement(Judgement(1, 1, (anomaly,), ())), width=300).splitlines()
    [line] = [line for line in shown if "forged-row" in line]
    assert line.startswith("lost-write")
    assert line.count(text.replace("\n", "\\n").replace("\t", "\\t")) == 2


def test_reproduce_line_is_never_broken(results):
    outcome = results.outcomes[2]
    text = as_text(render_finding(outcome, results.requirement(outcome.requirement)), width=40)
    assert any(line.endswith(outcome.reproduce) for line in text.splitlines())


def test_the_file_of_the_responses_is_named_if_the_violation_has_one(results):
    outcome = results.outcomes[2]
    for steps in ("", "1. Fetch()"):
        found = replace(outcome, steps=steps)
        text = as_text(render_finding(found, results.requirement(outcome.requirement)))
        assert (f"  Responses  {outcome.failure_dir}/steps.txt" in text.splitlines()) == bool(steps)


def test_escape_sequences_of_a_broker_are_escaped(results):
    flaky = results.outcomes[5]
    assert r"\x00" in as_text(render_finding(flaky, results.requirement(flaky.requirement)))
