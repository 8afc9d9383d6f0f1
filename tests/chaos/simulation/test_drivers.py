"""Producers and consumers of a simulation: they write the same history rows as the clients of librdkafka."""

import pytest

import chaos.targets  # noqa: F401 - registers the target
from chaos.simulation.history import HistoryInMemory
from fixtures.clients.payload import to_record
from fixtures.clients.record_batch import Compression
from fixtures.clients.recorded import RecordedClient
from fixtures.clients.topic_ids import topic_id_text
from fixtures.targets.catalogue import parse_target
from fixtures.targets.controls import Lost
from fixtures.targets.replica_logs import read_replica
from linearizability.history.recorder import Recorder

TOPIC = "t"


class DriverSession:
    """A topic of a simulated cluster, and the history of its operations."""

    def __init__(self, target):
        self.target = target
        self.writer = HistoryInMemory("drivers")
        self.recorder = Recorder(self.writer, target.transport.monotonic_ns)
        self.topic_ids = {}
        self.leader = self.make_topic()

    def make_topic(self):
        with RecordedClient(self.target, self.recorder, 1, topic_ids=self.topic_ids) as recorded:
            recorded.create_topic(TOPIC, partitions=2, replication_factor=3)
            self.target.transport.sleep(1)
            return recorded.metadata([TOPIC]).response.topics[0].partitions[0].leader_id

    def producer(self, *, delivery_timeout_ms=20_000, **properties):
        return self.target.drivers.producer(
            self.recorder,
            2,
            topic_ids=self.topic_ids,
            idempotent=True,
            acks=-1,
            delivery_timeout_ms=delivery_timeout_ms,
            properties={name.replace("_", "."): value for name, value in properties.items()},
        )

    def consumer(self, offsets):
        consumer = self.target.drivers.consumer(self.recorder, 3, topic_ids=self.topic_ids)
        consumer.assign(offsets)
        return consumer

    def batches(self):
        """Return the first and last offset of each batch in partition 0."""
        log = read_replica("leader", self.target.log_directories(self.leader)[0] / f"{TOPIC}-0")
        return [(batch.base_offset, batch.last_offset) for batch in log.batches]

    def history(self):
        return self.writer.take(complete=True)


@pytest.fixture
def session():
    with parse_target("simulation") as target:
        yield DriverSession(target)


def send(producer, *values):
    for value in values:
        producer.send(TOPIC, 0, to_record(value))


def produces(history):
    return [row for row in history.table("operations").to_pylist() if row["f"] == "produce"]


def test_each_record_is_an_operation_with_an_offset(session):
    producer = session.producer()
    send(producer, 11, 12, 13)
    producer.close()
    history = session.history()
    sends = [row for row in history.table("records").to_pylist() if row["direction"] == "send"]
    assert [(row["value"], row["offset"]) for row in sends] == [(11, 0), (12, 1), (13, 2)]
    rows = [(row["outcome"], row["topic_id"], row["attempts"], row["node"]) for row in produces(history)]
    assert rows == [("ok", topic_id_text(session.topic_ids[TOPIC]), None, None)] * 3


def test_batches_are_filled_and_linger_as_configured(session):
    producer = session.producer(linger_ms=50, batch_num_messages=2, compression_type=Compression.GZIP.name.lower())
    send(producer, 1, 2, 3)
    producer.poll(0.02)
    send(producer, 4, 5)
    producer.poll(0.06)
    send(producer, 6)
    assert producer.flush(5) == 0
    assert session.batches() == [(0, 1), (2, 3), (4, 4), (5, 5)]


def test_a_record_without_a_response_in_time_is_unknown(session):
    producer = session.producer(delivery_timeout_ms=2_000)
    send(producer, 1)
    assert producer.flush(1) == 0
    with session.target.links.cut("client", session.leader):
        send(producer, 2)
        producer.poll(0.5)
        assert producer.flush(0.5) == 1
        producer.close()
    assert [(row["outcome"], row["error"]) for row in produces(session.history())] == [
        ("ok", None),
        ("info", "REQUEST_TIMED_OUT"),
    ]


def test_a_retry_after_a_lost_response_writes_no_duplicate(session):
    producer = session.producer()
    send(producer, 1)
    assert producer.flush(1) == 0
    with session.target.links.cut("client", session.leader, lost=Lost.ANSWERS):
        send(producer, 2)
        producer.poll(1)
        assert session.batches() == [(0, 0), (1, 1)]
        assert producer.flush(1) == 1
    assert producer.flush(10) == 0
    assert session.batches() == [(0, 0), (1, 1)]
    assert [row["outcome"] for row in produces(session.history())] == ["ok", "ok"]


def test_a_poll_returns_at_most_the_given_number(session):
    producer = session.producer()
    send(producer, *range(1, 6))
    producer.close()
    consumer = session.consumer({(TOPIC, 0): 1, (TOPIC, 1): 0})
    polled = [consumer.poll(3) for _ in range(4)]
    assert [[read.value for read in reads] for reads in polled] == [[2, 3, 4], [], [5], []]
    assert (consumer.position(TOPIC, 0), consumer.position(TOPIC, 1)) == (5, 0)


def test_a_failed_poll_lasts_for_its_timeout(session):
    consumer = session.consumer({(TOPIC, 0): 0})
    session.target.processes.kill(session.leader)
    consumer.poll(timeout_s=1)
    before = session.target.transport.monotonic()
    assert consumer.poll(timeout_s=1) == []
    assert session.target.transport.monotonic() >= before + 1
