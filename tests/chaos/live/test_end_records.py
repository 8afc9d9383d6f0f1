"""One last record for each partition before the final reads: retried, with a timeout."""

import itertools
from types import SimpleNamespace

import pytest

from chaos.live import clients
from chaos.live.clients import write_end_records
from linearizability.operation import Outcome
from tests.chaos.live.clock import Clock


@pytest.fixture
def produced(monkeypatch):
    """Replace the client of a leader; return an object with the requests and their outcomes.

    `batches` has the (partition, number of records) of each request, and `resets` the number of closed clients. A test
    sets `outcomes`, in which None means that the partition has no leader.
    """
    sent = SimpleNamespace(batches=[], outcomes=iter(()), resets=0)

    class LeaderClient:
        def __init__(self, context, partition):
            self._partition = partition

        def client(self):
            outcome = next(sent.outcomes)
            return None if outcome is None else SimpleNamespace(produce=lambda *what, **_: self._send(outcome, *what))

        def _send(self, outcome, topic, partition, records):
            assert partition == self._partition
            sent.batches.append((partition, len(records)))
            return SimpleNamespace(outcome=outcome)

        def reset(self):
            sent.resets += 1

    monkeypatch.setattr(clients, "leader_client", LeaderClient)
    return sent


def trial_context(partitions):
    return SimpleNamespace(
        target=SimpleNamespace(transport=Clock()),
        topic="a",
        replicas=dict.fromkeys(partitions),
        records=lambda count: [None] * count,
    )


def test_a_record_is_sent_until_a_leader_acknowledges_it(produced):
    produced.outcomes = iter([None, Outcome.INFO, Outcome.FAIL, Outcome.OK, Outcome.OK])
    assert write_end_records(trial_context((0, 1)), 5.0) == ()
    assert produced.batches == [(1, 1), (0, 1), (1, 1), (0, 1)]
    assert produced.resets == 5, "no connection is left open"


def test_a_partition_without_an_acknowledgement_is_returned_after_the_timeout(produced):
    produced.outcomes = itertools.chain([Outcome.FAIL, Outcome.OK], itertools.repeat(Outcome.FAIL))
    context = trial_context((0, 1))
    assert write_end_records(context, 1.0) == (0,)
    assert 1.0 <= context.target.transport.now_s < 1.2


def test_every_partition_has_one_attempt_even_without_time(produced):
    produced.outcomes = iter([None, Outcome.OK])
    assert write_end_records(trial_context((0, 1)), 0.0) == (0,)
    assert produced.batches == [(1, 1)]
