"""What the leader of a partition is examined in about batches that it must not take. Source: Kafka's `LogValidator`.

None of them is in a history: one that is taken after all is a record that nobody sent.
"""

from dataclasses import replace
from typing import Any, Final
from uuid import UUID

from chaos.simulation.clients.process import Sleep
from chaos.simulation.examination.exam import HEARD_MS, NONE, STRANGER, Exam, Facts, Whom, schema_for_clients
from fixtures.clients import requests
from fixtures.clients.messages import ApiKey
from fixtures.clients.record_batch import Record, RecordBatch, TimestampType, encode_batch

_MAGIC_AT, _TIMEOUT_MS = 16, 1_000
_TOPIC, _SET, _DELETE = 2, 0, 1
_AGE: Final = "message.timestamp.before.max.ms"
_DAY_MS: Final = 86_400_000
_SMALL: Final = Record(b"exam", key=b"exam", timestamp_ms=1)


def _sent(facts: Facts, data: bytes, *, acks: int = 1, topic_id: UUID | None = None) -> Any:
    own_id = facts.image.topics[facts.topic].topic_id
    schema = schema_for_clients(ApiKey.PRODUCE)
    return requests.produce(
        schema, facts.topic, 0, data, acks=acks, timeout_ms=_TIMEOUT_MS, topic_id=topic_id or own_id
    )


def _batch(facts: Facts, **given: Any) -> bytes:
    """A batch of one record of this moment, but for what is given."""
    count = given.pop("record_count", None)
    record = replace(_SMALL, timestamp_ms=given.pop("timestamp_ms", facts.wall_ms), key=given.pop("key", _SMALL.key))
    return encode_batch(RecordBatch((record,), **given), record_count=count)


def _with_magic(data: bytes, magic: int) -> bytes:
    return data[:_MAGIC_AT] + bytes([magic]) + data[_MAGIC_AT + 1 :]


def _keeps_time(facts: Facts) -> bool:
    """Whether the topic's records have the time that clients give them."""
    return facts.image.topic_overrides(facts.topic).get("message.timestamp.type") != "LogAppendTime"


def _cases(facts: Facts) -> list[tuple[str, Any]]:
    whole, settings = _batch(facts), facts.image.topic_overrides(facts.topic)
    cases: list[tuple[str, Any]] = [
        ("INVALID_REQUIRED_ACKS", _sent(facts, whole, acks=2)),
        ("UNKNOWN_TOPIC_ID", _sent(facts, whole, topic_id=STRANGER)),
        ("CORRUPT_MESSAGE", _sent(facts, whole[:-1] + bytes([whole[-1] ^ 1]))),
        ("INVALID_RECORD", _sent(facts, whole[:-1])),
        ("INVALID_RECORD", _sent(facts, _with_magic(whole, 1))),
        ("CORRUPT_MESSAGE", _sent(facts, _with_magic(whole, 3))),
        ("INVALID_RECORD", _sent(facts, whole * 2)),
        ("INVALID_RECORD", _sent(facts, _batch(facts, control=True))),
        ("INVALID_RECORD", _sent(facts, _batch(facts, last_offset_delta=1))),
        ("INVALID_RECORD", _sent(facts, _batch(facts, last_offset_delta=1, record_count=2))),
        ("INVALID_RECORD", _sent(facts, _batch(facts, producer_id=2**40, producer_epoch=0))),
    ]
    if _keeps_time(facts):
        early = _batch(facts, timestamp_ms=facts.wall_ms + 9 * _DAY_MS)
    else:  # that is a broker's to say, and not a client's
        early = _batch(facts, timestamp_type=TimestampType.LOG_APPEND_TIME)
    cases.append(("INVALID_TIMESTAMP", _sent(facts, early)))
    if "compact" in settings.get("cleanup.policy", ""):
        cases.append(("INVALID_RECORD", _sent(facts, _batch(facts, key=None))))
    return cases


def _batches(facts: Facts) -> Any:
    return [request for _, request in _cases(facts)]


def _errors(facts: Facts) -> list[str]:
    return [error for error, _ in _cases(facts)]


def _of_long_ago(facts: Facts) -> Any:
    """Records may be as old as they like, until a topic says otherwise (KIP-937)."""
    schema, old = schema_for_clients(ApiKey.INCREMENTAL_ALTER_CONFIGS), facts.wall_ms - 9 * _DAY_MS

    def asked(operation: int) -> Any:
        config = schema.AlterableConfig(name=_AGE, config_operation=operation, value="3600000")
        resource = schema.AlterConfigsResource(resource_type=_TOPIC, resource_name=facts.topic, configs=(config,))
        return schema.IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)

    sent = [_sent(facts, _batch(facts, timestamp_ms=old))] if _keeps_time(facts) else []
    return [asked(_SET), Sleep(HEARD_MS), *sent, asked(_DELETE)]


def _errors_of_long_ago(facts: Facts) -> list[str]:
    return [NONE, *(["INVALID_TIMESTAMP"] if _keeps_time(facts) else []), NONE]


EXAMS: Final = (
    Exam("batches", Whom.LEADER, _batches, _errors),
    Exam("a batch of long ago", Whom.LEADER, _of_long_ago, _errors_of_long_ago),
)
