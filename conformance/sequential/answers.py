"""What a broker answered, as plain values that can be compared across targets and versions.

An `Answer` maps Kafka's field names to plain values. What is nobody's promise is dropped (throttle times, correlation
ids, hosts and ports, session ids); what differs by run is replaced by what it stands for (topic ids and producer ids
by the order in which they were seen, real names by the script's); errors are spelt as Kafka spells them. A field that
the version at hand does not have is absent.

Where there was no answer, the only field is `connection`: closed, or silent. Bytes that are no answer are `malformed`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias

from conformance.sequential.steps import (
    CreateTopic,
    DeleteRecords,
    DeleteTopic,
    Fetch,
    InitProducerId,
    ListOffsets,
    Metadata,
    MetadataById,
    OffsetCommit,
    OffsetFetch,
    OffsetForLeaderEpoch,
    Produce,
    Step,
)
from fixtures.clients.record_batch import MalformedBatch, RecordBatch, TimestampType, decode_batches

Answer: TypeAlias = Mapping[str, Any]
"""Field name to plain value: numbers, strings, tuples of `ReadRecord`."""

CLOSED: Final[Answer] = {"connection": "closed"}
SILENT: Final[Answer] = {"connection": "silent"}
"""No answer within the time that a step has."""

NO_ANSWER_FIELDS: Final = frozenset({"connection", "malformed"})


@dataclass(frozen=True, slots=True)
class ReadRecord:
    """A record as a fetch returned it. The timestamp is null where the broker set it (LogAppendTime)."""

    offset: int
    value: bytes | None
    key: bytes | None = None
    timestamp_ms: int | None = 0
    headers: tuple[tuple[str, bytes | None], ...] = ()


class Symbols(Protocol):
    """What stands for the values that differ by run."""

    def script_name(self, name: str) -> str | None:
        """The script's name of a topic or group; null for one that is not the script's."""
        ...

    def saw_topic_id(self, name: str | None, topic_id: Any) -> int | None:
        """The place of a topic id in the order in which they were seen; null for the zero id."""
        ...

    def saw_producer_id(self, producer_id: int) -> int:
        """The place of a producer id in the order in which they were handed out; -1 for none."""
        ...


def malformed(error: Exception) -> Answer:
    """The answer that bytes of no meaning stand for."""
    return {"malformed": str(error)}


def normalise(step: Step, response: Any, symbols: Symbols) -> Answer:
    """The response to a step as an answer."""
    return _NORMALISERS[type(step)](step, response, symbols)


def _error(code: Any) -> str:
    return str(code.name.upper())


def _fields(source: Any, *names: str) -> dict[str, Any]:
    """Those of the named fields that this version has."""
    return {name: int(getattr(source, name)) for name in names if hasattr(source, name)}


def _only_partition(topics: Any, partitions: str = "partitions") -> Any | None:
    """The one partition that was asked about; null where the answer leaves it out."""
    found = [partition for topic in topics for partition in getattr(topic, partitions)]
    return found[0] if len(found) == 1 else None


_MISSING: Final[Answer] = {"malformed": "the answer does not have the one partition that was asked about"}


def _produce(_step: Produce, response: Any, _symbols: Symbols) -> Answer:
    partition = _only_partition(response.responses, "partition_responses")
    if partition is None:
        return _MISSING
    answer = {"error": _error(partition.error_code)} | _fields(partition, "base_offset", "log_start_offset")
    answer["log_append_time"] = "none" if partition.log_append_time is None else "set"
    if hasattr(partition, "record_errors"):
        answer["record_errors"] = tuple(error.batch_index for error in partition.record_errors)
    return answer


def _fetch(_step: Fetch, response: Any, _symbols: Symbols) -> Answer:
    top_level = _error(response.error_code) if hasattr(response, "error_code") else "NONE"
    if top_level != "NONE":
        return {"error": top_level}
    partition = _only_partition(response.responses)
    if partition is None:
        return _MISSING
    data = partition.records or b""
    try:
        batches = tuple(decode_batches(data))
    except MalformedBatch as error:
        return malformed(error)
    answer: dict[str, Any] = {"error": _error(partition.error_code), "records": _records(batches), "size": len(data)}
    answer["leader_epochs"] = tuple(batch.leader_epoch for batch in batches)
    return answer | _fields(partition, "high_watermark", "last_stable_offset", "log_start_offset")


def _records(batches: tuple[RecordBatch, ...]) -> tuple[ReadRecord, ...]:
    return tuple(
        ReadRecord(
            offset=-1 if record.offset is None else record.offset,
            value=record.value,
            key=record.key,
            timestamp_ms=record.timestamp_ms if batch.timestamp_type is TimestampType.CREATE_TIME else None,
            headers=record.headers,
        )
        for batch in batches
        for record in batch.records
    )


def _list_offsets(_step: ListOffsets, response: Any, _symbols: Symbols) -> Answer:
    partition = _only_partition(response.topics)
    if partition is None:
        return _MISSING
    return {"error": _error(partition.error_code)} | _fields(partition, "timestamp", "offset", "leader_epoch")


def _offset_for_leader_epoch(_step: OffsetForLeaderEpoch, response: Any, _symbols: Symbols) -> Answer:
    partition = _only_partition(response.topics)
    if partition is None:
        return _MISSING
    return {"error": _error(partition.error_code)} | _fields(partition, "leader_epoch", "end_offset")


def _delete_records(_step: DeleteRecords, response: Any, _symbols: Symbols) -> Answer:
    partition = _only_partition(response.topics)
    if partition is None:
        return _MISSING
    return {"error": _error(partition.error_code)} | _fields(partition, "low_watermark")


def _init_producer_id(_step: InitProducerId, response: Any, symbols: Symbols) -> Answer:
    return {
        "error": _error(response.error_code),
        "producer": symbols.saw_producer_id(response.producer_id),
        "producer_epoch": int(response.producer_epoch),
    }


def _create_topic(step: CreateTopic, response: Any, symbols: Symbols) -> Answer:
    if len(response.topics) != 1:
        return {"malformed": f"{len(response.topics)} topics in the answer about one"}
    topic = response.topics[0]
    answer: dict[str, Any] = {"error": _error(topic.error_code)}
    if hasattr(topic, "num_partitions"):
        answer["num_partitions"] = int(topic.num_partitions)
        answer["replication_factor"] = int(topic.replication_factor)
        names = {name for name, _ in step.configs}
        answer["configs"] = tuple(sorted((item.name, item.value) for item in topic.configs or () if item.name in names))
    if hasattr(topic, "topic_id") and not step.validate_only:
        answer["topic_id"] = symbols.saw_topic_id(step.topic, topic.topic_id)
    return answer


def _delete_topic(_step: DeleteTopic, response: Any, _symbols: Symbols) -> Answer:
    if len(response.responses) != 1:
        return {"malformed": f"{len(response.responses)} topics in the answer about one"}
    return {"error": _error(response.responses[0].error_code)}


def _metadata(step: Metadata, response: Any, symbols: Symbols) -> Answer:
    asked = step.topics or ()
    listed = [
        (topic.name if topic.name in asked else symbols.script_name(topic.name or ""), topic)
        for topic in response.topics
    ]
    topics = [(name, topic) for name, topic in listed if name is not None]
    answer: dict[str, Any] = {
        "topics": tuple(sorted((name, _error(topic.error_code), len(topic.partitions)) for name, topic in topics)),
        "leaders": tuple(
            sorted(
                (name, part.partition_index, part.leader_id >= 0) for name, topic in topics for part in topic.partitions
            )
        ),
        "brokers": len(response.brokers) > 0,
    }
    if step.topics is not None:
        answer["strangers"] = len(listed) - len(topics)
    if all(hasattr(topic, "topic_id") for _, topic in topics):
        answer["topic_ids"] = tuple(
            sorted((n, symbols.saw_topic_id(n, t.topic_id) or 0) for n, t in topics if t.topic_id)
        )
    return answer


def _metadata_by_id(_step: MetadataById, response: Any, symbols: Symbols) -> Answer:
    if len(response.topics) != 1:
        return {"malformed": f"{len(response.topics)} topics in the answer about one id"}
    topic = response.topics[0]
    return {"error": _error(topic.error_code), "name": symbols.script_name(topic.name) if topic.name else None}


def _offset_commit(_step: OffsetCommit, response: Any, _symbols: Symbols) -> Answer:
    partition = _only_partition(response.topics)
    return _MISSING if partition is None else {"error": _error(partition.error_code)}


def _offset_fetch(_step: OffsetFetch, response: Any, _symbols: Symbols) -> Answer:
    group = response.groups[0] if hasattr(response, "groups") else response
    if hasattr(group, "error_code") and _error(group.error_code) != "NONE":
        return {"error": _error(group.error_code)}
    partition = _only_partition(group.topics)
    if partition is None:
        return _MISSING
    answer = {"error": _error(partition.error_code), "metadata": partition.metadata or ""}
    return answer | _fields(partition, "committed_offset", "committed_leader_epoch")


_NORMALISERS: Final[Mapping[type[Step], Callable[[Any, Any, Symbols], Answer]]] = {
    Produce: _produce,
    Fetch: _fetch,
    ListOffsets: _list_offsets,
    OffsetForLeaderEpoch: _offset_for_leader_epoch,
    DeleteRecords: _delete_records,
    InitProducerId: _init_producer_id,
    CreateTopic: _create_topic,
    DeleteTopic: _delete_topic,
    Metadata: _metadata,
    MetadataById: _metadata_by_id,
    OffsetCommit: _offset_commit,
    OffsetFetch: _offset_fetch,
}
