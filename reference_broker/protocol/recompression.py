"""Recompression of a batch with the codec of the topic's `compression.type` (KIP-110).

The records do not change; length, attributes and checksum do. Snappy and LZ4 are written in blocks, as by
Java producers. Compression levels are the codecs' defaults.
"""

import struct
import zlib
from collections.abc import Callable, Iterator

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
_LZ4_HEADER = bytes.fromhex("04224d18604082")
"""Header of an LZ4 frame with independent blocks of up to 64 KiB, without checksums; the last byte is its checksum."""
_LZ4_BLOCK_BYTES = 64 * 1024
_LZ4_NOT_COMPRESSED = 1 << 31
_LZ4_END = bytes(4)


def recompress(header: BatchHeader, data: bytes | bytearray, codec: Codec) -> Steps[bytes]:
    """Return the complete batch with its records compressed by this codec.

    :param data: the decompressed records.
    """
    records = yield from _compress(codec, data)
    length = HEADER_SIZE_BYTES - LOG_OVERHEAD_BYTES + len(records)
    changed = with_codec(header, codec)._replace(length=length)
    return changed._replace(crc=checksum(changed.pack() + records)).pack() + records


def _compress(codec: Codec, data: bytes | bytearray) -> Steps[bytes]:
    """Compress records. Arrow compresses zstd in one step, which is short even for large batches."""
    match codec:
        case Codec.NONE:
            return bytes(data)
        case Codec.GZIP:
            return (yield from _joined(_gzip_parts(data)))
        case Codec.SNAPPY:
            return SNAPPY_JAVA_MAGIC + _SNAPPY_VERSIONS + (yield from _joined(_parts(data, _snappy_blocks)))
        case Codec.LZ4:
            return _LZ4_HEADER + (yield from _joined(_parts(data, _lz4_blocks))) + _LZ4_END
        case Codec.ZSTD:
            return _arrow_compress(codec.name.lower(), data)


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


def _parts(
    data: bytes | bytearray, compressed_blocks: Callable[[bytes | bytearray], Iterator[bytes]]
) -> Iterator[bytes]:
    """Yield the compressed blocks of one step at a time."""
    for start in range(0, len(data), BYTES_PER_STEP):
        yield b"".join(compressed_blocks(data[start : start + BYTES_PER_STEP]))


def _snappy_blocks(data: bytes | bytearray) -> Iterator[bytes]:
    for start in range(0, len(data), _SNAPPY_BLOCK_BYTES):
        block = _arrow_compress("snappy", data[start : start + _SNAPPY_BLOCK_BYTES])
        yield struct.pack(">i", len(block))
        yield block


def _lz4_blocks(data: bytes | bytearray) -> Iterator[bytes]:
    """Yield independent blocks with their lengths, as `Lz4BlockInputStream` requires them."""
    for start in range(0, len(data), _LZ4_BLOCK_BYTES):
        plain = data[start : start + _LZ4_BLOCK_BYTES]
        block = _arrow_compress("lz4_raw", plain)
        if len(block) < len(plain):
            yield struct.pack("<I", len(block)) + block
        else:
            yield struct.pack("<I", len(plain) | _LZ4_NOT_COMPRESSED) + plain


def _arrow_compress(codec: str, data: bytes | bytearray) -> bytes:
    """Compress with Arrow, which is imported for the first batch that needs it: see `record_batch`."""
    import pyarrow as pa

    return bytes(pa.Codec(codec).compress(data, asbytes=True))
