"""Requirements of retention: which segments are deleted by size and time, and what stays.

The timestamps of a script's batches determine at which batch a new segment begins (`segment.ms`). The script waits for
the deletion. The requirements are not applicable to a target if its `log.retention.check.interval.ms` is unknown or
longer than a script waits (`CLEANUP_PERIOD_MAX_MS`).
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from conformance.requirements import sources
from conformance.requirements.requirement import Level, Requirement, Source
from conformance.sequential.check import judges, sequential
from conformance.sequential.model.produce import batch_size_bytes
from conformance.sequential.steps import (
    EARLIEST,
    LATEST,
    TOPIC,
    AfterCleanup,
    Batch,
    CreateTopic,
    DescribeConfigs,
    Eventually,
    Fetch,
    IncrementalAlterConfigs,
    InitProducerId,
    ListOffsets,
    On,
    Operation,
    Produce,
    Record,
    Step,
)
from conformance.sequential.strategies import Steps, placed, script
from fixtures.targets.target import Capability

_TOPICS: Final = frozenset({Capability.TOPIC_ADMIN})
_JUDGED: Final = (
    judges("error", "offset", "timestamp", of=ListOffsets)
    | judges("error", "records", "high_watermark", "log_start_offset", of=Fetch)
    | judges("error", "base_offset", of=Produce)
)
_COST: Final = 5
"""Relative duration of a script, which waits for the broker's next check of its logs. An ordinary script has 1."""
_BATCHES_MAX: Final = 5
_SEGMENT_MS: Final = 1_000
_SEGMENT_BYTES: Final = 1024 * 1024
"""The minimum of `segment.bytes` since Kafka 4.0."""
_STEP_MS: Final = 10_000
"""Time between batches in different segments."""
_EXPIRES_MS: Final = 1_600_000_000_000
"""September 2020."""
_NEVER_EXPIRES_MS: Final = 4_102_444_800_000
"""The year 2100."""
_NO_TIMESTAMP: Final = -1
_HOUR_MS: Final = 3_600_000
_NEVER_MS: Final = 2**63 - 1
_CONFIGS: Final = (
    ("retention.ms", "-1"),
    ("segment.ms", str(_SEGMENT_MS)),
    ("message.timestamp.after.max.ms", str(_NEVER_MS)),
)
_TIMESTAMP_LIMITS_SINCE: Final = "3.6.0"
"""The first version with `message.timestamp.after.max.ms`."""
_WITNESS: Final = "trial-witness"


def _produce(timestamp_ms: int, value: bytes = b"a", topic: str = TOPIC) -> Produce:
    return Produce((Batch((Record(value, b"key", timestamp_ms),)),), topic)


def _sizes() -> Steps:
    """Return a strategy for batches with values of up to 99 bytes, each in a new segment or in the previous one."""

    def produces(drawn: list[tuple[int, bool]]) -> tuple[Produce, ...]:
        steps, at_ms = [], _EXPIRES_MS
        for size, is_new_segment in drawn:
            at_ms += _STEP_MS if is_new_segment else 0
            steps.append(_produce(at_ms, b"v" * size))
        return tuple(steps)

    one = st.tuples(st.integers(0, 99), st.booleans())
    return st.lists(one, min_size=2, max_size=_BATCHES_MAX).map(produces)


def _ages() -> Steps:
    """Return a strategy for batches, each in its own segment; the first has expired, and any of the others may have."""

    def produces(drawn: list[bool]) -> tuple[Produce, ...]:
        begins = (_EXPIRES_MS if is_old else _NEVER_EXPIRES_MS for is_old in drawn)
        return tuple(_produce(begin + place * _STEP_MS) for place, begin in enumerate(begins))

    return st.lists(st.booleans(), min_size=1, max_size=_BATCHES_MAX - 1).map(lambda drawn: produces([True, *drawn]))


_MIXED: Final = "trial-mixed"


def _expired_after_live() -> tuple[Step, ...]:
    """Return the steps that write an expired segment after one that is not expired, await a cleanup, and read the log.

    Every script has this log, because the generated logs may contain no expired segment after a live one. Only such a
    log reveals a broker that deletes the live segment, too.
    """
    begins = (_EXPIRES_MS, _NEVER_EXPIRES_MS, _EXPIRES_MS)
    return (
        CreateTopic(_MIXED, configs=_CONFIGS),
        *(_produce(begin + place * _STEP_MS, topic=_MIXED) for place, begin in enumerate(begins)),
        _set("retention.ms", _HOUR_MS, _MIXED),
        AfterCleanup(ListOffsets(EARLIEST, _MIXED)),
        *(Fetch(offset, _MIXED) for offset in range(len(begins))),
    )


