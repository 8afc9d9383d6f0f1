"""What of a round is a violation though its history is lawful: what its own process knows of it."""

from types import SimpleNamespace

import pytest

from chaos.live.report import Report, Violation, Worked
from chaos.live.run import unhealed
from chaos.trial import Trial
from linearizability.judgement import Judgement

RESIDUES = ("network_residue", "request_residue", "disk_residue", "clock_residue", "resource_residue")


@pytest.mark.parametrize("residue", RESIDUES)
def test_every_kind_of_fault_is_asked_whether_it_was_healed(residue):
    still = {**dict.fromkeys(RESIDUES, ()), residue: ("node 1: something",)}
    assert unhealed(SimpleNamespace(**still)) == ("node 1: something",)


def report(schedule=(), coverage=(), **worked):
    return Report(
        round=Trial(schedule=schedule),
        target="reference",
        judgement=Judgement(0, 0, ()),
        worked=Worked(bound_s=66.0, **worked),
        coverage=dict.fromkeys(coverage, 1),
    )


@pytest.mark.parametrize(
    ("worked", "text"),
    [
        ({"recovery_s": None}, "66 s after the last heal not every partition is in order"),
        ({"unwritten": (0, 2)}, "66 s after the last heal no record is taken by partition 0, partition 2"),
    ],
)
def test_a_cluster_that_is_not_in_order_or_takes_no_record_has_not_recovered(worked, text):
    assert report(**worked).violations == (Violation("not-recovered", text),)
    assert report().violations == ()
