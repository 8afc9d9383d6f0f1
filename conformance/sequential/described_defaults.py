"""Comparison of the defaults that a broker describes with what it applies to a topic that has no settings.

Each default is compared with the result of a request whose outcome depends on it. A default that the broker does not
describe, or that would need a batch larger than `_BATCH_BYTES_MAX` or of a size that no batch of one record has, is not
compared.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from conformance.sequential.model.produce import batch_size_bytes
from conformance.sequential.response import Response
from conformance.sequential.steps import Batch, CreateTopic, Fetch, Produce, Record, Step

_CLEANUP: Final = "log.cleanup.policy"
_SIZE: Final = "message.max.bytes"
_CODEC: Final = "compression.type"
_TIMESTAMPS: Final = "log.message.timestamp.type"
_BEFORE: Final = "message.timestamp.before.max.ms"
_AFTER: Final = "message.timestamp.after.max.ms"
TOPIC_BOUNDS: Final = (_BEFORE, _AFTER)
_DIFFERENCE: Final = "log.message.timestamp.difference.max.ms"
"""Until 3.9, bounds that are not set have its value (KIP-937)."""
_SEGMENT: Final = "log.segment.bytes"
"""A larger batch is rejected with RECORD_LIST_TOO_LARGE, whatever `message.max.bytes` is."""
TOPIC_DEFAULTS: Final = (
    *(_CLEANUP, _SIZE, _SEGMENT, _CODEC, _TIMESTAMPS),
    *(f"log.{_BEFORE}", f"log.{_AFTER}", _DIFFERENCE),
)
_NUMBERS: Final = {"num.partitions": "num_partitions", "default.replication.factor": "replication_factor"}
"""Field of a CreateTopics response by the setting that is its default (KIP-464, KIP-525)."""
NUMBERS: Final = tuple(_NUMBERS)
_STORED_UNCOMPRESSED: Final = frozenset({"producer", "uncompressed"})
_BATCH_BYTES_MAX: Final = 8 * 1024 * 1024
_CLOCK_SKEW_MS: Final = 5 * 60 * 1000
"""Maximum difference between the clocks of this machine and the broker."""
_FUTURE_MAX_MS: Final = 365 * 24 * 60 * 60 * 1000
_LONG_MAX: Final = 2**63 - 1
_ADJUSTMENTS_MAX: Final = 5
"""Maximum number of corrections to the size of a value.

