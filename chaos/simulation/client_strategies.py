"""Hypothesis strategies for the clients of a simulated trial, by kind.

A kind is a type of producer, a type of consumer, or a type of client that sends single requests. The steps of a client
take about ten virtual seconds, so that requests are in flight when a fault begins.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, Final, TypeVar

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from chaos.simulation.choice import chosen
from chaos.simulation.shape import Shape
from conformance.trial.trial import Client
from fixtures.clients.core.descriptions import SUBJECTS
from fixtures.clients.steps import (
    AlterTopicConfig,
    ApiVersions,
    CommitOffsets,
    Consumer,
    ConsumerStep,
    CreatePartitions,
    CreateTopic,
    DeleteRecords,
    DeleteTopic,
    Describe,
    ElectPreferredLeader,
    Fetch,
    FetchOffsets,
    Flush,
    Idle,
    ListOffsets,
    MalformedRequest,
    Metadata,
    OffsetForLeaderEpoch,
    Poll,
    Produce,
    Producer,
    ProducerStep,
    RawStep,
    ReassignPartition,
    RequestClient,
    Seek,
    SendBatches,
)
from fixtures.faults import Node, Role

T = TypeVar("T")

CLIENTS_MAX: Final = 6
_STEPS_MAX: Final = 12
_EXTRA_TOPIC: Final = "c"
"""A topic that clients create and delete."""
_NO_TOPIC: Final = "nowhere"
_NO_NODE: Final = 99
"""`_NO_TOPIC` and `_NO_NODE` are a topic and a node that never exist."""


def client_lists(shape: Shape, kinds: tuple[str, ...]) -> SearchStrategy[tuple[Client, ...]]:
    """Return a strategy for lists of clients of these kinds. The first is a producer, even if `kinds` has none."""
    producers = [kind for kind in kinds if kind in _PRODUCING] or ["idempotent"]
    first = chosen(*(_clients(kind, shape) for kind in producers))
    more = chosen(*(_clients(kind, shape) for kind in kinds))
    return st.tuples(first, st.lists(more, max_size=CLIENTS_MAX - 1)).map(lambda drawn: (drawn[0], *drawn[1]))


@cache
def _clients(kind: str, shape: Shape) -> SearchStrategy[Client]:
    return CLIENT_KINDS[kind](shape)


@cache
def _pauses() -> SearchStrategy[int]:
    return st.sampled_from((100, 0, 5, 30, 300, 1_000))


@cache
def _rests() -> SearchStrategy[Idle]:
    return st.builds(Idle, st.integers(0, 3_000))


def _at(shape: Shape, make: Callable[..., T], **fields: SearchStrategy[Any]) -> SearchStrategy[T]:
    """Return a strategy for a step on one partition of the shape.

    :param make: class of the step.
    :param fields: strategies for the other fields of the step.
    """
    partitions = [(st.just(topic), st.just(partition)) for topic, partition in shape.partitions]
    return chosen(*(st.builds(make, topic=topic, partition=partition, **fields) for topic, partition in partitions))


def _steps(*steps: SearchStrategy[T]) -> SearchStrategy[tuple[T, ...]]:
    return st.lists(chosen(*steps), min_size=1, max_size=_STEPS_MAX).map(_as_tuple)


def _as_tuple(values: list[T]) -> tuple[T, ...]:
    return tuple(values)


# --- producers


def _producers(shape: Shape, *, idempotent: bool, acks: int = -1) -> SearchStrategy[Producer]:
    sends: SearchStrategy[ProducerStep] = _at(
        shape,
        SendBatches,
        batches=st.integers(1, 20),
        records=chosen(st.just(1), st.integers(1, 6)),
        pause_ms=_pauses(),
        value_bytes=st.sampled_from((0, 0, 0, 100, 1_500)),
        keys=st.sampled_from((0, 0, 0, 2)),
    )
    return st.builds(
        Producer,
        steps=_steps(sends, sends, sends, _rests(), st.just(Flush())),
        idempotent=st.just(idempotent),
        acks=st.just(acks),
        in_flight_max=st.sampled_from((5, 1, 3)),
        delivery_timeout_ms=st.sampled_from((15_000, 3_000)),
        request_timeout_ms=st.sampled_from((5_000, 500, 1_500)),
        retry_backoff_ms=st.sampled_from((100, 30)),
    )


# --- consumers


def _consumers(shape: Shape, *, group: str = "") -> SearchStrategy[Consumer]:
    polls: SearchStrategy[ConsumerStep] = st.builds(Poll, st.integers(1, 15), _pauses())
    if group:
        steps = _steps(
            polls, st.just(CommitOffsets()), polls, st.just(CommitOffsets()), st.just(FetchOffsets()), _rests()
        )
    else:
        seeks: SearchStrategy[ConsumerStep] = _at(shape, Seek, offset=_offsets())
        steps = _steps(polls, polls, polls, seeks, _rests())
    return st.builds(
        Consumer,
        steps=steps,
        partitions=chosen(
            st.just(shape.partitions), st.sampled_from(shape.partitions).map(lambda partition: (partition,))
        ),
        group=st.just(group),
        isolation=_isolations(),
        max_bytes=st.sampled_from((65_536, 1, 300)),
        max_wait_ms=st.sampled_from((100, 0, 500)),
        checks_epochs=st.sampled_from((True, True, False)),
    )


@cache
def _isolations() -> SearchStrategy[str]:
    return st.sampled_from(("read_uncommitted", "read_committed"))


@cache
def _offsets() -> SearchStrategy[int | None]:
    """Draw an offset to read from, or None for the end."""
    return chosen(st.none(), st.integers(0, 40))


# --- clients of single requests


def _raw(steps: Callable[[Shape], SearchStrategy[RawStep]], shape: Shape) -> SearchStrategy[RequestClient]:
    drawn = steps(shape)
    return st.builds(RequestClient, _steps(drawn, drawn, drawn, _rests()), st.sampled_from((2_000, 300)))


@cache
def _receiver(shape: Shape) -> SearchStrategy[Node | None]:
    """Draw the receiver of a request; None, which is drawn often, is the leader in the client's metadata."""
    return st.sampled_from((None, None, None, Role.LEADER, Role.FOLLOWER, *shape.brokers))


