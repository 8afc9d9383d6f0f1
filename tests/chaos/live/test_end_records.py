"""One record more for each partition before anything is read back: it is insisted on, and not for ever."""

import itertools
from types import SimpleNamespace

import pytest

from chaos.live import clients
from chaos.live.clients import write_ends
from linearizability.operation import Outcome


class Clock:
    now_s = 0.0

    def monotonic(self):
        return self.now_s

    def sleep(self, seconds):
        self.now_s += seconds

    def time(self):
        return self.now_s


@pytest.fixture
def produced(monkeypatch):
    """What was sent, as partition and values; whether it is taken is up to `answers`."""
    sent = SimpleNamespace(batches=[], answers=iter(()), forgotten=0)

    class Leader:
        def __init__(self, surroundings, partition):
            self._partition = partition

        def client(self):
            answer = next(sent.answers)
            return None if answer is None else SimpleNamespace(produce=lambda *what, **_: self._send(answer, *what))

        def _send(self, outcome, topic, partition, records):
            assert partition == self._partition
            sent.batches.append((partition, len(records)))
            return SimpleNamespace(outcome=outcome)

        def forget(self):
            sent.forgotten += 1

    monkeypatch.setattr(clients, "LeaderConnection", Leader)
    return sent


def surroundings(partitions):
    return SimpleNamespace(
        target=SimpleNamespace(transport=Clock()),
        topic="a",
        replicas=dict.fromkeys(partitions),
        values=itertools.count(1),
    )


def test_it_is_sent_until_a_leader_has_it(produced):
    produced.answers = iter([None, Outcome.INFO, Outcome.FAIL, Outcome.OK, Outcome.OK])
    assert write_ends(surroundings((0, 1)), timestamp_kept=True, timeout_s=5.0) == ()
    assert produced.batches == [(1, 1), (0, 1), (1, 1), (0, 1)]
    assert produced.forgotten == 5, "no connection is left open"


def test_a_partition_that_takes_none_is_told_of_when_the_time_is_over(produced):
    produced.answers = itertools.chain([Outcome.FAIL, Outcome.OK], itertools.repeat(Outcome.FAIL))
    of = surroundings((0, 1))
    assert write_ends(of, timestamp_kept=True, timeout_s=1.0) == (0,)
    assert 1.0 <= of.target.transport.now_s < 1.2


def test_every_partition_is_asked_once_however_little_time_there_is(produced):
    produced.answers = iter([None, Outcome.OK])
    assert write_ends(surroundings((0, 1)), timestamp_kept=True, timeout_s=0.0) == (0,)
    assert produced.batches == [(1, 1)]
