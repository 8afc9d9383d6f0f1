"""Conditions on a response, given its request, under any fault: the check `wrong-response` of each simulated client.

Only request and response are looked at, never the cluster, so that a finding is wrong on any broker. It is about the
APIs whose responses change with faults; what a cluster that is whole responds is specified by the requirements.

| request              | what a response must satisfy                                                                  |
|----------------------|-----------------------------------------------------------------------------------------------|
| any of these         | it is about what was requested, once each, and has only errors that this request can have     |
| Produce              | what was taken has an offset, and its checksum fits; the log starts no higher; an error of    |
|                      | sequences only for a batch that has one, of waiting replicas only under acks=all              |
| Fetch                | log start ≤ last stable offset ≤ high watermark; whole batches, ascending, from the one that  |
|                      | holds the offset on, all below what this isolation level may see, none of an epoch newer than |
|                      | the leader's, no more bytes than wanted behind the first batch (KIP-74); something, if there  |
|                      | is something; nothing early, if there is not; diverging epochs for followers only (KIP-595)   |
| ListOffsets          | an end or a start is an offset; a time leads to a record that is not older (KIP-79); no epoch |
|                      | newer than the leader's (KIP-320)                                                             |
| OffsetForLeaderEpoch | an epoch not above the one of the request, with its end; or neither                           |
| Metadata             | in-sync and offline replicas are replicas; the leader is in sync, and a broker that is named; |
|                      | partitions are numbered from zero                                                             |
"""

from collections.abc import Callable
from typing import Any, Final

from chaos.simulation.clients.asked import WrongAnswerError, check_error, pairs
from chaos.simulation.clients.lawful_errors import (
    OF_ACKS_ALL,
    OF_FETCH,
    OF_FETCH_SESSIONS,
    OF_LEADERS,
    OF_LIST_OFFSETS,
    OF_METADATA,
    OF_PRODUCE,
    OF_SEQUENCES,
)
from fixtures.clients.messages import ApiKey, error_name
from fixtures.clients.outcomes import REQUEST_TIMED_OUT
from reference_broker.protocol.durations import milliseconds
from reference_broker.protocol.record_batch import HEADER_SIZE_BYTES, BatchHeader, checksum

_READ_COMMITTED: Final = 1
_ACKS_ALL: Final = -1
_NO_EPOCH = _NO_OFFSET = _NO_NODE = _NO_TIME = -1
_LATEST, _EARLIEST = -1, -2
_CLOCK_SLACK: Final = 0.7
"""A node's clock may run faster than that of the client, by a fifth in this simulation."""


def check_answer(asked: Any, answer: Any, after_ms: int) -> None:
    """Raises `WrongAnswerError`, with what is wrong.

    :param asked: kio's request, with `answer` its response.
    :param after_ms: how long it has taken.
    """
    check = _CHECKS.get(asked.__api_key__)
    if check is not None:
        check(asked, answer, after_ms)


# --- checks, by question


def _of_produce(asked: Any, answer: Any, after_ms: int) -> None:
    for data, found in pairs(
        asked.topic_data,
        answer.responses,
        OF_PRODUCE,
        asked_in="partition_data",
        answered_in="partition_responses",
    ):
        if found.error_code and error_name(found.error_code) == REQUEST_TIMED_OUT:
            timeout_ms = milliseconds(asked.timeout)
            if after_ms < timeout_ms * _CLOCK_SLACK - 1:
                raise WrongAnswerError(f"{REQUEST_TIMED_OUT} after {after_ms} ms of {timeout_ms} ms")
        _of_batch(asked.acks, data, found)


def _of_batch(acks: int, data: Any, found: Any) -> None:
    records = data.records or b""
    if len(records) < HEADER_SIZE_BYTES:
        return
    header, error = BatchHeader.parse(records), error_name(found.error_code)
    fits = checksum(records[: header.size_bytes]) == header.crc
    if error in OF_ACKS_ALL and acks != _ACKS_ALL:
        raise WrongAnswerError(f"{error} under acks={acks}, which waits for no replica")
    if error in OF_SEQUENCES and header.producer_id < 0:
        raise WrongAnswerError(f"{error} for a batch without a sequence")
    if error == "CORRUPT_MESSAGE" and fits:
        raise WrongAnswerError("CORRUPT_MESSAGE for a batch that is sound")
    if error is not None:
        return
    if not fits:
        raise WrongAnswerError("a batch is taken whose checksum does not fit")
    if found.base_offset < 0:
        raise WrongAnswerError(f"a batch is taken at offset {found.base_offset}")
    if header.producer_id < 0 and not 0 <= found.log_start_offset <= found.base_offset:
        raise WrongAnswerError(
            f"a batch is taken at offset {found.base_offset} of a log that starts at {found.log_start_offset}"
        )