_UNTIMED: Final = "trial-untimed"


def _expired_after_untimed() -> tuple[Step, ...]:
    """Return the steps that write a batch without a timestamp and an expired one, await a cleanup, and read the log.

    Both batches are in one segment, whose largest timestamp is that of the second batch. A broker that begins a new
    segment at the second batch, as if the first one were from the year 1970, does not delete the first one.
    """
    configs = (_CONFIGS[0], ("segment.ms", str(_HOUR_MS)), *_CONFIGS[2:])
    return (
        CreateTopic(_UNTIMED, configs=configs),
        _produce(_NO_TIMESTAMP, topic=_UNTIMED),
        _produce(_EXPIRES_MS, topic=_UNTIMED),
        _set("retention.ms", _HOUR_MS, _UNTIMED),
        AfterCleanup(ListOffsets(EARLIEST, _UNTIMED)),
    )


_FULL: Final = "trial-full"


def _expired_and_full() -> tuple[Step, ...]:
    """Return the steps that fill a segment exactly with two expired batches, await a cleanup, and read the log.

    A broker that begins a new segment at the second batch keeps this batch, because the last one fits behind it.
    """
    first, last = _produce(_EXPIRES_MS, b"a" * 100, _FULL), _produce(_NEVER_EXPIRES_MS, topic=_FULL)
    rest_bytes = _SEGMENT_BYTES - batch_size_bytes(first.batches[0])
    overhead_bytes = batch_size_bytes(_produce(_EXPIRES_MS, bytes(rest_bytes)).batches[0]) - rest_bytes
    configs = (_CONFIGS[0], ("segment.ms", str(_NEVER_MS)), ("segment.bytes", str(_SEGMENT_BYTES)), *_CONFIGS[2:])
    return (
        CreateTopic(_FULL, configs=configs),
        first,
        _produce(_EXPIRES_MS, bytes(rest_bytes - overhead_bytes), _FULL),
        last,
        _set("retention.ms", _HOUR_MS, _FULL),
        AfterCleanup(ListOffsets(EARLIEST, _FULL)),
    )


def _set(name: str, value: int, topic: str = TOPIC) -> IncrementalAlterConfigs:
    return IncrementalAlterConfigs(((name, Operation.SET, str(value)),), topic)


def _retention_bytes(highest: int) -> SearchStrategy[IncrementalAlterConfigs]:
    return st.integers(0, highest).map(lambda size: _set("retention.bytes", size))


_LOG: Final[tuple[Step, ...]] = (
    ListOffsets(EARLIEST),
    ListOffsets(0),
    ListOffsets(LATEST),
    *(Fetch(offset) for offset in range(_BATCHES_MAX + 1)),
)
_AWAIT_CLEANUP: Final = AfterCleanup(ListOffsets(EARLIEST))
_UNLIMITED: Final = (
    _set("retention.bytes", -1),
    Eventually(On(1, DescribeConfigs(("retention.bytes",))), awaited=frozenset({"set"})),
)
"""Steps that remove the limit, and wait until the leader has applied the change. With the limit, a cleanup after the
next record would delete another segment."""
_CREATED: Final = replace(placed(1), configs=_CONFIGS)
"""Creation of the topic, with its leader on the first broker."""
_SEQUENCES: Final = tuple(
    Produce((Batch((Record(b"a", b"key", _NEVER_EXPIRES_MS + sequence * _STEP_MS),), producer=0, sequence=sequence),))
    for sequence in range(4)
)


def _afterwards(*then: Step) -> tuple[Step, ...]:
    """Return the steps that await a cleanup, read the log, execute `then`, append a record, and read the log again."""
    return _AWAIT_CLEANUP, *_LOG, *then, _produce(_NEVER_EXPIRES_MS), *_LOG


def _on_first_broker(topic: str, *configs: tuple[str, str]) -> CreateTopic:
    """Return the step that creates a topic on the first broker, which checks all these topics in one pass."""
    return replace(placed(1, topic=topic), configs=(*_CONFIGS[1:], *configs))


