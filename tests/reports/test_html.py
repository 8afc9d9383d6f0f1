"""report.html: one self-contained page."""

import re
from dataclasses import replace

import pytest

from reports.html import render_html, write_html
from reports.results import Results
from tests.reports.page import Page


@pytest.fixture
def page(results):
    return Page(render_html(results))


def test_page_is_well_formed_and_every_link_has_a_target(page):
    assert page.open == []
    assert len(set(page.ids)) == len(page.ids)
    assert {href.removeprefix("#") for href in page.hrefs} <= set(page.ids)


def test_nothing_is_fetched(page, results):
    html = render_html(results)
    assert page.fetched == []
    assert not re.search(r"@import|url\(|fetch\(|XMLHttpRequest", html)


def test_every_verdict_has_a_text(page):
    for word in ("ok", "violation", "expected", "unexpectedly ok", "unknown", "n/a", "flaky", "not run"):
        assert word in page.text


def test_violation_has_its_script_evidence_and_reproduction(page):
    for text in (
        "offsets 40 to 51 of orders-0 are gone",
        "orders-0@49",
        "12 times",
        "Produce",
        "kafkatrial run --target reference --nodes 1 --seed 42 produce/acks-all-survives",
        "https://cwiki.apache.org/confluence/x/Cfa-Aw",
    ):
        assert text in page.text


def test_difference_is_shown_once(page):
    differences = page.text.partition("Differences between targets")[2]
    assert differences.count("base_offset=3") == 1


def test_hostile_text_is_escaped(results):
    hostile = "<script>alert(1)</script>\x1b[31m</pre>"
    outcomes = tuple(replace(o, reason=hostile, actual=hostile, program=hostile) for o in results.outcomes)
    html = render_html(replace(results, outcomes=outcomes))
    assert "<script>alert" not in html
    assert "\x1b" not in html
    assert Page(html).open == []


def test_run_without_a_verdict_has_a_page(results, tmp_path):
    empty = Results("0", "2026-01-02T03:04:05+00:00", 1, "ci", results.targets[:1], results.requirements)
    assert "The run has not ended." in write_html(empty, tmp_path).read_text()
