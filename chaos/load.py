"""Clients that work until they are told to stop: the load under which a cluster is broken.

The clients of a concurrent script have steps and a fixed leader; a load has neither. It goes on for as long as the
faults do, and its raw clients follow the leader wherever it moves. All of them write the same history.
"""

from collections.abc import Iterator

from conformance.concurrent.actors import Actor, actor_of
from conformance.concurrent.script import Consumer, Phase, Send
from conformance.concurrent.surroundings import Surroundings
from fixtures.clients.answers import ProducerIdentity
from fixtures.clients.confluent import RecordedProducer
from fixtures.clients.outcomes import Outcome
from fixtures.clients.raw import RawClient
from fixtures.clients.recorded import RecordedRawClient
from fixtures.clients.stage import Event

IDEMPOTENT_PRODUCERS = 2
"""Of librdkafka, pipelining to all partitions in turn. Beside them work a consumer of librdkafka, and for each
partition a raw producer and a raw reader that asks the leader for records and for the end offset by turns."""
IN_FLIGHT_MAX = 1
"""Of a producer of librdkafka 2.16: with more it may send a later request first to a new leader, be answered
OUT_OF_ORDER_SEQUENCE_NUMBER, and write a record twice that a lawful cluster has."""
BURST = Send(records=10, size=100)
"""What an idempotent producer sends to a partition before it pauses."""
BATCH = Send(records=3)
"""What a raw producer sends at once."""
PAUSE_S = 0.1
"""Of each client, between two bursts, batches or questions."""
DELIVERY_TIMEOUT_MS = 60_000
"""Longer than any election: an idempotent producer that gives up has met a cluster that did not come back."""
REQUEST_TIMEOUT_S = 5.0
_AGAIN_S = 0.05
"""How long a client that found no leader waits before it asks again."""


def actors_of_load(surroundings: Surroundings) -> Iterator[Actor]:
    """The clients of the load on the topic that the surroundings name. Every writer asks for acks=all."""
    for _ in range(IDEMPOTENT_PRODUCERS):
        yield _IdempotentProducer(surroundings)
    for partition in surroundings.replicas:
        yield _RawProducer(surroundings, partition, idempotent=partition % 2 == 0)
        yield _LeaderReader(surroundings, partition)
    yield actor_of(Consumer(), surroundings)


class LeaderConnection:
    """One process of the history that talks to the leader of a partition, by one connection at a time."""

    def __init__(self, surroundings: Surroundings, partition: int) -> None:
        self._surroundings = surroundings
        self._partition = partition
        self._process = next(surroundings.processes)
        self._asked = 0
        self._client: RecordedRawClient | None = None

    def client(self) -> RecordedRawClient | None:
        """The leader's, as the metadata of one node after another has it; null where that node knows of none."""
        if self._client is None:
            nodes = self._surroundings.target.nodes
            self._asked += 1
            with self._connect(nodes[self._asked % len(nodes)].id) as guide:
                leader = self._leader_by(guide)
            if leader is not None:
                self._client = self._connect(leader)
        return self._client

    def forget(self) -> None:
        """It is not the leader, or not there: look for the leader again."""
        if self._client is not None:
            self._client.client.close()
        self._client = None

    def _leader_by(self, guide: RecordedRawClient) -> int | None:
        response = guide.metadata([self._surroundings.topic]).response
        nodes = {node.id for node in self._surroundings.target.nodes}
        for of_topic in response.topics if response is not None else ():
            for of_partition in of_topic.partitions:
                if of_partition.partition_index == self._partition and of_partition.leader_id in nodes:
                    return int(of_partition.leader_id)
        return None

    def _connect(self, node: int) -> RecordedRawClient:
        host, port = next((each.host, each.port) for each in self._surroundings.target.nodes if each.id == node)
        return RecordedRawClient(
            RawClient(host, port, timeout_s=REQUEST_TIMEOUT_S, transport=self._surroundings.target.transport),
            self._surroundings.recorder,
            self._process,
            topic_ids=self._surroundings.topic_ids,
            node=node,
        )


class _IdempotentProducer:
    is_writer = False

    def __init__(self, surroundings: Surroundings) -> None:
        self._surroundings = surroundings
        self._producer = RecordedProducer(
            surroundings.target.bootstrap_servers,
            surroundings.recorder,
            next(surroundings.processes),
            topic_ids=surroundings.topic_ids,
            delivery_timeout_ms=DELIVERY_TIMEOUT_MS,
            properties={"max.in.flight.requests.per.connection": IN_FLIGHT_MAX},
        )

    def act(self, phase: Phase, over: Event) -> None:
        while not over.is_set() and self._producer.fatal_error is None:
            for partition in self._surroundings.replicas:
                for record in self._surroundings.records(BURST):
                    self._producer.send(self._surroundings.topic, partition, record)
            self._producer.poll(PAUSE_S)

    def close(self) -> None:
        self._producer.close()


class _RawProducer:
    """Sends each batch once, and takes a new producer id where the outcome of one is not known."""

    is_writer = False

    def __init__(self, surroundings: Surroundings, partition: int, *, idempotent: bool) -> None:
        self._surroundings = surroundings
        self._partition = partition
        self._idempotent = idempotent
        self._leader = LeaderConnection(surroundings, partition)
        self._identity: ProducerIdentity | None = None
        self._sequence = -1

    def act(self, phase: Phase, over: Event) -> None:
        while not over.is_set():
            client = self._leader.client()
            over.wait(PAUSE_S if client is not None and self._send(client) else _AGAIN_S)

    def _send(self, leader: RecordedRawClient) -> bool:
        if self._idempotent and self._identity is None:
            _, self._identity = leader.init_producer_id()
            self._sequence = 0
            if self._identity is None:
                self._leader.forget()
                return False
        produced = leader.produce(
            self._surroundings.topic,
            self._partition,
            list(self._surroundings.records(BATCH)),
            timeout_ms=int(REQUEST_TIMEOUT_S * 1000),
            producer=self._identity,
            base_sequence=self._sequence,
            bracket=True,
        )
        if produced.outcome is Outcome.OK:
            self._sequence += BATCH.records if self._idempotent else 0
            return True
        self._identity = None
        self._leader.forget()
        return False

    def close(self) -> None:
        self._leader.forget()


class _LeaderReader:
    is_writer = False

    def __init__(self, surroundings: Surroundings, partition: int) -> None:
        self._topic = surroundings.topic
        self._partition = partition
        self._leader = LeaderConnection(surroundings, partition)
        self._offset = 0

    def act(self, phase: Phase, over: Event) -> None:
        while not over.is_set():
            client = self._leader.client()
            over.wait(PAUSE_S if client is not None and self._read(client) else _AGAIN_S)

    def _read(self, leader: RecordedRawClient) -> bool:
        fetched = leader.fetch(self._topic, self._partition, self._offset, max_wait_ms=50)
        self._offset = fetched.next_offset
        if fetched.error is None and leader.list_offsets(self._topic, self._partition).error is None:
            return True
        self._leader.forget()
        return False

    def close(self) -> None:
        self._leader.forget()
