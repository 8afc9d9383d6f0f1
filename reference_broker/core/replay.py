"""Reading a log of the broker's own from its start to its end, to come back to the state that its records make."""

from collections.abc import Iterator

from reference_broker.core.log.partition_log import PartitionLog
from reference_broker.protocol.records import KeyValue, decode_batches

_READ_SIZE_BYTES = 1024 * 1024


def records_of(log: PartitionLog) -> Iterator[KeyValue]:
    """Every record that the log holds now, in order."""
    next_offset, end_offset = log.log_start_offset, log.log_end_offset
    while next_offset < end_offset:
        batches = log.read(next_offset, _READ_SIZE_BYTES, end_offset)
        for offset, record in decode_batches(batches):
            if offset >= next_offset:
                next_offset = offset + 1
                yield record
