"""Comparison of responses with expectations, field by field."""

import pytest

from conformance.sequential.expectation import Each, OneOf, Satisfies, mismatches
from conformance.sequential.real_values import Comparison, IdSymbol
from conformance.sequential.response import CLOSED, SILENT, ReadRecord

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


RECORDS = tuple(ReadRecord(offset, b"v%d" % offset, b"k") for offset in (0, 1, 2, 5))
PREFIXES = OneOf((RECORDS[:2], RECORDS[:3], RECORDS), "whole batches")


@pytest.mark.parametrize(
    ("expected", "actual", "wanted", "found"),
    [
        (RECORDS, (), "offsets 0 to 2, 5", "none"),
        (RECORDS, RECORDS[:3], "offsets 0 to 2, 5", "offsets 0 to 2 (offset 5 is missing)"),
        (RECORDS, RECORDS[:1] + RECORDS[2:], "offsets 0 to 2, 5", "offsets 0, 2, 5 (offset 1 is missing)"),
        ((), RECORDS[:2], "none", "offsets 0 to 1"),
        (RECORDS[:1], RECORDS[:2], "offset 0", "offsets 0 to 1 (offset 1 is not expected)"),
        (RECORDS[:2], RECORDS[:2] * 2, "offsets 0 to 1", "offsets 0 to 1, 0 to 1 (offset 0 follows offset 1)"),
        (RECORDS[:2], RECORDS[1::-1], "offsets 0 to 1", "offsets 1, 0 (offset 0 is missing)"),
        (
            RECORDS[:2],
            (RECORDS[0], ReadRecord(1, None, b"k", 7)),
            "value b'v1', timestamp_ms 0 at offset 1",
            "value None, timestamp_ms 7 at offset 1",
        ),
        (PREFIXES, (), "offsets 0 to 1, or up to offset 5 (whole batches)", "none"),
        (
            PREFIXES,
            RECORDS[:1],
            "offsets 0 to 1, or up to offset 5 (whole batches)",
            "offset 0 (offset 1 is missing)",
        ),
        (
            PREFIXES,
            (*RECORDS[:2], ReadRecord(2, b"x", b"k")),
            "value b'v2' at offset 2 (whole batches)",
            "value b'x' at offset 2",
        ),
    ],
)
def test_records_are_compared_in_words(expected, actual, wanted, found):
    (mismatch,) = mismatches({"records": expected}, {"records": actual})
    assert (mismatch.expected, mismatch.actual) == (wanted, found)


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
