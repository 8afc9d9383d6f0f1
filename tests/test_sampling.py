"""Samples that rotate: every item has its turn, and a rotation can be repeated."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.sampling import VARIABLE, part, rotation


@given(st.integers(1, 300), st.integers(1, 50), st.integers(0, 100_000))
def test_as_many_rotations_as_there_are_parts_select_every_item_once(length, count, first):
    whole = range(length)
    parts = -(-length // count)
    selected = [item for number in range(first, first + parts) for item in part(whole, count, number)]
    assert sorted(selected) == list(whole)


def test_a_rotation_is_repeated_by_the_variable(monkeypatch):
    monkeypatch.setenv(VARIABLE, "3")
    assert rotation() == 3
    assert list(part(range(100), 10)) == list(range(30, 40))


def test_the_rotation_stays_the_same_for_the_whole_run(monkeypatch):
    monkeypatch.delenv(VARIABLE)
    today = rotation()
    monkeypatch.setattr("tests.sampling.time.time", lambda: 0.0)
    assert rotation() == today


def test_a_rotation_that_is_no_number_is_an_error(monkeypatch):
    monkeypatch.setenv(VARIABLE, "monday")
    with pytest.raises(ValueError, match="monday"):
        rotation()
