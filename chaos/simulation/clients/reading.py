"""What a Fetch answer holds for a consumer at a position: records, and where it goes on."""

from typing import Any

from chaos.simulation.clients.view import Place
from fixtures.clients.messages import error_name
from fixtures.clients.payload import from_record
from fixtures.clients.record_batch import decode_batches
from fixtures.clients.recorded_connection import known
from linearizability.history.recorder import Position, Read


def fetched_partition(response: Any) -> tuple[Any, str | None]:
    """The one partition of an answer, null where there is none, and the error of the whole or of the partition."""
    error = error_name(response.error_code)
    if error is not None:
        return None, error
    of_partition = response.responses[0].partitions[0]
    return of_partition, error_name(of_partition.error_code)


def read_batches(data: bytes, place: Place, topic_id: str | None, offset: int) -> tuple[list[Read], int, int | None]:
    """What a consumer at `offset` sees of some batches, the offset behind them, and the last batch's leader epoch.

    Raises `MalformedBatch`.
    """
    reads: list[Read] = []
    after, epoch = offset, None
    for batch in decode_batches(data):
        after, epoch = max(after, batch.next_offset), batch.leader_epoch
        if batch.control:
            continue
        for record in batch.records:
            assert record.offset is not None
            if record.offset >= offset:
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
    return reads, after, epoch


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
