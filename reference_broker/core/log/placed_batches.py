"""Validation of the batches of a fetch response that a follower appends.

Follows: org.apache.kafka.storage.internals.log.UnifiedLog.

Rules of this file, as in `analyzeAndValidateRecords`:
- An incomplete last batch is ignored, since the size of a response is limited.
- Every batch matches its checksum and begins after the previous one. Gaps are valid: the leader may have compacted.
- The first batch for an empty log may begin below the log end, if the leader's log starts inside a batch.
- Leader epochs never decrease. A batch with a higher epoch than the request's is ignored, and so are all later batches.
  The leader has changed after the request, and such a batch may never be committed (KAFKA-18723).
"""

from collections.abc import Iterator

from reference_broker.core.log.errors import AppendError
from reference_broker.protocol.record_batch import HEADER_SIZE_BYTES, MAGIC, BatchHeader, Bytes, checksum


def placed_batches(
    records: Bytes, *, log_end_offset: int, is_empty: bool, latest_epoch: int, leader_epoch: int
) -> Iterator[tuple[BatchHeader, memoryview]]:
    """Yield header and bytes of each batch that can be appended to a log with this end and latest epoch.

    :raises AppendError: a batch is corrupt, or does not follow the previous one.
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
        raise AppendError("CORRUPT_MESSAGE", f"there is no valid batch at offset {header.base_offset}")
    if header.crc != checksum(batch):
        raise AppendError(
            "CORRUPT_MESSAGE",
            f"the checksum {header.crc:#010x} at offset {header.base_offset} is not that of the batch",
        )