A correction may change the number of bytes of the lengths before the value, which are varints.
"""

Send = Callable[[Step], Response]
Described = Mapping[str, str | None]


def not_applied(described: Described, topic: str, now_ms: int, send: Send) -> Iterator[str]:
    """Yield the described defaults that do not hold for the topic, each with what was observed.

    The batches have acks=1, because `min.insync.replicas` may exceed the number of replicas.
    """
    policy = described.get(_CLEANUP)
    if policy is not None:
        error = send(_produce(topic, Record(b"a", None, now_ms))).get("error")
        if error != ("INVALID_RECORD" if "compact" in policy.split(",") else "NONE"):
            yield f"{_CLEANUP} {policy}, but Produce of a record without a key returned {error}"
    limit, segment = _number(described, _SIZE), _number(described, _SEGMENT)
    if limit is not None and limit < min(_BATCH_BYTES_MAX, _BATCH_BYTES_MAX if segment is None else segment):
        for size, wanted in ((limit, "NONE"), (limit + 1, "MESSAGE_TOO_LARGE")):
            record = record_of_batch(size, now_ms)
            error = wanted if record is None else send(_produce(topic, record)).get("error")
            if error != wanted:
                yield f"{_SIZE} {limit}, but Produce of a batch of {size} bytes returned {error}"
    yield from _not_stored(described, topic, now_ms, send)
    if described.get(_TIMESTAMPS) == "CreateTime" and described.get(_DIFFERENCE, str(_LONG_MAX)) == str(_LONG_MAX):
        yield from _other_bounds(described, topic, now_ms, send)


def _other_bounds(described: Described, topic: str, now_ms: int, send: Send) -> Iterator[str]:
    """Yield the bounds within which a timestamp is rejected, or outside which it is accepted.

    The broker describes each bound twice: for itself, and for the topic.
    """
    for bound in TOPIC_BOUNDS:
        for name in (f"log.{bound}", bound):
            limit_ms = _number(described, name)
            for timestamp_ms, wanted in () if limit_ms is None else _timestamps(bound, limit_ms, now_ms):
                error = send(_produce(topic, Record(b"a", b"key", timestamp_ms))).get("error")
                if error != wanted:
                    difference_ms = timestamp_ms - now_ms
                    yield f"{name} {limit_ms}, but Produce of a record {difference_ms:+} ms from now returned {error}"


def _number(described: Described, name: str) -> int | None:
    """Return the value of a setting; None if the broker does not describe it, or not as a number."""
    text = described.get(name) or ""
    return int(text) if text.isdecimal() else None


def _timestamps(bound: str, limit_ms: int, now_ms: int) -> Iterator[tuple[int, str]]:
    """Yield a timestamp within the bound and one outside it, each with the expected error, if there are such times."""
    sign = -1 if bound == _BEFORE else 1
    within_ms = now_ms + sign * min(limit_ms - _CLOCK_SKEW_MS, now_ms if bound == _BEFORE else _FUTURE_MAX_MS)
    if limit_ms > _CLOCK_SKEW_MS:
        yield within_ms, "NONE"
    if 0 <= (outside_ms := now_ms + sign * (limit_ms + _CLOCK_SKEW_MS)) <= _LONG_MAX:
        yield outside_ms, "INVALID_TIMESTAMP"


def _not_stored(described: Described, topic: str, now_ms: int, send: Send) -> Iterator[str]:
    """Yield the described defaults that do not hold for the first batch of the log."""
    send(_produce(topic, Record(b"a" * 100, b"key", now_ms)))
    stored = send(Fetch(topic=topic))
    codecs, records = stored.get("codecs"), stored.get("records")
    if not codecs or not records:
        return
    codec, type_ = described.get(_CODEC), described.get(_TIMESTAMPS)
    if codec is not None and codecs[0] != ("none" if codec in _STORED_UNCOMPRESSED else codec):
        yield f"{_CODEC} {codec}, but an uncompressed batch was stored with codec {codecs[0]}"
    found = "LogAppendTime" if records[0].timestamp_ms is None else "CreateTime"
    if type_ not in {None, found}:
        yield f"{_TIMESTAMPS} {type_}, but a batch was stored with {found}"


def _produce(topic: str, record: Record) -> Produce:
    return Produce((Batch((record,)),), topic, acks=1)


def record_of_batch(size: int, now_ms: int) -> Record | None:
    """Return a record that alone makes a batch of this size; None if there is none.

    A batch has a minimum size, and some sizes are impossible because the length of the record, a varint, gains a byte.
    """
    for key in (b"key", b"keys"):  # the second key, for sizes at which the length of the value gains a byte
        value_bytes = size
        for _ in range(_ADJUSTMENTS_MAX):
            record = Record(bytes(value_bytes), key, now_ms)
            surplus = batch_size_bytes(Batch((record,))) - size
            if surplus == 0:
                return record
            value_bytes = max(value_bytes - surplus, 0)
    return None


def other_numbers(described: Described, topic: str, brokers: int, send: Send) -> tuple[str, ...]:
    """Return the described numbers that CreateTopics with -1 does not use, with those that it returns.

    Nothing is created. The request is rejected if there are fewer brokers than the default replication factor.
    """
    created = send(CreateTopic(topic, partitions=-1, replication_factor=-1, configs=(), validate_only=True))
    factor = _number(described, "default.replication.factor") or 0
    wanted = "INVALID_REPLICATION_FACTOR" if factor > brokers else "NONE"
    if created.get("error") != wanted:
        return (f"default.replication.factor {factor}, but CreateTopics returned {created.get('error')}",)
    if wanted != "NONE":
        return ()
    return tuple(
        f"{name} {described[name]}, but CreateTopics returned {field} {created[field]}"
        for name, field in _NUMBERS.items()
        if described.get(name) is not None and field in created and str(created[field]) != described[name]
    )
