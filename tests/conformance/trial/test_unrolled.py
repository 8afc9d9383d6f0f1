"""Unrolled trials: workloads become clients with steps, and all other clients are kept."""

from conformance.trial.phased_clients import OneShotProducer, SendRecords
from conformance.trial.trial import Trial
from conformance.trial.unrolled import unrolled
from conformance.trial.workloads import Tail
from fixtures.clients.steps import Consumer, Poll

POLLING = Consumer((Poll(),), (("a", 0),))
PHASED = OneShotProducer(steady=(SendRecords(3),))


def test_only_workloads_are_replaced():
    trial = Trial(clients=(POLLING, Tail(), PHASED))
    first, tail, last = unrolled(trial).clients
    assert (first, last) == (POLLING, PHASED)
    assert isinstance(tail, Consumer)
    assert unrolled(unrolled(trial)) == unrolled(trial)
