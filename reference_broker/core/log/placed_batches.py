"""Batches of a fetch response, checked against the log of the follower that appends them.

Follows: org.apache.kafka.storage.internals.log.UnifiedLog.

Rules of this file, which are Kafka's for a follower:
- An answer is cut at a size, so that its last batch may be torn; that one is passed over.
- Every batch matches its checksum and begins behind the one before it. It need not begin at once behind it: a leader
  that compacts has gaps.
- The first batch of an empty log may reach below its end, where the leader's log starts in the middle of a batch.
- Leader epochs never fall. One above that of the leader that was asked ends the run: the leader lost its office while
  it answered, and such batches may not be committed (KAFKA-18723).
"""

from collections.abc import Iterator

from reference_broker.core.log.errors import AppendError
from reference_broker.protocol.record_batch import HEADER_SIZE_BYTES, MAGIC, BatchHeader, Bytes, checksum


def placed_batches(
    records: Bytes, *, log_end_offset: int, is_empty: bool, latest_epoch: int, leader_epoch: int
) -> Iterator[tuple[BatchHeader, memoryview]]:
    """Header and bytes of each batch that a log with this end and latest epoch can take.

    :raises AppendError: a batch is damaged, or does not follow the one before it.
    """
    view = memoryview(records)
    while len(view) >= HEADER_SIZE_BYTES:
        header = BatchHeader.parse(view)
        if header.size_bytes > len(view) or header.leader_epoch > leader_epoch:
            return
        batch = view[: header.size_bytes]
        _check_whole(header, batch)
        lowest = header.last_offset if is_empty else header.base_offset
        if lowest < log_end_offset or header.leader_epoch < latest_epoch:
            raise AppendError(
                "INVALID_RECORD",
                f"a batch at {header.base_offset} of epoch {header.leader_epoch} does not follow"
                f" a log that ends at {log_end_offset} with epoch {latest_epoch}",
            )
        yield header, batch
        view = view[header.size_bytes :]
        log_end_offset, is_empty, latest_epoch = header.last_offset + 1, False, header.leader_epoch


def _check_whole(header: BatchHeader, batch: memoryview) -> None:
    if header.size_bytes < HEADER_SIZE_BYTES or header.magic != MAGIC or header.last_offset_delta < 0:
        raise AppendError("CORRUPT_MESSAGE", f"what stands at offset {header.base_offset} is no batch")
    if header.crc != checksum(batch):
        raise AppendError(
            "CORRUPT_MESSAGE",
            f"the checksum {header.crc:#010x} at offset {header.base_offset} is not that of the batch",
        )