def _queries(shape: Shape) -> SearchStrategy[RawStep]:
    names = [name for name, _ in shape.topics]
    times = st.integers(1, 6)
    ends = _at(
        shape,
        ListOffsets,
        times=times,
        pause_ms=_pauses(),
        node=_receiver(shape),
        isolation=_isolations(),
        timestamp=st.sampled_from((-1, -1, -2, -1, -2, -3, 1_000, 4_000)),
        is_debugging=st.sampled_from((False, True)),
    )
    epochs = _at(shape, OffsetForLeaderEpoch, epochs_ago=st.integers(0, 3))
    metadata = st.builds(Metadata, times, _pauses(), st.sampled_from(names), _receiver(shape))
    return chosen(ends, epochs, ends, epochs, metadata, st.builds(ApiVersions, _receiver(shape)))


def _reads(shape: Shape) -> SearchStrategy[RawStep]:
    return _at(shape, Fetch, offset=_offsets(), node=_receiver(shape), epoch_ahead=st.sampled_from((None, 0, -1, 1)))


def _batches(shape: Shape) -> SearchStrategy[RawStep]:
    """Draw Produce requests without retries. Some send a batch several times, skip sequence numbers, or are corrupt."""
    honest = _at(
        shape,
        Produce,
        records=st.integers(1, 4),
        node=_receiver(shape),
        acks=st.sampled_from((-1, -1, 1, 0)),
        idempotent=st.booleans(),
    )
    odd = _at(
        shape,
        Produce,
        copies=st.integers(1, 3),
        idempotent=st.just(True),
        skips=st.sampled_from((0, 0, 1, 5)),
        corrupt=st.sampled_from((False, False, True)),
    )
    return chosen(honest, odd)


def _wrapping(shape: Shape) -> SearchStrategy[RequestClient]:
    """Draw clients whose sequence numbers begin just below the maximum, so that they wrap around to 0."""
    batches: SearchStrategy[RawStep] = _at(
        shape,
        Produce,
        records=st.integers(1, 4),
        copies=st.sampled_from((1, 1, 2)),
        idempotent=st.just(True),
        skips=st.sampled_from((0, 0, 0, 1)),
    )
    return st.builds(
        RequestClient,
        _steps(batches, batches, batches, _rests()),
        st.sampled_from((2_000, 300)),
        st.integers(1, 8).map(lambda missing: 2**31 - missing),
    )


