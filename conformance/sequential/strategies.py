"""Hypothesis strategies for parts of scripts, which requirements combine to test their promises.

Few records, few batches and short values shrink to readable programs. Timestamps are fixed and in the past, so that a
script has the same meaning on any day.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from conformance.sequential.requests import api_key
from conformance.sequential.steps import (
    TOPIC,
    AlterReassignment,
    AwaitTopic,
    Batch,
    Compression,
    CreateTopic,
    ElectLeaders,
    Flaw,
    Produce,
    Record,
    Script,
    Step,
)
from fixtures.clients.messages import ApiKey, known_versions

Steps = SearchStrategy[tuple[Step, ...]]
ProducerMove = tuple[str, Batch]
"""The next batch of a producer: its kind (see `moves`) and its records."""

BASE_TIMESTAMP_MS: Final = 1_700_000_000_000
"""November 2023."""
LEADER_EPOCH_SINCE: Final[Mapping[ApiKey, int]] = {ApiKey.FETCH: 9, ApiKey.LIST_OFFSETS: 4}
"""First version of a request that has the leader epoch of the client (KIP-320)."""
SEVERAL_PARTITIONS: Final = 6
"""Number of partitions of a topic, so that one of three brokers leads several."""


def script(*parts: Step | SearchStrategy[Any]) -> SearchStrategy[Script]:
    """Return a strategy for scripts of these parts. A part is a step, or a strategy for a step or a tuple of steps."""
    drawn = [st.just(part) if isinstance(part, Step) else part for part in parts]
    return st.tuples(*drawn).map(lambda found: Script(tuple(step for part in found for step in _flat(part))))


def _flat(part: Step | tuple[Step, ...]) -> tuple[Step, ...]:
    return part if isinstance(part, tuple) else (part,)


def placed(*replicas: int, topic: str = TOPIC, partitions: int = 1) -> CreateTopic:
    """Return the step that creates a topic with replicas on these brokers; the first one is the leader."""
    assignments = tuple((index, replicas) for index in range(partitions))
    return CreateTopic(topic, partitions=-1, replication_factor=-1, assignments=assignments)


def led_by(*order: int, partition: int = 0) -> tuple[Step, ...]:
    """Return the steps that reorder the replicas of a partition and elect the first, which begins a new epoch."""
    return AlterReassignment(order, partition=partition), ElectLeaders(partition=partition), AwaitTopic()


def numbered(sequence: int, topic: str = TOPIC) -> Produce:
    """Return a step that produces one record of the script's first producer with this sequence number."""
    return Produce((Batch((Record(b"%d" % sequence),), producer=0, sequence=sequence),), topic=topic)


def every_version(step: Step) -> tuple[Step, ...]:
    """Return the step in each version of its API, the oldest first. A target gets the nearest one that it supports."""
    return tuple(replace(step, version=version) for version in known_versions(api_key(step)))  # type: ignore[call-arg]


def many(steps: SearchStrategy[Any], *, at_least: int = 1, at_most: int = 6) -> Steps:
    """Return a strategy for several steps, or tuples of steps, drawn from `steps` one after the other."""
    drawn = st.lists(steps, min_size=at_least, max_size=at_most)
    return drawn.map(lambda found: tuple(step for part in found for step in _flat(part)))


def timestamps_ms() -> SearchStrategy[int]:
    """Return a strategy for timestamps. It has only 21 values, so that some timestamps of a script are equal."""
    return st.integers(0, 20).map(lambda delta: BASE_TIMESTAMP_MS + delta)


def values() -> SearchStrategy[bytes]:
    """Return a strategy for values of up to 8 bytes."""
    return st.binary(max_size=8)


def headers() -> SearchStrategy[tuple[tuple[str, bytes | None], ...]]:
    """Return a strategy for up to two headers (KIP-82), whose names may be equal."""
    header = st.tuples(st.sampled_from(["trace", "source", "größe"]), st.none() | values())
    return st.lists(header, max_size=2).map(tuple)


