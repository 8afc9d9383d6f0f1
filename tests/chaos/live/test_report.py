"""Violations that the report of a round finds outside of its history: residue of faults, and failed recovery."""

from types import SimpleNamespace

import pytest

from chaos.campaign.violation import Violation
from chaos.live.failure import summary_of
from chaos.live.report import Report, RoundFacts
from chaos.live.run import unhealed
from conformance.trial.trial import Trial
from linearizability.judgement import Judgement

CONTROLS = ("links", "requests", "disks", "clocks", "limits")


@pytest.mark.parametrize("broken", CONTROLS)
def test_the_residue_of_every_kind_of_fault_is_reported(broken):
    controls = {name: SimpleNamespace(residue=()) for name in CONTROLS}
    controls[broken].residue = ("node 1: something",)
    assert unhealed(SimpleNamespace(**controls)) == ("node 1: something",)


def report(schedule=(), coverage=(), **facts):
    return Report(
        trial=Trial(schedule=schedule),
        target="reference",
        judgement=Judgement(0, 0, ()),
        facts=RoundFacts(bound_s=66.0, **facts),
        coverage=dict.fromkeys(coverage, 1),
    )


@pytest.mark.parametrize(
    ("facts", "text"),
    [
        ({"recovery_s": None}, "some partitions have no leader or no full ISR 66 s after the last heal"),
        (
            {"unwritten": (0, 2)},
            "no record was acknowledged within 66 s after the last heal by partition 0, partition 2",
        ),
    ],
)
def test_a_cluster_without_a_full_isr_or_without_acknowledgements_has_not_recovered(facts, text):
    assert report(**facts).violations == (Violation("not-recovered", text),)
    assert report().violations == ()


@pytest.mark.parametrize(
    ("acknowledged", "text"), [(1, "1 record acknowledged, "), (1204, "1,204 records acknowledged, ")]
)
def test_summary_counts_records(monkeypatch, acknowledged, text):
    monkeypatch.setattr(Report, "acknowledged", acknowledged)
    assert summary_of(report())[-1].startswith(text)
