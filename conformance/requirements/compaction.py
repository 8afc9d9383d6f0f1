"""Requirements of compaction: which records are removed, and what stays readable.

The timestamps of a script's batches determine at which batch a new segment begins (`segment.ms`). The script waits for
the log cleaner. The requirements are not applicable to a target whose cleaner runs too rarely, or whose DescribeConfigs
response lacks the period of its cleaner (`log.cleaner.backoff.ms`).
"""

from typing import Final

from hypothesis import strategies as st

from conformance.requirements import sources
from conformance.requirements.requirement import Level, Requirement
from conformance.sequential.check import judges, sequential
from conformance.sequential.steps import (
    EARLIEST,
    LATEST,
    AfterCleanup,
    Batch,
    Cleanup,
    CreateTopic,
    Fetch,
    InitProducerId,
    ListOffsets,
    Produce,
    Record,
    Step,
)
from conformance.sequential.strategies import Steps, script
from fixtures.targets.target import Capability

_TOPICS: Final = frozenset({Capability.TOPIC_ADMIN})
_JUDGED: Final = (
    judges("error", "records", "log_start_offset", "high_watermark", of=Fetch)
    | judges("error", "offset", of=ListOffsets)
    | judges("error", "base_offset", of=Produce)
)
_COST: Final = 7
"""Relative duration of a script, which waits for the log cleaner. An ordinary script has 1."""
_START_MS: Final = 4_102_444_800_000
"""The year 2100, so that no producer expires."""
_STEP_MS: Final = 10_000
"""Time between batches in different segments."""
_CONFIGS: Final = (
    ("cleanup.policy", "compact"),
    ("retention.ms", "-1"),
    ("segment.ms", "1000"),
    ("min.cleanable.dirty.ratio", "0.001"),
    ("min.compaction.lag.ms", "0"),
    ("max.compaction.lag.ms", str(2**63 - 1)),
    ("message.timestamp.after.max.ms", str(2**63 - 1)),
)
_DELETE_RETENTION_MS: Final = "86400000"
"""Kafka's default."""
_SINCE: Final = "3.6.0"
"""The first version with `message.timestamp.after.max.ms`; the first version with KIP-534 is older."""


def _produce(segment: int, *records: tuple[bytes, bytes | None], sequence: int | None = None) -> Produce:
    """Return a Produce of one batch of records (key, value), with the timestamp of the segment with this number."""
    at_ms = _START_MS + segment * _STEP_MS
    placed = tuple(Record(value, key, at_ms, (("at", key),)) for key, value in records)
    if sequence is None:
        return Produce((Batch(placed),))
    return Produce((Batch(placed, producer=0, sequence=sequence),))


def _reads(first: int, end: int) -> tuple[Step, ...]:
    """Return the steps that read the log after compaction.

    These are a fetch from each offset, a fetch from beyond the log end, and ListOffsets for the log start and the log
    end. Compaction changes neither the log start nor the log end.

    :param first: the lowest offset to fetch.
    :param end: the log end offset.
    """
    fetches = (AfterCleanup(Fetch(offset), Cleanup.COMPACTION) for offset in range(first, end))
    return (*fetches, Fetch(end + 1), ListOffsets(EARLIEST), ListOffsets(LATEST))


_BATCHES: Final = (
    [(b"a", b"0"), (b"b", b"1"), (b"c", None)],
    [(b"b", b"3"), (b"a", None), (b"d", b"5")],
    [(b"e", None), (b"b", b"7"), (b"b", b"8"), (b"c", b"9")],
)
"""The first segments, each with one batch.

Each record of the first batch has a newer one with the same key, so that compaction empties this batch in every script.
The other batches also have records with a newer one in the same batch, tombstones, and the only records of their keys.
"""


def _logs() -> Steps:
    """Return a strategy for batches of a few keys, each in its own segment, followed by the steps of `_reads`."""
    record = st.tuples(st.sampled_from([b"a", b"b", b"c"]), st.none() | st.binary(max_size=3))
    batch = st.lists(record, min_size=1, max_size=3)

    def steps(batches: list[list[tuple[bytes, bytes | None]]]) -> tuple[Step, ...]:
        batches = [*_BATCHES, *batches]
        produces = (_produce(place, *records) for place, records in enumerate(batches))
        return (*produces, *_reads(0, sum(map(len, batches))))

    return st.lists(batch, min_size=1, max_size=3).map(steps)


def _requirement(
    name: str, text: str, *parts: Step | Steps, delete_retention_ms: str = _DELETE_RETENTION_MS
) -> Requirement:
    configs = (*_CONFIGS, ("delete.retention.ms", delete_retention_ms))
    return Requirement(
        id=f"compaction/{name}",
        level=Level.MUST,
        text=text,
        sources=(sources.COMPACTION, sources.KIP_534),
        check=sequential(script(CreateTopic(configs=configs), *parts), _JUDGED, cost=_COST),
        needs=_TOPICS,
        since=_SINCE,
    )


REQUIREMENTS: Final = (
    _requirement(
        "newest-record-of-each-key-stays",
        "In the segments that precede the active one, compaction removes each record if a newer record in these "
        "segments has the same key. The newest record of a key stays as it was sent, at its offset; a tombstone stays "
        "at least until delete.retention.ms has passed. The log start and end do not change.",
        _logs(),
    ),
    _requirement(
        "active-segment-stays",
        "Compaction removes no record of the active segment. A record of another segment stays, too, if all newer "
        "records with its key are in the active segment.",
        _produce(0, (b"w", b"0"), (b"k", b"1")),
        _produce(1, (b"w", b"2")),
        _produce(2, (b"k", b"3"), (b"k", b"4"), (b"w", None)),
        _produce(2, (b"k", b"5")),
        st.just(_reads(0, 7)),
    ),
    _requirement(
        "old-tombstones-are-removed",
        "A tombstone is removed by a compaction that begins at least delete.retention.ms after the first compaction "
        "that has read the tombstone.",
        _produce(0, (b"a", b"0"), (b"a", None)),
        _produce(1, (b"w", b"2"), (b"w", b"3")),
        _produce(2, (b"w", b"4")),
        AfterCleanup(Fetch(2), Cleanup.COMPACTION),
        _produce(3, (b"w", b"5"), (b"w", b"6")),
        _produce(4, (b"w", b"7")),
        st.just(_reads(0, 8)),
        delete_retention_ms="0",
    ),
    _requirement(
        "emptied-batches-keep-their-producer",
        "After compaction has removed all records of a producer, the log can be read from any offset. The producer's "
        "last batch is still recognised as a duplicate, a gap in its sequence numbers is rejected, and its next batch "
        "is appended.",
        InitProducerId(),
        _produce(0, (b"a", b"0"), sequence=0),
        _produce(1, (b"a", b"1"), (b"w", b"2")),
        _produce(2, (b"w", b"3")),
        _produce(3, (b"w", b"4")),
        st.just(_reads(0, 5)),
        _produce(0, (b"a", b"0"), sequence=0),
        _produce(3, (b"a", b"5"), sequence=2),
        _produce(3, (b"a", b"5"), sequence=1),
        AfterCleanup(Fetch(4), Cleanup.COMPACTION),
    ),
)
