"""Recompression of a batch with the codec of the topic's `compression.type` (KIP-110).

The records do not change; length, attributes and checksum do. Snappy is written in blocks, as Java producers do.
Compression levels are the codecs' defaults.
"""

import struct
import zlib
from collections.abc import Iterator

from reference_broker.protocol.record_batch import (
    HEADER_SIZE_BYTES,
    LOG_OVERHEAD_BYTES,
    SNAPPY_JAVA_MAGIC,
    BatchHeader,
    Codec,
    checksum,
    with_codec,
)
from reference_broker.protocol.steps import BYTES_PER_STEP, Steps

_SNAPPY_VERSIONS = struct.pack(">ii", 1, 1)
_SNAPPY_BLOCK_BYTES = 32 * 1024


def recompress(header: BatchHeader, data: bytes | bytearray, codec: Codec) -> Steps[bytes]:
    """Return the complete batch with its records compressed by this codec.

    :param data: the decompressed records.
    """
    records = yield from _compress(codec, data)
    length = HEADER_SIZE_BYTES - LOG_OVERHEAD_BYTES + len(records)
    changed = with_codec(header, codec)._replace(length=length)
    return changed._replace(crc=checksum(changed.pack() + records)).pack() + records


def _compress(codec: Codec, data: bytes | bytearray) -> Steps[bytes]:
    """Compress records. Arrow compresses LZ4 and zstd in one step, which is short even for large batches."""
    match codec:
        case Codec.NONE:
            return bytes(data)
        case Codec.GZIP:
            return (yield from _joined(_gzip_parts(data)))
        case Codec.SNAPPY:
            return SNAPPY_JAVA_MAGIC + _SNAPPY_VERSIONS + (yield from _joined(_snappy_parts(data)))
        case Codec.LZ4 | Codec.ZSTD:
            return _arrow_compress(codec, data)


def _joined(parts: Iterator[bytes]) -> Steps[bytes]:
    whole = bytearray()
    for part in parts:
        whole += part
        if len(part):
            yield
    return bytes(whole)


def _gzip_parts(data: bytes | bytearray) -> Iterator[bytes]:
    compressor = zlib.compressobj(wbits=31)
    for start in range(0, len(data), BYTES_PER_STEP):
        yield compressor.compress(data[start : start + BYTES_PER_STEP])
    yield compressor.flush()


def _snappy_parts(data: bytes | bytearray) -> Iterator[bytes]:
    for start in range(0, len(data), BYTES_PER_STEP):
        yield b"".join(_snappy_blocks(data[start : start + BYTES_PER_STEP]))


def _snappy_blocks(data: bytes | bytearray) -> Iterator[bytes]:
    for start in range(0, len(data), _SNAPPY_BLOCK_BYTES):
        block = _arrow_compress(Codec.SNAPPY, data[start : start + _SNAPPY_BLOCK_BYTES])
        yield struct.pack(">i", len(block))
        yield block


def _arrow_compress(codec: Codec, data: bytes | bytearray) -> bytes:
    """Compress with Arrow, which is imported for the first batch that needs it: see `record_batch`."""
    import pyarrow as pa

    return bytes(pa.Codec(codec.name.lower()).compress(data, asbytes=True))