def _log_check(number: int) -> tuple[Step, ...]:
    """Return the steps that produce an expired record and await its deletion, which shows that logs were checked."""
    at_ms = _EXPIRES_MS + number * _STEP_MS
    return _produce(at_ms, topic=_WITNESS), AfterCleanup(ListOffsets(EARLIEST, _WITNESS))


_KEPT: Final = {
    "trial-unlimited": (("retention.ms", "-1"), ("retention.bytes", "-1")),
    "trial-small": (("retention.ms", "-1"), ("retention.bytes", "100000")),
    "trial-compact": (("cleanup.policy", "compact"), ("retention.ms", "1"), ("retention.bytes", "0")),
}
"""Topics from which retention deletes nothing."""


def _kept_topic(topic: str) -> tuple[Step, ...]:
    """Return the steps that create a topic and fill two segments with different keys: compaction removes nothing."""
    batches = (Batch((Record(b"a", bytes([place]), _EXPIRES_MS + place * _STEP_MS),)) for place in range(2))
    return (_on_first_broker(topic, *_KEPT[topic]), *(Produce((batch,), topic) for batch in batches))


def _requirement(
    name: str, text: str, parts: Sequence[Step | SearchStrategy[Any]], *promised_by: Source
) -> Requirement:
    return Requirement(
        id=f"retention/{name}",
        level=Level.MUST,
        text=text,
        sources=promised_by,
        check=sequential(script(*parts), _JUDGED, cost=_COST),
        needs=_TOPICS,
        since=_TIMESTAMP_LIMITS_SINCE,
    )


REQUIREMENTS: Final = (
    _requirement(
        "size-deletes-oldest-segments",
        "With cleanup.policy=delete whole segments are deleted from the start of a log as long as at least "
        "retention.bytes remain. The log start offset moves to the first remaining segment: ListOffsets returns this "
        "offset, a fetch below it returns OFFSET_OUT_OF_RANGE, and all later records are kept.",
        (_CREATED, _sizes(), _retention_bytes(400), *_afterwards(*_UNLIMITED)),
        sources.RETENTION_BYTES,
    ),
    _requirement(
        "time-deletes-expired-segments",
        "With cleanup.policy=delete the segments at the start of a log whose largest timestamp is older than "
        "retention.ms are deleted, up to the first segment that is not older. The active segment can be deleted, too, "
        "after a new segment has become active.",
        (
            *_expired_after_live(),
            CreateTopic(configs=_CONFIGS),
            _ages(),
            _set("retention.ms", _HOUR_MS),
            *_afterwards(),
            *_expired_after_untimed(),
            *_expired_and_full(),
        ),
        sources.RETENTION_MS,
    ),
    _requirement(
        "deleted-offsets-are-not-used-again",
        "After retention has deleted every record of a log, including those of the active segment, its log start "
        "offset equals its log end offset. The next record gets the next offset, and no lookup returns a deleted "
        "record.",
        (
            _CREATED,
            _sizes(),
            st.sampled_from([_set("retention.ms", _HOUR_MS), _set("retention.bytes", 0)]),
            *_afterwards(*_UNLIMITED),
        ),
        sources.RETENTION_MS,
        sources.GUARANTEES,
    ),
    _requirement(
        "producers-outlive-their-records",
        "After retention has deleted all records of an idempotent producer, its last batches are still recognised "
        "as duplicates, a gap in its sequence numbers is rejected, and the next batch is appended.",
        (
            CreateTopic(configs=_CONFIGS),
            InitProducerId(),
            *_SEQUENCES[:2],
            _set("retention.bytes", 0),
            _AWAIT_CLEANUP,
            *_SEQUENCES[:2],
            _SEQUENCES[3],
            *_SEQUENCES[2:],
        ),
        sources.KIP_360,
    ),
    _requirement(
        "nothing-else-is-deleted",
        "While retention deletes expired records of one topic, it deletes nothing from a topic without limits, from a "
        "topic that is smaller than retention.bytes, and from a topic with cleanup.policy=compact alone.",
        (
            *(step for topic in _KEPT for step in _kept_topic(topic)),
            _on_first_broker(_WITNESS, ("retention.ms", str(_HOUR_MS))),
            *(step for number in range(3) for step in _log_check(number)),
            *(step for topic in _KEPT for step in (ListOffsets(EARLIEST, topic), Fetch(0, topic))),
        ),
        sources.RETENTION_MS,
        sources.RETENTION_BYTES,
        sources.COMPACTION,
    ),
)
