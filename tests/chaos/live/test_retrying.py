"""Retrying raw producer: when it bumps its epoch, and which batches it then sends again."""

import itertools
from types import SimpleNamespace

import pytest

from chaos.live.retrying import RetryingProducer
from conformance.trial.workloads import Retrying
from fixtures.clients.call_results import InitializedProducer, Produced
from fixtures.clients.payload import from_record, to_record
from fixtures.clients.record_batch import decode_batches
from fixtures.clients.responses import ProducerIdentity
from linearizability.operation import Outcome

NONE, NOT_ENOUGH_REPLICAS = None, "NOT_ENOUGH_REPLICAS"
OUT_OF_ORDER, DUPLICATE, LOST = "OUT_OF_ORDER_SEQUENCE_NUMBER", "DUPLICATE_SEQUENCE_NUMBER", "NETWORK_EXCEPTION"


class Leader:
    """Client of a leader that returns the given errors, one for each batch in order."""

    def __init__(self, errors):
        self.sent, self.errors, self.requests = [], errors, self

    def init_producer_id(self):
        return InitializedProducer(Outcome.OK, None, identity=ProducerIdentity(7, 0))

    def send_batch(self, topic, partition, data, **_):
        (batch,) = decode_batches(data)
        first = from_record(batch.records[0]).value
        return batch.producer_epoch, batch.base_sequence, first // len(batch.records)

    def pipeline(self, exchanges):
        self.sent += exchanges
        return (Produced(Outcome.INFO, error, base_offset=0) for error in self.errors)


@pytest.fixture
def producer():
    """Return an object with `connect` and `acknowledged`.

    `connect` sends batches to a leader that returns the given errors. It returns each batch as (producer epoch, base
    sequence, number of the batch). `acknowledged` has the op_ids of the completed operations.
    """
    recorder = SimpleNamespace(
        client=lambda *_: None,
        invoke=lambda *_, **__: next(numbers),
        complete=lambda op_id, *_, **__: done.append(op_id),
    )
    numbers, values, done = itertools.count(), itertools.count(), []
    context = SimpleNamespace(
        processes=itertools.count(),
        records=lambda count: [to_record(next(values)) for _ in range(count)],
        recorder=recorder,
        topic="a",
        topic_ids={},
        raw_client=lambda **_: None,
    )
    producer = RetryingProducer(Retrying(), context, 0)

    def connect(*errors):
        leader = Leader(errors)
        producer._produce(leader)
        return leader.sent

    return SimpleNamespace(connect=connect, acknowledged=done)


IN_ORDER = [(0, 0, 0), (0, 3, 1), (0, 6, 2), (0, 9, 3), (0, 12, 4)]


def test_only_batches_that_a_restarted_leader_has_lost_are_sent_in_the_next_epoch(producer):
    assert producer.connect(LOST) == IN_ORDER
    assert producer.connect(OUT_OF_ORDER, OUT_OF_ORDER, NONE, DUPLICATE, NONE) == IN_ORDER
    assert producer.acknowledged == [2, 3, 4]
    assert producer.connect(LOST) == [(1, 0, 0), (1, 3, 1), (1, 6, 5), (1, 9, 6), (1, 12, 7)]


@pytest.mark.parametrize("last", [LOST, NOT_ENOUGH_REPLICAS])
def test_epoch_is_not_bumped_while_the_leader_may_have_appended_a_batch_that_is_not_acknowledged(producer, last):
    producer.connect(OUT_OF_ORDER, NONE, last)
    assert producer.acknowledged == [1]
    assert producer.connect(LOST) == [(0, 0, 0), (0, 6, 2), (0, 9, 3), (0, 12, 4), (0, 15, 5)]