def records(keys: SearchStrategy[bytes | None] | None = None) -> SearchStrategy[Record]:
    """Return a strategy for records with and without key, value and headers."""
    return st.builds(
        Record,
        value=st.none() | values(),
        key=st.none() | values() if keys is None else keys,
        timestamp_ms=timestamps_ms(),
        headers=headers(),
    )


def batches(
    contents: SearchStrategy[Record] | None = None,
    *,
    at_most: int = 4,
    compression: SearchStrategy[Compression] | None = None,
    flaw: SearchStrategy[Flaw | None] | None = None,
    max_timestamp_ms: SearchStrategy[int | None] | None = None,
) -> SearchStrategy[Batch]:
    """Return a strategy for batches of at least one record."""
    return st.builds(
        Batch,
        records=st.lists(records() if contents is None else contents, min_size=1, max_size=at_most).map(tuple),
        compression=st.just(Compression.NONE) if compression is None else compression,
        flaw=st.none() if flaw is None else flaw,
        max_timestamp_ms=st.none() if max_timestamp_ms is None else max_timestamp_ms,
    )


def produces(drawn: SearchStrategy[Batch] | None = None, **fields: SearchStrategy[Any]) -> SearchStrategy[Produce]:
    """Return a strategy for Produce requests with one batch. `fields` are strategies for the other fields."""
    one = batches() if drawn is None else drawn
    return st.builds(Produce, batches=one.map(lambda batch: (batch,)), **fields)


def producer(
    *parts: SearchStrategy[ProducerMove] | SearchStrategy[list[ProducerMove]],
) -> SearchStrategy[tuple[Produce, ...]]:
    """Return a strategy for the Produce requests of the script's first producer, which makes these moves in order."""
    return st.tuples(*parts).map(lambda found: _sequence([move for part in found for move in _listed(part)]))


def _listed(part: ProducerMove | list[ProducerMove]) -> list[ProducerMove]:
    return part if isinstance(part, list) else [part]


def _sequence(drawn: list[ProducerMove]) -> tuple[Produce, ...]:
    epoch, sequence = 0, 0
    sent: list[Batch] = []
    steps = []
    for kind, content in drawn:
        number = {"gap": sequence + 1, "new epoch": 0, "new epoch late": 1}.get(kind, sequence)
        step_epoch = {"new epoch": epoch + 1, "new epoch late": epoch + 1, "old epoch": max(epoch - 1, 0)}
        batch = Batch(content.records, content.compression, 0, step_epoch.get(kind, epoch), number)
        if kind.startswith("again") and sent:
            batch = sent[-min(int(kind.removeprefix("again ")), len(sent))]
        elif (batch.epoch, batch.sequence) in {(epoch, sequence), (epoch + 1, 0)}:  # a correct broker accepts it
            epoch, sequence = batch.epoch, batch.last_sequence + 1
            sent.append(batch)
        steps.append(Produce((batch,)))
    return tuple(steps)


def moves(*kinds: str) -> SearchStrategy[ProducerMove]:
    """Return a strategy for moves of an idempotent producer, each of one of the kinds.

    `next`: the next sequence number. `gap`: a sequence number that is one too high. `again N`: the Nth newest accepted
    batch, or the oldest one if there are fewer (like `next` if there is none). `new epoch`: the next epoch, from
    sequence number 0. `new epoch late`: the next epoch, from sequence number 1. `old epoch`: the previous epoch.
    """
    return st.tuples(st.sampled_from(kinds), batches(at_most=3))


def several(*kinds: str, at_least: int = 0, at_most: int = 6) -> SearchStrategy[list[ProducerMove]]:
    """Return a strategy for lists of moves, each of one of the kinds."""
    return st.lists(moves(*kinds), min_size=at_least, max_size=at_most)
