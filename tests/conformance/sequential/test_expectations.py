"""Comparison of responses with expectations, field by field."""

import pytest

from conformance.sequential.expectation import Each, OneOf, Satisfies, mismatches
from conformance.sequential.real_values import Comparison, IdSymbol
from conformance.sequential.response import CLOSED, SILENT

EXPECTED = {"error": "NONE", "base_offset": 3}


def test_equal_fields_match_and_other_fields_are_ignored():
    assert mismatches(EXPECTED, {"error": "NONE", "base_offset": 3, "log_start_offset": 7}) == []


def test_each_differing_field_is_named():
    found = mismatches(EXPECTED, {"error": "CORRUPT_MESSAGE", "base_offset": -1})
    assert [(one.field, one.expected, one.actual) for one in found] == [
        ("error", "NONE", "CORRUPT_MESSAGE"),
        ("base_offset", "3", "-1"),
    ]


def test_only_judged_fields_count():
    assert mismatches(EXPECTED, {"error": "NONE", "base_offset": 4}, frozenset({"error"})) == []


def test_a_field_that_a_version_lacks_is_skipped():
    assert mismatches(EXPECTED, {"error": "NONE"}) == []


@pytest.mark.parametrize("response", [CLOSED, SILENT, {"malformed": "x"}])
def test_a_missing_response_is_a_mismatch(response):
    assert len(mismatches(EXPECTED, response, frozenset({"error"}))) == 1


def test_an_unexpected_response_is_a_mismatch():
    assert len(mismatches({"connection": "closed"}, {"error": "NONE"})) == 1


def test_alternatives():
    expected = {"error": OneOf(("A", "B"), "either")}
    assert mismatches(expected, {"error": "B"}) == []
    (found,) = mismatches(expected, {"error": "C"})
    assert found.expected == "'A' or 'B' (either)"


def test_predicates():
    assert mismatches({"n": Satisfies("even", lambda n: n % 2 == 0)}, {"n": 3})[0].expected == "even"


def test_the_text_of_a_mismatch_has_the_real_values_of_symbols():
    second = IdSymbol(1, ("abc", "def"))
    expected = {"cluster_id": 0, "topic_ids": (("trial", 2),), "producer": -1, "append_times": "as returned"}
    actual = {
        "cluster_id": second,
        "topic_ids": (("trial", second),),
        "producer": second,
        "append_times": Comparison("others", "Produce returned 1, Fetch 2"),
    }
    assert [(one.expected, one.actual) for one in mismatches(expected, actual)] == [
        ("0 (abc)", "1 (def)"),
        ("(('trial', 2 (an id not seen before)),)", "(('trial', 1 (def)),)"),
        ("-1", "1 (def)"),
        ("as returned", "others (Produce returned 1, Fetch 2)"),
    ]
    assert mismatches({"cluster_id": 1, "append_times": "others"}, actual) == []


def test_pipelined_responses_are_compared_one_by_one():
    expected = {"responses": Each(({"error": "NONE"}, {"error": "NONE"}))}
    assert mismatches(expected, {"responses": ({"error": "NONE"}, {"error": "NONE"})}) == []
    assert mismatches(expected, {"responses": ({"error": "NONE"}, {"error": "X"})})
    assert mismatches(expected, {"responses": ({"error": "NONE"},)})
