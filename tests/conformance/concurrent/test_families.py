"""Families of requirements: the requirements of a family share one history for each run and target.

If the requirement that recorded this history is checked again in the run, a new history is recorded. A history that
decides nothing is recorded once more.
"""

import pytest
from hypothesis import strategies as st

from conformance.check_context import CheckContext
from conformance.concurrent import check as check_module
from conformance.concurrent.check import Family, HistoryVerdict, concurrent_check
from conformance.engine import seed_of
from conformance.trial.trial import Trial
from linearizability.judgement import Judgement, Verdict
from tests.conformance.fakes import FakeTarget

TRIAL = Trial()


class FakeHistoryRun:
    """Fake of `HistoryRun` that only records the directories of its runs."""

    def __init__(self):
        self.run_dirs = []

    def __call__(self, target, run_dir, seed):
        self.run_dirs.append(run_dir)
        return self

    def __enter__(self):
        return self

    def __exit__(self, *exc_info):
        pass

    def run(self, script):
        return f"topic-{len(self.run_dirs)}"


@pytest.fixture
def runs(monkeypatch):
    fake = FakeHistoryRun()
    monkeypatch.setattr(check_module, "HistoryRun", fake)
    return fake


def context(requirement_id, run_dir, target):
    return CheckContext(
        requirement_id=requirement_id,
        targets=[target],
        seed=seed_of(1, "family"),
        scripts_max=15,
        shrink_seconds=0,
        history_dirs={target.name: run_dir / "histories" / target.name / requirement_id},
        script_ran=lambda target, done, planned: None,
    )


@pytest.fixture
def family():
    return Family("family", lambda target: st.just(TRIAL))


def test_the_second_requirement_uses_the_history_of_the_first(runs, family, tmp_path):
    target = FakeTarget()
    first = family.record(context("one", tmp_path, target), target)
    second = family.record(context("two", tmp_path, target), target)
    assert first is second
    assert runs.run_dirs == [first.run_dir]
    assert list(first.scripts.values()) == [TRIAL]


def test_another_run_or_target_has_another_history(runs, family, tmp_path):
    one, other = FakeTarget("one:1"), FakeTarget("other:1")
    dirs = [
        family.record(context("one", tmp_path / run, target), target).run_dir
        for run in ("first", "second")
        for target in (one, other)
    ]
    assert runs.run_dirs == dirs
    assert len(set(dirs)) == 4


def test_a_requirement_that_is_checked_again_records_another_history(runs, family, tmp_path):
    target = FakeTarget()
    for _ in range(2):
        family.record(context("one", tmp_path, target), target)
    assert len(runs.run_dirs) == 2


UNDECIDED = HistoryVerdict(Judgement(0, 0, (), ("nothing was read",)))
DECIDED = HistoryVerdict(Judgement(1, 1, (), ()))


@pytest.mark.parametrize(
    ("results", "verdict"),
    [((DECIDED,), Verdict.OK), ((UNDECIDED, DECIDED), Verdict.OK), ((UNDECIDED, UNDECIDED), Verdict.UNKNOWN)],
)
def test_a_history_that_decides_nothing_is_recorded_once_more(runs, family, tmp_path, monkeypatch, results, verdict):
    left = [*results]
    monkeypatch.setattr(check_module, "judge_with_history_checks", lambda *_: left.pop(0))
    target = FakeTarget()
    found = concurrent_check(family)(context("one", tmp_path, target))
    assert found[target.name].verdict is verdict
    assert len(set(runs.run_dirs)) == len(results)
    following = family.record(context("two", tmp_path, target), target)
    assert following.run_dir == runs.run_dirs[-1]


def test_a_family_records_at_most_once_more_in_a_run(runs, family, tmp_path, monkeypatch):
    monkeypatch.setattr(check_module, "judge_with_history_checks", lambda *_: UNDECIDED)
    target = FakeTarget()
    for requirement_id in ("one", "two", "three"):
        concurrent_check(family)(context(requirement_id, tmp_path, target))
    assert len(runs.run_dirs) == 2
