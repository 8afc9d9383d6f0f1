"""Matrix of several runs: merging, the page, Markdown and badges."""

import json
import re
from dataclasses import replace

import pytest

from linearizability.finding import Standing
from linearizability.judgement import Verdict
from reports.matrix import merge
from reports.matrix_markdown import badges, code, render_markdown
from reports.matrix_page import render_matrix
from reports.results import RequirementInfo, TargetInfo
from tests.reports.conftest import found
from tests.reports.page import Page

DENSE = "produce/offsets-are-dense"
MINE = TargetInfo("mine", 3, {"broker": "1.0"})
HOSTILE = "<script>alert(1)</script>\x1b[31m</pre>|`\n## no"


def run(results, day, *findings, targets=(MINE,), **fields):
    """Return the results of a run on a day of November 2026, with the requirements of the sample results."""
    return replace(results, started_at=f"2026-11-{day:02}T10:00:00+00:00", targets=targets, outcomes=findings, **fields)


def findings_on_dense(*pairs):
    """Return findings on `DENSE`, one for each pair: its verdict, and whether a violation is expected."""
    return [
        found(DENSE, "mine", verdict, f"reason {number}", expected_violation=is_expected)
        for number, (verdict, is_expected) in enumerate(pairs)
    ]


@pytest.mark.parametrize(
    ("findings", "worst"),
    [
        ([(Verdict.OK, False), (Verdict.VIOLATION, False), (Verdict.UNKNOWN, False)], Standing.VIOLATION),
        ([(Verdict.VIOLATION, True), (Verdict.VIOLATION, False)], Standing.VIOLATION),
        ([(Verdict.VIOLATION, True), (Verdict.OK, True)], Standing.EXPECTED),
        ([(Verdict.OK, False), (Verdict.UNKNOWN, False)], Standing.UNKNOWN),
        ([(Verdict.UNKNOWN, True), (Verdict.OK, False)], Standing.UNKNOWN),
        ([(Verdict.UNKNOWN, True), (Verdict.VIOLATION, True)], Standing.EXPECTED),
        ([(Verdict.OK, False), (Verdict.OK, True)], Standing.FIXED),
        ([(Verdict.NOT_APPLICABLE, False), (Verdict.OK, False)], Standing.OK),
        ([(Verdict.NOT_APPLICABLE, False)], Standing.NOT_APPLICABLE),
    ],
)
@pytest.mark.parametrize("order", [1, -1])
def test_the_worst_finding_of_a_targets_runs_decides(results, findings, worst, order):
    runs = [run(results, day, finding) for day, finding in enumerate(findings_on_dense(*findings)[::order], start=1)]
    matrix = merge(runs)
    assert [column.name for column in matrix.columns] == ["mine"]
    assert matrix.cell(DENSE, 0).standing is worst
    assert matrix.counts(0, "MUST")[worst] == 1


def test_a_requirement_that_an_expected_violation_blocks_is_unknown(results):
    reason = "blocked by produce/first"
    blocked = found(DENSE, "mine", Verdict.UNKNOWN, reason, expected_violation=True)
    assert blocked.standing is Standing.EXPECTED
    matrix = merge([run(results, 1, blocked)])
    assert re.search(rf'<td class="cell unknown" title="{reason}">', render_matrix(matrix, ""))
    markdown = render_markdown(matrix, "")
    assert f"| `{DENSE}` | ? |" in markdown.splitlines()
    assert f"- unknown: `{reason}`: `{DENSE}`" in markdown.splitlines()
    assert "expected violation" not in markdown
    assert ", one target, one run on" in markdown


def test_the_latest_finding_decides_if_requested(results):
    old, new = findings_on_dense((Verdict.VIOLATION, False), (Verdict.OK, False))
    runs = [run(results, 2, new), run(results, 1, old)]
    assert merge(runs).cell(DENSE, 0) == old
    assert merge(runs, latest=True).cell(DENSE, 0) == new
    unfinished = run(results, 3)
    assert merge([*runs, unfinished], latest=True).cell(DENSE, 0) == new


