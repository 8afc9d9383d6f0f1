"""What a Fetch answer holds for a consumer at a position: records, and where it goes on."""

from typing import Any

from chaos.simulation.clients.view import Place
from fixtures.clients.messages import error_name
from fixtures.clients.payload import from_record
from fixtures.clients.record_batch import Record, decode_batches
from fixtures.clients.recorded_connection import known
from linearizability.history.recorder import Position, Read


def fetched_partition(response: Any) -> tuple[Any, str | None]:
    """The one partition of an answer, null where there is none, and the error of the whole or of the partition."""
    error = error_name(response.error_code)
    if error is not None:
        return None, error
    of_partition = response.responses[0].partitions[0]
    return of_partition, error_name(of_partition.error_code)


def read_batches(
    data: bytes, place: Place, topic_id: str | None, offset: int, records_max: int | None = None
) -> tuple[list[Read], int, int | None]:
    """What a consumer at `offset` sees of some batches, the offset behind them, and the last batch's leader epoch.

    :param records_max: leave off behind so many records.

    Raises `MalformedBatch`.
    """
    reads: list[Read] = []
    after, epoch = offset, None
    for batch in decode_batches(data):
        if len(reads) == records_max:
            break
        seen = () if batch.control else [record for record in batch.records if _offset_of(record) >= offset]
        taken = seen if records_max is None else seen[: records_max - len(reads)]
        for record in taken:
            contents = from_record(record)
            reads.append(
                Read(
                    place[0],
                    topic_id,
                    place[1],
                    record.offset,
                    contents.value,
                    contents.key,
                    batch.leader_epoch,
                    record.timestamp_ms,
                    contents.intact,
                )
            )
        is_through = len(taken) == len(seen)
        after = max(after, batch.next_offset if is_through else _offset_of(seen[len(taken)]))
        epoch = batch.leader_epoch
    return reads, after, epoch


def _offset_of(record: Record) -> int:
    assert record.offset is not None, "a record of a batch that was read has one"
    return record.offset


def passed_over(place: Place, topic_id: str | None, before: int, after: int, of_partition: Any) -> Position:
    """The row of `positions` for a fetch."""
    return Position(
        place[0],
        topic_id,
        place[1],
        before,
        after,
        "read",
        known(of_partition.high_watermark),
        known(of_partition.last_stable_offset),
        known(of_partition.log_start_offset),
    )


def moved_to(place: Place, topic_id: str | None, offset: int, cause: str) -> Position:
    """The row of `positions` for a move without reading."""
    return Position(place[0], topic_id, place[1], offset, offset, cause)
