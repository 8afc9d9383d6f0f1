"""What of a round is a violation though its history is lawful: what its own process knows of it."""

from types import SimpleNamespace

import pytest

from chaos.live.report import Report, Violation, Worked
from chaos.live.round import Round
from chaos.live.run import unhealed
from linearizability.judgement import Judgement

RESIDUES = ("disk_residue",)
CONTROLS = ("links", "requests", "clocks", "limits")


@pytest.mark.parametrize("broken", [*RESIDUES, *CONTROLS])
def test_the_residue_of_every_kind_of_fault_is_reported(broken):
    still = {name: ("node 1: something",) if name == broken else () for name in (*RESIDUES, *CONTROLS)}
    target = {name: SimpleNamespace(residue=still[name]) if name in CONTROLS else still[name] for name in still}
    assert unhealed(SimpleNamespace(**target)) == ("node 1: something",)


def report(schedule=(), coverage=(), **worked):
    return Report(
        round=Round(schedule=schedule),
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