def _of_fetch(asked: Any, answer: Any, after_ms: int) -> None:
    if answer.error_code:
        check_error(OF_FETCH_SESSIONS, answer.error_code)
        return
    for wanted, found in pairs(asked.topics, answer.responses, OF_FETCH):
        _of_fetched(asked, wanted, found, after_ms)


def _of_fetched(asked: Any, wanted: Any, found: Any, after_ms: int) -> None:
    records = found.records or b""
    if found.error_code:
        error = error_name(found.error_code)
        if records:
            raise WrongAnswerError(f"{error} with {len(records)} bytes of records")
        if error in {"FENCED_LEADER_EPOCH", "UNKNOWN_LEADER_EPOCH"} and wanted.current_leader_epoch < 0:
            raise WrongAnswerError(f"{error} for a question without an epoch")
        return
    bounds = found.log_start_offset, found.last_stable_offset, found.high_watermark
    if not 0 <= bounds[0] <= bounds[1] <= bounds[2]:
        raise WrongAnswerError(
            "log start {}, last stable offset {}, high watermark {} are out of order".format(*bounds)
        )
    if wanted.fetch_offset < found.log_start_offset:
        raise WrongAnswerError(f"no error for {wanted.fetch_offset}, where the log starts at {found.log_start_offset}")
    if found.diverging_epoch.end_offset >= 0:
        raise WrongAnswerError("a diverging epoch for a consumer")
    visible = found.last_stable_offset if asked.isolation_level == _READ_COMMITTED else found.high_watermark
    if records:
        _of_records(asked, wanted, records, visible)
    elif wanted.fetch_offset < visible and min(asked.max_bytes, wanted.partition_max_bytes) > 0:
        raise WrongAnswerError(f"nothing from {wanted.fetch_offset} on, where {visible} is visible")
    elif wanted.fetch_offset == visible and asked.min_bytes > 0:
        max_wait_ms = milliseconds(asked.max_wait)
        if after_ms < max_wait_ms * _CLOCK_SLACK - 1:
            raise WrongAnswerError(f"nothing after {after_ms} ms of {max_wait_ms} ms to wait")


def _of_records(asked: Any, wanted: Any, records: bytes, visible: int) -> None:
    position, expected, epoch = 0, wanted.fetch_offset, _NO_EPOCH
    first_bytes = 0
    while position + HEADER_SIZE_BYTES <= len(records):
        header = BatchHeader.parse(records, position)
        if position == 0:
            first_bytes = header.size_bytes
            if header.last_offset < expected:
                raise WrongAnswerError(f"offsets {header.base_offset}-{header.last_offset} from {expected} on")
        elif header.base_offset < expected:
            raise WrongAnswerError(f"offset {header.base_offset} where {expected} is next")
        if header.last_offset >= visible:
            raise WrongAnswerError(f"offsets up to {header.last_offset}, of which what is below {visible} is visible")
        if header.leader_epoch < epoch or 0 <= wanted.current_leader_epoch < header.leader_epoch:
            raise WrongAnswerError(
                f"epoch {header.leader_epoch} behind {epoch}, from a leader of epoch {wanted.current_leader_epoch}"
            )
        expected, epoch = header.last_offset + 1, header.leader_epoch
        position += header.size_bytes
    if position != len(records):
        raise WrongAnswerError(f"{len(records)} bytes, which end inside a batch")
    if len(records) > max(first_bytes, min(wanted.partition_max_bytes, asked.max_bytes)):
        raise WrongAnswerError(f"{len(records)} bytes, where {wanted.partition_max_bytes} were wanted")


