"""Conditions of a finding: a run without any effect is not evidence that nothing was lost."""

from collections import Counter
from dataclasses import replace

import pytest

from chaos.live.findings import ALL, FINDINGS
from chaos.live.injector import Injected
from chaos.live.report import Report, RoundFacts
from fixtures.faults import Kill
from linearizability.judgement import Anomaly, Judgement, Verdict
from linearizability.operation import Outcome

KEEPING = [each for each in FINDINGS.values() if each.must_be_shown]
SEEN = Counter({"leader elected": 1, "partition without a leader": 1})


def report(finding, injected=None, coverage=SEEN, kept=5, lost=None):
    schedule = finding.trial.schedule
    return Report(
        trial=finding.trial,
        target="reference",
        judgement=Judgement(0, 0, ()),
        facts=RoundFacts(
            injected=tuple(Injected(timed, found=True) for timed in schedule) if injected is None else injected
        ),
        produced=Counter({(ALL, Outcome.OK): kept}),
        coverage=coverage,
        lost=Counter(lost),
    )


@pytest.mark.parametrize("keeping", KEEPING, ids=lambda each: each.name)
def test_finding_without_loss_needs_all_faults(keeping):
    schedule = keeping.trial.schedule
    assert keeping.shows(report(keeping))
    assert not keeping.shows(report(keeping, kept=0))
    assert not keeping.shows(report(keeping, injected=()))
    for broken in (Injected(schedule[0], found=False), Injected(schedule[0], found=True, rejection="it clashes")):
        others = tuple(Injected(timed, found=True) for timed in schedule[1:])
        assert not keeping.shows(report(keeping, injected=(broken, *others)))


@pytest.mark.parametrize(
    ("name", "state"),
    [
        ("acks-all-kept-at-a-leader-kill", "leader elected"),
        ("clean-election-keeps", "partition without a leader"),
    ],
)
def test_finding_needs_the_state_that_it_describes(name, state):
    others = Counter({each: count for each, count in SEEN.items() if each != state})
    assert not FINDINGS[name].shows(report(FINDINGS[name], coverage=others))


def test_a_loss_at_a_leader_kill_needs_a_kill():
    finding = FINDINGS["acks-1-lost-at-a-leader-kill"]
    others = tuple(Injected(timed, found=True) for timed in finding.trial.schedule if type(timed.fault) is not Kill)
    assert finding.shows(report(finding, lost={1: 3}))
    assert not finding.shows(report(finding, lost={1: 3}, injected=others))


@pytest.mark.parametrize(
    ("name", "verdict", "is_shown"),
    [
        ("duplicate", Verdict.PERMITTED, True),
        ("duplicate", Verdict.VIOLATION, False),
        ("lost-write", Verdict.PERMITTED, False),
    ],
)
def test_a_duplicate_after_a_restart_needs_a_kill_and_a_permitted_duplicate(name, verdict, is_shown):
    finding = FINDINGS["idempotent-duplicate-after-restart"]
    shown = replace(report(finding), judgement=Judgement(0, 0, (Anomaly(name, verdict, 3, ()),)))
    without_kill = tuple(Injected(timed, found=type(timed.fault) is not Kill) for timed in finding.trial.schedule)
    assert finding.shows(shown) == is_shown
    assert not finding.shows(replace(shown, facts=RoundFacts(injected=without_kill)))