def _nonsense(shape: Shape) -> SearchStrategy[RawStep]:
    versions, sizes = st.sampled_from((99, 0, 1, 7, 12)), st.sampled_from((16, 0, 4, 300))
    return st.builds(MalformedRequest, st.integers(0, 70), versions, sizes, _receiver(shape))


def _deletions(shape: Shape) -> SearchStrategy[RawStep]:
    return _at(shape, DeleteRecords, before=chosen(st.none(), st.integers(0, 30)))


def _topics(shape: Shape) -> SearchStrategy[RawStep]:
    own = [name for name, _ in shape.topics]
    names = st.sampled_from((_EXTRA_TOPIC, _EXTRA_TOPIC, own[-1]))
    creations = st.builds(CreateTopic, names, st.integers(1, 3), st.integers(1, min(3, len(shape.brokers)) + 1))
    additions = st.builds(CreatePartitions, st.integers(2, 4), st.sampled_from(own))
    return chosen(creations, st.builds(DeleteTopic, names), additions)


def _alterations(shape: Shape) -> SearchStrategy[RawStep]:
    names = [name for name, _ in shape.topics]
    settable = chosen(
        *(
            st.builds(AlterTopicConfig, st.just(name), st.just(value), st.sampled_from(names))
            for name, value in _ALTERATIONS
        )
    )
    rejected = chosen(
        *(
            st.builds(AlterTopicConfig, st.just(name), st.just(value), st.sampled_from((*names, _NO_TOPIC)))
            for name, value in _INVALID_PROPERTIES
        )
    )
    tried = st.builds(AlterTopicConfig, st.just("retention.ms"), st.just("1"), st.sampled_from(names), st.just(True))
    return chosen(settable, settable, settable, rejected, tried)


def _movements(shape: Shape) -> SearchStrategy[RawStep]:
    nodes = st.sampled_from((*shape.brokers * 3, _NO_NODE))
    replicas = st.lists(nodes, min_size=1, max_size=3, unique=True).map(_as_tuple)
    moves = _at(shape, ReassignPartition, replicas=chosen(*(replicas,) * 4, st.none()))
    return chosen(moves, _at(shape, ElectPreferredLeader))


def _descriptions(shape: Shape) -> SearchStrategy[RawStep]:
    """Draw requests that describe the cluster, and reassignments that such requests return."""
    names = [name for name, _ in shape.topics]
    described = st.builds(Describe, st.sampled_from(SUBJECTS), st.sampled_from(names))
    return chosen(described, described, described, _movements(shape))


_ALTERATIONS: Final = (
    ("min.insync.replicas", "2"),
    ("min.insync.replicas", "1"),
    ("retention.ms", "1000"),
    ("segment.ms", "300"),
    ("segment.index.bytes", "24"),
    ("flush.messages", "1"),
    ("max.message.bytes", "200"),
    ("message.timestamp.type", "LogAppendTime"),
)

_INVALID_PROPERTIES: Final = (("min.insync.replicas", "0"), ("cleanup.policy", "shred"), ("no.such.property", "1"))

CLIENT_KINDS: Final[dict[str, Callable[[Shape], SearchStrategy[Client]]]] = {
    "idempotent": cache(lambda shape: _producers(shape, idempotent=True)),
    "consumer": cache(_consumers),
    "plain": cache(lambda shape: _producers(shape, idempotent=False)),
    "acks-1": cache(lambda shape: _producers(shape, idempotent=False, acks=1)),
    "acks-0": cache(lambda shape: _producers(shape, idempotent=False, acks=0)),
    "group": cache(lambda shape: _consumers(shape, group="g")),
    "questions": cache(lambda shape: _raw(_queries, shape)),
    "reads": cache(lambda shape: _raw(_reads, shape)),
    "batches": cache(lambda shape: _raw(_batches, shape)),
    "wrapping": cache(_wrapping),
    "movements": cache(lambda shape: _raw(_movements, shape)),
    "topics": cache(lambda shape: _raw(_topics, shape)),
    "deletions": cache(lambda shape: _raw(_deletions, shape)),
    "alterations": cache(lambda shape: _raw(_alterations, shape)),
    "descriptions": cache(lambda shape: _raw(_descriptions, shape)),
    "nonsense": cache(lambda shape: _raw(_nonsense, shape)),
}
"""By kind, a function that returns the strategy for clients of that kind in a cluster of a shape."""

_PRODUCING: Final = ("idempotent", "plain", "acks-1", "acks-0")
