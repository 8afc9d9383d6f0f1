"""junit.xml: suites, cases and results for CI servers."""

from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linearizability.printable import printable
from reports.junit import write_junit


@pytest.fixture
def suites(results, tmp_path):
    return {suite.get("name"): suite for suite in ET.parse(write_junit(results, tmp_path)).getroot()}


def case(suite, name):
    return next(found for found in suite.iter("testcase") if found.get("name") == name)


def facts(element):
    return [(fact.get("name"), fact.get("value")) for fact in element.find("properties")]


def test_suite_of_each_target_has_its_counts(suites):
    assert list(suites) == ["kafkatrial.reference", "kafkatrial.apache-kafka:4.3.1"]
    counts = [[suite.get(n) for n in ("tests", "failures", "errors", "skipped")] for suite in suites.values()]
    assert counts == [["5", "1", "1", "1"], ["5", "2", "0", "0"]]
    assert ("seed", "42") in facts(suites["kafkatrial.reference"])
    assert ("version.broker", "4.3.1") in facts(suites["kafkatrial.apache-kafka:4.3.1"])


def test_violation_is_a_failure_with_the_whole_finding(suites):
    found = case(suites["kafkatrial.reference"], "produce/acks-all-survives")
    failure = found.find("failure")
    assert failure.get("message") == "12 acknowledged records were lost"
    assert "Reproduce: kafkatrial run --target reference" in failure.text
    assert found.get("classname") == "reference.produce"
    assert facts(found)[:3] == [("seed", "42"), ("target", "reference"), ("level", "MUST")]
    assert ("source", "Kafka protocol guide, Error Codes") in facts(found)


@pytest.mark.parametrize(
    ("target", "requirement", "element"),
    [
        ("reference", "produce/offsets-are-dense", None),
        ("reference", "produce/invalid-records-are-named", None),
        ("reference", "fetch/size-limits-are-soft", "error"),
        ("reference", "fetch/isr-heals", "skipped"),
        ("apache-kafka:4.3.1", "produce/offsets-are-dense", "failure"),
        ("apache-kafka:4.3.1", "produce/invalid-records-are-named", "failure"),
    ],
)
def test_each_result_has_its_element(suites, target, requirement, element):
    found = case(suites[f"kafkatrial.{target}"], requirement)
    assert [child.tag for child in found if child.tag != "properties"] == ([element] if element else [])


def test_notes_on_expected_and_flaky_violations(suites):
    assert ("expected-violation", "not implemented yet") in facts(
        case(suites["kafkatrial.reference"], "produce/invalid-records-are-named")
    )
    flaky = case(suites["kafkatrial.apache-kafka:4.3.1"], "produce/invalid-records-are-named")
    assert ("flaky", "true") in facts(flaky)


def test_any_text_of_a_broker_gives_valid_xml(results, tmp_path):
    hostile = "".join(map(chr, [*range(32), 0x7F, 0x85, 0xFFFE, *b']]><&"']))
    outcomes = tuple(replace(o, reason=hostile, actual=hostile, program=hostile) for o in results.outcomes)
    ET.parse(write_junit(replace(results, outcomes=outcomes), tmp_path))


@given(st.text())
def test_printable_text_has_no_control_characters(text):
    shown = printable(text)
    assert all(c in "\n\t" or c.isprintable() or ord(c) >= 0xA0 for c in shown)
    assert printable(shown) == shown
