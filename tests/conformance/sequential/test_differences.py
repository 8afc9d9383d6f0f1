"""Differences between two targets' responses, and their severity."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.sequential.differences import COSMETIC_FIELDS, differences
from conformance.sequential.response import CLOSED, ReadRecord
from conformance.sequential.steps import Eventually, Fetch, ListOffsets, LongPoll, Metadata, On, Produce

FINE = {"error": "NONE", "base_offset": 3, "size": 70}

responses = st.fixed_dictionaries(
    {}, optional={name: st.integers(0, 1) for name in ("base_offset", "size", "offset", "high_watermark")}
)


@pytest.mark.parametrize(
    ("ours", "theirs", "severity"),
    [
        (FINE | {"base_offset": 4}, FINE, "semantic"),
        (FINE | {"error": "CORRUPT_MESSAGE"}, FINE, "error-code"),
        (FINE | {"size": 71}, FINE, "wire-cosmetic"),
        (CLOSED, FINE, "semantic"),
        ({"error": "X", "base_offset": 0}, {"error": "X", "base_offset": -1}, "wire-cosmetic"),
        ({"errors": ("X",)}, {"errors": ("Y",)}, "error-code"),
        ({"errors": ("X",), "names": ()}, {"errors": ("X",), "names": ("a",)}, "wire-cosmetic"),
        ({"errors": ("NONE", "X"), "names": ()}, {"errors": ("NONE", "X"), "names": ("a",)}, "semantic"),
        ({"errors": (), "names": ()}, {"errors": (), "names": ("a",)}, "semantic"),
        ({"records": (ReadRecord(0, b"a"),)}, {"records": (ReadRecord(0, b"b"),)}, "semantic"),
    ],
)
def test_severity(ours, theirs, severity):
    assert severity in {one.severity for one in differences("other", [Fetch()], [ours], [theirs])}


@pytest.mark.parametrize(
    ("step", "field", "severity"),
    [
        (Produce(()), "log_start_offset", "wire-cosmetic"),
        (Fetch(), "log_start_offset", "semantic"),
        (Fetch(), "size", "wire-cosmetic"),
        (On(1, Eventually(Fetch())), "size", "wire-cosmetic"),
        (LongPoll(Fetch(), ()), "size", "wire-cosmetic"),
        (Produce(()), "size", "semantic"),
        (ListOffsets(), "leader_epoch", "wire-cosmetic"),
        (Metadata(), "leader_epoch", "semantic"),
    ],
)
def test_a_field_is_cosmetic_in_the_responses_of_some_requests_only(step, field, severity):
    (found,) = differences("other", [step], [{"error": "NONE", field: 0}], [{"error": "NONE", field: 1}])
    assert found.severity == severity


def test_steps_count_from_one_and_both_sides_are_shown():
    (found,) = differences("other", [Produce(())] * 2, [FINE, FINE | {"base_offset": 4}], [FINE, FINE])
    assert (found.step, found.here, found.there) == (2, "base_offset 4", "base_offset 3")
    assert found.other_target == "other"


@given(responses)
def test_a_response_does_not_differ_from_itself(response):
    assert differences("other", [Fetch()], [response], [response]) == []


@given(responses, responses)
def test_only_shared_fields_are_compared_symmetrically(ours, theirs):
    there = differences("other", [Fetch()], [ours], [theirs])
    back = differences("other", [Fetch()], [theirs], [ours])
    assert [(one.severity, one.here, one.there) for one in there] == [
        (one.severity, one.there, one.here) for one in back
    ]
    shared = {name for name in ours.keys() & theirs.keys() if ours[name] != theirs[name]}
    assert {one.here.partition(" ")[0] for one in there} == shared


def test_every_cosmetic_field_has_a_reason():
    assert all(reason for fields in COSMETIC_FIELDS.values() for reason in fields.values())
