"""What every simulated client is made of: a process, what it knows of the cluster, and the rows that it writes."""

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from chaos.simulation.clients.process import Answer, Ask, Process, Sleep, Wait
from chaos.simulation.clients.view import NO_NODE, Place, View
from fixtures.clients import requests
from fixtures.clients.client_request import ClientRequest, cached_request
from fixtures.clients.messages import ApiKey, error_name
from fixtures.clients.responses import ISOLATION_LEVELS, READ_UNCOMMITTED, listed_columns, listed_offset, placed_columns
from fixtures.clients.topic_ids import topic_id_text
from fixtures.faults import Node
from linearizability.history.recorder import Recorder
from reference_broker.simulation.clock import WALL_START_MS

METADATA_TIMEOUT_MS = 2_000
BACKOFF_MAX_MS = 1_000
"""`retry.backoff.max.ms`."""

_INIT_PRODUCER_ID_VERSION = 4
"""The last one before transactions version 2 (KIP-890)."""

Steps = Generator[Ask | Sleep | Wait, Any, Any]

STALE_METADATA = frozenset(
    {
        "NOT_LEADER_OR_FOLLOWER",
        "LEADER_NOT_AVAILABLE",
        "UNKNOWN_TOPIC_OR_PARTITION",
        "UNKNOWN_TOPIC_ID",
        "INCONSISTENT_TOPIC_ID",
        "FENCED_LEADER_EPOCH",
        "UNKNOWN_LEADER_EPOCH",
        "KAFKA_STORAGE_ERROR",
        "REPLICA_NOT_AVAILABLE",
        "NETWORK_EXCEPTION",
        "REQUEST_TIMED_OUT",
    }
)
"""After these errors a client asks for metadata before it tries again (Java's `InvalidMetadataException`)."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What all clients of a run share.

    :ivar brokers: which any client knows of from the start.
    :ivar node: of a role by now; null where there is none.
    :ivar acknowledged: told of each batch that acks=all has acknowledged: where, its first offset, its checksum.
    :ivar committed: told of each offset that a group has committed: group, topic, partition, offset.
    :ivar wall_start_ms: wall-clock time at which the environment's clock showed 0.
    :ivar keeps_timestamps: false where a topic may have LogAppendTime.
    :ivar topic_ids: by name, of the topics that were there before any client.
    :ivar passing: names of topics that may be deleted. What is answered by such a name may be of another topic.
    """

    recorder: Recorder
    brokers: tuple[int, ...]
    node: Callable[[Node], int | None]
    acknowledged: Callable[[Place, int, int], None]
    committed: Callable[[str, str, int, int], None]
    wall_start_ms: int = WALL_START_MS
    keeps_timestamps: bool = True
    topic_ids: Mapping[str, UUID] = field(default_factory=dict)
    passing: frozenset[str] = frozenset()


def metadata_request(topics: tuple[str, ...]) -> ClientRequest:
    """Return a Metadata of some topics."""
    return cached_request(ApiKey.METADATA, requests.metadata, topics)


def init_producer_id_request() -> ClientRequest:
    """Return an InitProducerId of a producer without transactions."""
    return cached_request(ApiKey.INIT_PRODUCER_ID, requests.init_producer_id, version=_INIT_PRODUCER_ID_VERSION)


def backoff_ms(first_ms: int, attempts: int) -> int:
    """How long to wait after so many attempts: each time twice as long (KIP-580)."""
    return min(first_ms << min(max(attempts - 1, 0), 10), max(BACKOFF_MAX_MS, first_ms))