def _of_list_offsets(asked: Any, answer: Any, after_ms: int) -> None:
    for wanted, found in pairs(asked.topics, answer.topics, OF_LIST_OFFSETS):
        told = f"offset {found.offset}, timestamp {found.timestamp}, epoch {found.leader_epoch}"
        if found.error_code:
            if found.offset != _NO_OFFSET:
                raise WrongAnswerError(f"{told} with {error_name(found.error_code)}")
            if error_name(found.error_code) == "OFFSET_NOT_AVAILABLE" and wanted.timestamp == _EARLIEST:
                raise WrongAnswerError("OFFSET_NOT_AVAILABLE for the start of a log")
            continue
        if 0 <= wanted.current_leader_epoch < found.leader_epoch:
            raise WrongAnswerError(f"{told} from a leader of epoch {wanted.current_leader_epoch}")
        if wanted.timestamp in {_LATEST, _EARLIEST} and (found.offset < 0 or found.timestamp != _NO_TIME):
            raise WrongAnswerError(f"{told} for an end of a log")
        if wanted.timestamp == _LATEST and found.leader_epoch < 0:
            raise WrongAnswerError(f"{told} for the end of a log")
        if wanted.timestamp >= 0 and found.offset >= 0 and found.timestamp < wanted.timestamp:
            raise WrongAnswerError(f"{told}, where nothing older than {wanted.timestamp} was asked for")
        if (
            (found.offset < 0 or found.leader_epoch < 0)
            and wanted.timestamp >= 0
            and found.offset != found.leader_epoch
        ):
            raise WrongAnswerError(f"{told} for a time")


def _of_epoch_ends(asked: Any, answer: Any, after_ms: int) -> None:
    for wanted, found in pairs(asked.topics, answer.topics, OF_LEADERS):
        told = f"epoch {found.leader_epoch} with end {found.end_offset}"
        is_undefined = found.leader_epoch == _NO_EPOCH and found.end_offset == _NO_OFFSET
        if found.error_code:
            if not is_undefined:
                raise WrongAnswerError(f"{told} with {error_name(found.error_code)}")
        elif not is_undefined and not (0 <= found.leader_epoch <= wanted.leader_epoch and found.end_offset >= 0):
            raise WrongAnswerError(f"{told} for epoch {wanted.leader_epoch}")


def _of_metadata(asked: Any, answer: Any, after_ms: int) -> None:
    brokers = [broker.node_id for broker in answer.brokers]
    if len(set(brokers)) < len(brokers):
        raise WrongAnswerError(f"brokers {brokers}")
    if answer.controller_id != _NO_NODE and answer.controller_id not in brokers:
        raise WrongAnswerError(f"the controller {answer.controller_id}, which is none of the brokers {brokers}")
    if asked.topics is not None:
        wanted = sorted(str(topic.topic_id or topic.name) for topic in asked.topics)
        by_id = any(topic.topic_id for topic in asked.topics)
        answered = sorted(str(topic.topic_id if by_id else topic.name) for topic in answer.topics)
        if wanted != answered:
            raise WrongAnswerError(f"topics {answered} to a question about {wanted}")
    for topic in answer.topics:
        check_error(OF_METADATA, topic.error_code)
        if topic.error_code and topic.partitions:
            raise WrongAnswerError(
                f"{topic.name} with {error_name(topic.error_code)} and {len(topic.partitions)} partitions"
            )
        if sorted(part.partition_index for part in topic.partitions) != list(range(len(topic.partitions))):
            raise WrongAnswerError(f"{topic.name} has partitions {[part.partition_index for part in topic.partitions]}")
        for part in topic.partitions:
            _of_placed(part, brokers)


def _of_placed(part: Any, brokers: list[int]) -> None:
    check_error(OF_METADATA, part.error_code)
    replicas, isr = set(part.replica_nodes), set(part.isr_nodes)
    if len(replicas) < len(part.replica_nodes) or len(isr) < len(part.isr_nodes) or not isr <= replicas:
        raise WrongAnswerError(f"in-sync replicas {part.isr_nodes} of {part.replica_nodes}")
    if not set(part.offline_replicas) <= replicas:
        raise WrongAnswerError(f"offline replicas {part.offline_replicas} of {part.replica_nodes}")
    if part.leader_epoch < 0:
        raise WrongAnswerError(f"leader epoch {part.leader_epoch}")
    if part.leader_id == _NO_NODE:
        if not part.error_code:
            raise WrongAnswerError("no leader, and no error")
    elif part.leader_id not in isr or part.leader_id not in brokers:
        raise WrongAnswerError(f"the leader {part.leader_id}, in-sync replicas {part.isr_nodes}, brokers {brokers}")


_CHECKS: Final[dict[int, Callable[[Any, Any, int], None]]] = {
    ApiKey.PRODUCE: _of_produce,
    ApiKey.FETCH: _of_fetch,
    ApiKey.LIST_OFFSETS: _of_list_offsets,
    ApiKey.OFFSET_FOR_LEADER_EPOCH: _of_epoch_ends,
    ApiKey.METADATA: _of_metadata,
}
