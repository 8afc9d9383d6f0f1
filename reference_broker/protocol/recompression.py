"""A batch in another codec: what a topic's `compression.type` prescribes, whatever its producer chose (KIP-110).

The records stay as they are; only how they are packed changes, and with it length, attributes and checksum. Snappy is
framed in blocks as Java producers frame it. Levels are the codecs' own defaults.
"""

import gzip
import struct
from collections.abc import Iterator

from reference_broker.protocol.record_batch import (
    HEADER_SIZE_BYTES,
    LOG_OVERHEAD_BYTES,
    SNAPPY_JAVA_MAGIC,
    BatchHeader,
    Bytes,
    Codec,
    checksum,
    decompress,
    with_codec,
)

_SNAPPY_VERSIONS = struct.pack(">ii", 1, 1)
_SNAPPY_BLOCK_BYTES = 32 * 1024


def recompressed(header: BatchHeader, batch: Bytes, codec: Codec) -> bytes:
    """The whole batch with its records in this codec.

    :raises CompressionError: the records cannot be decompressed.
    """
    records = _compress(codec, decompress(header, memoryview(batch)[HEADER_SIZE_BYTES : header.size_bytes]))
    length = HEADER_SIZE_BYTES - LOG_OVERHEAD_BYTES + len(records)
    changed = with_codec(header, codec)._replace(length=length)
    return changed._replace(crc=checksum(changed.pack() + records)).pack() + records


def _compress(codec: Codec, data: bytes) -> bytes:
    match codec:
        case Codec.NONE:
            return data
        case Codec.GZIP:
            return gzip.compress(data, mtime=0)
        case Codec.SNAPPY:
            return SNAPPY_JAVA_MAGIC + _SNAPPY_VERSIONS + b"".join(_snappy_blocks(data))
        case Codec.LZ4 | Codec.ZSTD:
            return _arrow_compress(codec, data)


def _snappy_blocks(data: bytes) -> Iterator[bytes]:
    for start in range(0, len(data), _SNAPPY_BLOCK_BYTES):
        block = _arrow_compress(Codec.SNAPPY, data[start : start + _SNAPPY_BLOCK_BYTES])
        yield struct.pack(">i", len(block))
        yield block


def _arrow_compress(codec: Codec, data: bytes) -> bytes:
    """Arrow is loaded for the first batch that needs it: see `record_batch`."""
    import pyarrow as pa

    return bytes(pa.Codec(codec.name.lower()).compress(data, asbytes=True))