def test_of_equally_bad_findings_the_latest_is_shown(results):
    first, second = findings_on_dense((Verdict.VIOLATION, False), (Verdict.VIOLATION, False))
    assert merge([run(results, 1, first), run(results, 2, second)]).cell(DENSE, 0) == second


def test_versions_of_a_broker_are_columns_and_other_versions_are_not(results):
    def with_versions(day, **versions):
        # The day also serves as the number of nodes.
        return run(results, day, targets=(TargetInfo("mine", day, versions),))

    same = [with_versions(1, broker="1.0", java="17"), with_versions(3, broker="1.0", java="21")]
    matrix = merge([*same, with_versions(2, broker="2.0")])
    assert [(column.name, column.version, len(column.runs)) for column in matrix.columns] == [
        ("mine", "1.0", 2),
        ("mine", "2.0", 1),
    ]
    assert matrix.columns[0].nodes == (1, 3)
    assert matrix.columns[0].dates == "2026-11-01 to 2026-11-03"
    assert set(badges(matrix)) == {"badge-mine-1.0.json", "badge-mine-2.0.json"}


def test_requirements_are_those_of_all_runs_by_level_and_area(results):
    more = (RequirementInfo("quorum/new", "MUST"), RequirementInfo("produce/new", "MUST"))
    matrix = merge([results, run(results, 1, requirements=more)])
    assert matrix.levels == ("MUST", "SHOULD", "MAY")
    areas = [(level, area, len(requirements)) for level, area, requirements in matrix.areas()]
    assert areas == [
        ("MUST", "produce", 3),
        ("MUST", "fetch", 2),
        ("MUST", "quorum", 1),
        ("SHOULD", "produce", 1),
        ("MAY", "metadata", 1),
    ]
    assert matrix.cell("quorum/new", 0) is None


def test_page_is_well_formed_and_every_link_has_a_target(results):
    page = Page(render_matrix(merge([results]), "kafkatrial matrix RUN"))
    assert page.open == []
    assert len(set(page.ids)) == len(page.ids)
    assert {href.removeprefix("#") for href in page.hrefs} <= set(page.ids)
    assert page.fetched == []


def test_page_has_every_standing_and_the_script_of_a_violation(results):
    text = Page(render_matrix(merge([results]), "kafkatrial matrix RUN")).text
    for shown in (
        *("violation", "expected", "unexpectedly ok", "unknown", "n/a", "not run", "flaky"),
        *("offsets 40 to 51 of orders-0 are gone", "SHOULD", "2026-01-02", "broker 4.3.1", "kafkatrial matrix RUN"),
        *("Produce", "--seed 42 produce/acks-all-survives"),
    ):
        assert shown in text


def test_reason_of_a_cell_is_its_title(results):
    html = render_matrix(merge([results]), "")
    assert re.search(r'<td class="cell not-applicable" title="needs replication">', html)


def test_findings_of_all_runs_are_listed_with_the_worst(results):
    bad, good = findings_on_dense((Verdict.VIOLATION, False), (Verdict.OK, False))
    text = Page(render_matrix(merge([run(results, 1, bad), run(results, 2, good, seed=8)]), "")).text
    assert "ok on 2026-11-02 (seed 8); violation on 2026-11-01 (seed 42)" in text


def test_ids_that_differ_only_in_punctuation_have_their_own_sections(results):
    names = ("a/b-c", "a-b/c")
    findings = [found(name, "mine", Verdict.VIOLATION, "wrong") for name in names]
    infos = tuple(RequirementInfo(name, "MUST") for name in names)
    page = Page(render_matrix(merge([run(results, 1, *findings, requirements=infos)]), ""))
    assert len(set(page.ids)) == len(page.ids)
    assert sum(name.startswith("finding-") for name in page.ids) == 2


