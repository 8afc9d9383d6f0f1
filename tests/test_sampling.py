"""Samples that rotate: successive rotations select every item once, and a rotation can be repeated."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.sampling import VARIABLE, is_in_sample, part, rotation

pytest_plugins = ["pytester"]


@given(st.integers(1, 300), st.integers(1, 50), st.integers(0, 100_000))
def test_one_rotation_for_each_part_selects_every_item_once(length, count, first):
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


@pytest.mark.parametrize("parts", [1, 2, 3, 7])
def test_each_case_of_a_sampled_file_is_in_one_of_the_rotations(parts, monkeypatch):
    def selected(number):
        monkeypatch.setenv(VARIABLE, str(number))
        return [index for index in range(20) if is_in_sample("tests/test_x.py", index, parts)]

    assert sorted(index for number in range(5, 5 + parts) for index in selected(number)) == list(range(20))


def test_a_sampled_module_runs_whole_without_the_option(pytester, monkeypatch):
    monkeypatch.setenv(VARIABLE, "3")
    pytester.makeini("[pytest]\nmarkers = sampled(parts)")
    pytester.makeconftest("from tests.conftest import pytest_addoption, pytest_collection_modifyitems")
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.sampled(3)
        @pytest.mark.parametrize("number", range(9))
        def test_sampled(number): ...

        def test_always(): ...
        """
    )
    ran = pytester.runpytest_inprocess("-p", "no:kafkatrial")
    assert ran.parseoutcomes() == {"passed": 10}
    ran = pytester.runpytest_inprocess("-p", "no:kafkatrial", "--sample")
    assert ran.parseoutcomes() == {"passed": 4, "deselected": 6}