class Client:
    """Base of the simulated clients. It asks brokers by turns, beginning with one that depends on its number."""

    def __init__(self, process: Process, surroundings: Surroundings) -> None:
        self.process = process
        self.surroundings = surroundings
        self.recorder = surroundings.recorder
        self.view = View(dict(surroundings.topic_ids))
        self._turn = process.number % len(surroundings.brokers)

    @property
    def now_ms(self) -> int:
        """Return the environment's time."""
        return self.process.scheduler.now_ms

    @property
    def wall_ms(self) -> int:
        """Return the wall-clock time, for timestamps of records."""
        return self.surroundings.wall_start_ms + self.now_ms

    # Rows

    def invoke(self, f: str, place: Place | None = None, *, by_id: bool = False, **columns: Any) -> int:
        """An operation begins.

        :param by_id: it names the topic by its id.
        """
        if place is not None:
            topic_id = self.view.topic_id_text(place[0]) if by_id else self.id_of_name(place[0])
            columns |= {"topic": place[0], "topic_id": topic_id, "partition": place[1]}
        return self.recorder.invoke(self.process.number, f, **columns)

    def state(self, source: str, asked_ns: int, place: Place, node: int, error: str | None, **columns: Any) -> None:
        """What a node said of a partition, by its name unless `columns` have the topic's id."""
        self.recorder.state(
            **{
                "source": source,
                "asked_ns": asked_ns,
                "answered_ns": self.recorder.now_ns(),
                "node": node,
                "topic": place[0],
                "topic_id": self.id_of_name(place[0]),
                "partition": place[1],
                "error": error,
                **columns,
            }
        )

    def id_of_name(self, topic: str) -> str | None:
        """The id of the topic that answers by this name; null where nobody can tell."""
        return None if topic in self.surroundings.passing else self.view.topic_id_text(topic)

    # Metadata

    def next_node(self) -> int:
        """Whom to ask for what any broker knows."""
        brokers = self.surroundings.brokers
        self._turn = (self._turn + 1) % len(brokers)
        return brokers[self._turn]

    def refresh(self, topics: Sequence[str], *, node: int | None = None, tells: bool = False) -> Steps:
        """Ask for metadata once; returns the answer.

        :param tells: write down what was said of partitions.
        """
        asked_ns = self.recorder.now_ns() if tells else 0
        asked = self.next_node() if node is None else node
        answer: Answer = yield Ask(asked, metadata_request(tuple(topics)), METADATA_TIMEOUT_MS)
        if answer.response is not None:
            self.view.learn(answer.response)
            if tells:
                self._tell(answer.response, asked_ns, asked)
        return answer

    def _tell(self, response: Any, asked_ns: int, node: int) -> None:
        for of_topic in response.topics:
            for of_partition in of_topic.partitions:
                self.state(
                    "metadata",
                    asked_ns,
                    (of_topic.name, of_partition.partition_index),
                    node,
                    error_name(of_partition.error_code),
                    topic_id=topic_id_text(of_topic.topic_id),
                    **placed_columns(of_partition),
                )

    def find_leader(self, place: Place, *, deadline_ms: int, backoff_ms: int) -> Steps:
        """Ask for metadata until somebody leads; returns whether anybody does before the deadline."""
        while self.view.leader(place).node == NO_NODE:
            yield from self.refresh([place[0]])
            if self.view.leader(place).node == NO_NODE:
                if self.now_ms + backoff_ms > deadline_ms:
                    return False
                yield Sleep(backoff_ms)
        return True

    # End offsets

    def list_offsets(
        self,
        place: Place,
        node: int,
        *,
        timestamp: int,
        isolation: str = READ_UNCOMMITTED,
        timeout_ms: int,
        leader_epoch: int = -1,
    ) -> Steps:
        """One ListOffsets, with its row of `states`; returns error, offset and leader epoch, null where not told."""
        asked_ns = self.recorder.now_ns()
        request = cached_request(
            ApiKey.LIST_OFFSETS,
            requests.list_offsets,
            *place,
            timestamp,
            isolation_level=ISOLATION_LEVELS[isolation],
            leader_epoch=leader_epoch,
        )
        answer: Answer = yield Ask(node, request, timeout_ms)
        if answer.response is None:
            return answer.error, None, None
        error, offset, epoch = listed_offset(answer.response)
        columns = listed_columns(timestamp, isolation, offset, epoch)
        if columns is not None:
            self.state("list_offsets", asked_ns, place, node, error, isolation=isolation, **columns)
        return error, offset, epoch