@pytest.mark.parametrize("latest", [False, True])
def test_hostile_text_is_escaped(results, latest):
    targets = (TargetInfo(HOSTILE, 1, {"broker": HOSTILE}),)
    infos = tuple(replace(info, id=f"{info.id}{HOSTILE}", text=HOSTILE) for info in results.requirements)
    outcomes = tuple(
        replace(each, requirement=f"{each.requirement}{HOSTILE}", target=HOSTILE, reason=HOSTILE, actual=HOSTILE)
        for each in results.outcomes
        if each.target == "reference"
    )
    hostile = run(results, 1, *outcomes, targets=targets, requirements=infos, kafkatrial=HOSTILE)
    matrix = merge([hostile], latest=latest)
    html = render_matrix(matrix, HOSTILE)
    assert "<script>alert" not in html
    assert "\x1b" not in html
    assert Page(html).open == []
    markdown = render_markdown(matrix, HOSTILE)
    assert "\x1b" not in markdown
    assert "<script>" not in re.sub(r"(`+)[^`].*?(?<!`)\1(?!`)", "", markdown, flags=re.DOTALL)
    assert not re.search("^## no", markdown, re.MULTILINE)
    # Hostile text adds no cell: a requirement has a row of two cells, and a target a row of nine.
    rows = [line for line in markdown.splitlines() if line.startswith("| ``")]
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows if "MUST" not in row} <= {3, 10}
    assert [name for name in badges(matrix) if re.search(r"[^\w.-]", name)] == []


@pytest.mark.parametrize(
    ("text", "span"),
    [("plain", "`plain`"), ("a`b``c", "``` a`b``c ```"), ("two\nlines", "`two lines`"), ("", "")],
)
def test_any_text_is_one_code_span(text, span):
    assert code(text) == span


def test_markdown_has_legend_counts_and_reasons(results):
    markdown = render_markdown(merge([results]), "kafkatrial matrix RUN --out docs")
    for line in (
        "6 requirements, 2 targets, one run on `2026-01-02`.",
        "kafkatrial matrix RUN --out docs",
        "| `produce/acks-all-survives` | **✗** | ok |",
        "| `fetch/isr-heals` | n/a | ok |",
        "| `metadata/last` | · | · |",
        "- **✗**: violation",
        "- ✗ violation: `produce/acks-all-survives` (MUST): `12 acknowledged records were lost`",
        "- not applicable: `needs replication`: `fetch/isr-heals`",
        "- unknown: `nothing was read`: `fetch/size-limits-are-soft`",
    ):
        assert line in markdown.splitlines()
    assert markdown.index("## MUST") < markdown.index("## SHOULD") < markdown.index("## MAY")


def test_unfinished_run_is_named(results):
    markdown = render_markdown(merge([replace(results, complete=False)]), "")
    assert "The run of `reference` on `2026-01-02` is `unfinished: 10 of 12 requirements judged`." in markdown


def test_same_runs_give_the_same_files(results):
    first, second = (merge([run(results, 1), results]) for _ in range(2))
    assert render_matrix(first, "") == render_matrix(second, "")
    assert render_markdown(first, "") == render_markdown(second, "")


@pytest.mark.parametrize(
    ("verdict", "is_expected", "colour", "message"),
    [
        (Verdict.OK, False, "brightgreen", "1 of 1 MUST"),
        (Verdict.VIOLATION, False, "red", "0 of 1 MUST"),
        (Verdict.VIOLATION, True, "red", "0 of 1 MUST"),
        (Verdict.UNKNOWN, False, "yellow", "0 of 1 MUST"),
        (Verdict.UNKNOWN, True, "yellow", "0 of 1 MUST"),
        (Verdict.NOT_APPLICABLE, False, "yellow", "0 of 0 MUST"),
    ],
)
def test_badge_counts_must_requirements(results, verdict, is_expected, colour, message):
    only = (RequirementInfo(DENSE, "MUST"), RequirementInfo("produce/may", "MAY"))
    findings = (*findings_on_dense((verdict, is_expected)), found("produce/may", "mine", Verdict.VIOLATION))
    ((name, content),) = badges(merge([run(results, 1, *findings, requirements=only)])).items()
    assert name == "badge-mine-1.0.json"
    badge = json.loads(content)
    assert badge == {"schemaVersion": 1, "label": "kafkatrial", "message": message, "color": colour}
