"""Campaign: its results do not depend on the number of workers; it starts with saved trials, and shrinks failures."""

from dataclasses import replace

import pytest

from chaos.campaign import workers
from chaos.campaign.saved import load_failures, save
from chaos.simulation import campaign as campaign_module
from chaos.simulation.campaign import SEED_SECONDS_MAX, Plan, run_campaign
from chaos.simulation.campaign_events import (
    CampaignEnded,
    CampaignStarted,
    FailureReplayed,
    SeedRan,
    ShrinkingStarted,
    Shrunk,
    Standing,
)
from chaos.simulation.seeds import trial_of_seed
from chaos.simulation.work import run_seed, working
from conformance.trial.saved import SavedTrial
from conformance.trial.trial import Trial

pytestmark = pytest.mark.sampled(2)

DEFECT = "acknowledge-before-replication"
"""Detected in every trial with an acknowledgement."""
CLEAN = Plan(first=3, last=5, failures_max=None)
DEFECTIVE = Plan(first=0, last=40, defect=DEFECT)


def campaign(plan, saved=()):
    return list(run_campaign(plan, saved))


def events_of_kind(kind, events):
    return [event for event in events if isinstance(event, kind)]


@pytest.fixture(scope="module")
def defective():
    return campaign(replace(DEFECTIVE, workers=2))


def test_seeds_are_reported_in_order_for_any_number_of_workers():
    alone, together = campaign(CLEAN), campaign(replace(CLEAN, workers=3))
    assert [ran.seed for ran in events_of_kind(SeedRan, alone)] == [3, 4, 5]
    assert [replace(ran, seconds=0) for ran in events_of_kind(SeedRan, alone)] == [
        replace(ran, seconds=0) for ran in events_of_kind(SeedRan, together)
    ]
    assert isinstance(alone[0], CampaignStarted)
    assert alone[-1].complete


def test_a_campaign_ends_with_the_first_failing_seed_shrunk(defective):
    ran, (shrunk,) = events_of_kind(SeedRan, defective), events_of_kind(Shrunk, defective)
    assert [bool(each.name) for each in ran] == [False] * (len(ran) - 1) + [True]
    found = shrunk.counterexample
    assert (found.seed, found.name, found.is_confirmed) == (ran[-1].seed, ran[-1].name, True)
    assert found.trial == Trial()


def test_a_seed_whose_shrinking_takes_too_long_is_not_called_flaky(monkeypatch):
    monkeypatch.setattr(workers, "_CHECK_PERIOD_S", 0.0)  # otherwise the worker may end first
    events = campaign(replace(DEFECTIVE, shrink_seconds_max=-SEED_SECONDS_MAX))
    ran, (shrunk,) = events_of_kind(SeedRan, events), events_of_kind(Shrunk, events)
    found = shrunk.counterexample
    assert (found.seed, found.runs, found.is_confirmed) == (ran[-1].seed, 0, None)
    assert found.text == ran[-1].text


def test_one_of_several_seeds_with_the_same_violation_is_shrunk():
    events = campaign(replace(DEFECTIVE, failures_max=3, workers=2, shrink_runs_max=3))
    failing = [ran for ran in events_of_kind(SeedRan, events) if ran.name]
    assert len(failing) == 3
    assert len(events_of_kind(Shrunk, events)) == len({ran.name for ran in failing})


def test_a_saved_failure_runs_first_and_ends_the_campaign_if_it_still_fails(defective, tmp_path):
    (shrunk,) = events_of_kind(Shrunk, defective)
    save(tmp_path, shrunk.counterexample)
    events = campaign(DEFECTIVE, load_failures(tmp_path))
    assert [type(event) for event in events] == [CampaignStarted, FailureReplayed, CampaignEnded]
    assert events[1].standing is Standing.FAILS


def test_a_saved_failure_that_passes_is_fixed(tmp_path):
    file = tmp_path / "failure.json"
    saved = [SavedTrial(Trial(), "lost-write", file=file), SavedTrial(Trial(), "lost-write", DEFECT, file=file)]
    events = campaign(Plan(first=3, last=3), saved)
    (replayed,) = events_of_kind(FailureReplayed, events)
    assert replayed.standing is Standing.FIXED
    assert len(events_of_kind(SeedRan, events)) == 1


def test_no_seed_begins_when_the_time_is_over():
    events = campaign(Plan(first=0, seconds_max=0.0))
    assert [type(event) for event in events] == [CampaignStarted, CampaignEnded]


def test_ctrl_c_ends_the_campaign_with_an_incomplete_end_event():
    events = run_campaign(Plan(first=0, workers=2, failures_max=None))
    assert isinstance(next(events), CampaignStarted)
    assert isinstance(next(events), SeedRan)
    assert events.throw(KeyboardInterrupt()) == CampaignEnded(complete=False, seconds=pytest.approx(0, abs=3600))


@pytest.mark.parametrize("interrupted_at", [SeedRan, ShrinkingStarted])
def test_ctrl_c_keeps_a_failure_that_is_not_shrunk(interrupted_at):
    events = run_campaign(Plan(first=0, last=0, workers=1, defect="truncate-to-high-watermark", failures_max=None))
    assert any(isinstance(event, interrupted_at) for event in events)
    kept = events.throw(KeyboardInterrupt())
    assert isinstance(kept, Shrunk)
    assert (kept.counterexample.name, kept.counterexample.trial) == ("recovery-keeps", trial_of_seed(0))
    assert kept.counterexample.is_confirmed is None
    assert next(events) == CampaignEnded(complete=False, seconds=pytest.approx(0, abs=3600))


def test_a_failure_beyond_the_limit_of_shrinking_is_reported_unshrunk(monkeypatch):
    monkeypatch.setattr(campaign_module, "_SHRUNK_MAX", 0)
    events = campaign(Plan(first=0, last=0, defect="truncate-to-high-watermark", failures_max=None))
    (shrunk,) = events_of_kind(Shrunk, events)
    assert (shrunk.counterexample.trial, shrunk.counterexample.is_confirmed) == (trial_of_seed(0), None)
    assert events[-1].complete


def test_a_seed_runs_the_same_twice_in_one_process():
    with working(""):
        first, second = run_seed(4), run_seed(4)
    assert replace(first, seconds=0) == replace(second, seconds=0)
