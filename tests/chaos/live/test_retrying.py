"""The retrying raw producer: conditions of an epoch bump, and the batches that it then sends again."""

import itertools
from types import SimpleNamespace

import pytest

from chaos.live.records import Records
from chaos.live.retrying import RetryingProducer
from chaos.trial import Retrying
from fixtures.clients.raw import RawClientError
from fixtures.clients.responses import ProducerIdentity

NONE, NOT_ENOUGH_REPLICAS, FORGOTTEN, DUPLICATE = 0, 19, 45, 46
LOST = None


class Leader:
    """A connection to a leader, which returns the given error codes, one for each batch in order."""

    def __init__(self, sent, codes):
        self.sent, self.codes, self.client = sent, iter(codes), self

    def init_producer_id(self):
        return None, ProducerIdentity(7, 0)

    def close(self):
        """Do nothing."""

    def receive(self, correlation_id, timeout_s):
        code = next(self.codes)
        if code is LOST:
            raise RawClientError("the connection is closed")
        partition = SimpleNamespace(error_code=code, base_offset=0)
        return SimpleNamespace(responses=(SimpleNamespace(partition_responses=(partition,)),))


@pytest.fixture
def producer(monkeypatch):
    """Return a function that runs connections and returns the batches of each: epoch, first sequence, number."""
    recorder = SimpleNamespace(
        client=lambda *_: None,
        invoke=lambda *_, **__: next(numbers),
        complete=lambda op_id, *_, **__: done.append(op_id),
    )
    numbers, done = itertools.count(), []
    target = SimpleNamespace(transport=SimpleNamespace(time=lambda: 0.0))
    context = SimpleNamespace(
        processes=itertools.count(), values=itertools.count(), recorder=recorder, target=target, topic="a", topic_ids={}
    )
    made = RetryingProducer(Retrying(), context, 0, Records(context, True))

    def send(client, batch):
        client.sent.append((made._identity.producer_epoch, batch.sequence, batch.op_id))

    monkeypatch.setattr(RetryingProducer, "_send", lambda _, client, batch: send(client, batch))

    def connect(*codes):
        leader = Leader([], codes)
        made._produce(leader)
        return leader.sent

    return SimpleNamespace(connect=connect, acknowledged=done)


IN_ORDER = [(0, 0, 0), (0, 3, 1), (0, 6, 2), (0, 9, 3), (0, 12, 4)]


def test_only_batches_that_a_restarted_leader_has_lost_are_sent_in_the_next_epoch(producer):
    assert producer.connect(LOST) == IN_ORDER
    assert producer.connect(FORGOTTEN, FORGOTTEN, NONE, DUPLICATE, NONE) == IN_ORDER
    assert producer.acknowledged == [2, 3, 4]
    assert producer.connect(LOST) == [(1, 0, 0), (1, 3, 1), (1, 6, 5), (1, 9, 6), (1, 12, 7)]


@pytest.mark.parametrize("last", [LOST, NOT_ENOUGH_REPLICAS])
def test_epoch_is_not_bumped_while_the_leader_may_have_appended_a_batch_that_is_not_acknowledged(producer, last):
    producer.connect(FORGOTTEN, NONE, last)
    assert producer.acknowledged == [1]
    assert producer.connect(LOST) == [(0, 0, 0), (0, 6, 2), (0, 9, 3), (0, 12, 4), (0, 15, 5)]
