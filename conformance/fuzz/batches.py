"""Contents of the records field of a Produce request: valid, damaged and outdated batches, and decompression bombs.

The format is that of Kafka's `DefaultRecordBatch` (magic 2, KIP-98), and of `LegacyRecord` for magic 0 and 1. Snappy is
framed as the Java client does it (xerial's `SnappyOutputStream`).
"""

import random
import struct
import zlib
from collections.abc import Sequence
from functools import cache

import pyarrow as pa
from crc32c import crc32c

from conformance.fuzz.wire import varint
from fixtures.clients.record_batch import Compression, Record, RecordBatch, encode_batch

BOMB_SIZES = (8 * 1024 * 1024, 64 * 1024 * 1024, 256 * 1024 * 1024)
"""Sizes in bytes to which a bomb decompresses, unless `bomb` halves them."""
BOMB_BYTES_MAX = 900_000
"""Maximum size of a compressed bomb. It is below Kafka's default of `max.message.bytes` (1 MiB): a batch above that is
rejected before it is decompressed."""
_ZEROS = bytes(1024 * 1024)
_GZIP_HEADER = b"\x1f\x8b\x08" + bytes(6) + b"\xff"
_INT32_MAX = 2**31 - 1
_INT64_MAX = 2**63 - 1
_DELTAS = (0, 1, -1, _INT32_MAX, -(2**31))
_COUNTS = (None, None, 0, -1, 1, 100_000, _INT32_MAX, -(2**31))
_TIMESTAMPS = (0, -1, -(2**63), _INT64_MAX, 1_700_000_000_000)
_PRODUCER_IDS = (-1, -1, -1, 0, 1, 1000, _INT64_MAX, -2)
_PRODUCER_EPOCHS = (-1, 0, 1, 32767, -(2**15))
_SEQUENCES = (-1, 0, 1, _INT32_MAX, -(2**31))


def random_batches(rng: random.Random) -> bytes:
    """Return the bytes of a records field: batches, a decompression bomb, a legacy message, or random bytes."""
    kind = rng.random()
    if kind < 0.03:
        return bomb(rng.choice(list(Compression)[1:]), rng.choice(BOMB_SIZES))
    if kind < 0.08:
        return rng.randbytes(rng.choice((0, 1, 12, 17, 60, 61, 62, 200)))
    if kind < 0.13:
        return legacy_message_set(rng)
    return b"".join(_batch(rng) for _ in range(rng.choice((1, 1, 1, 2))))


def _batch(rng: random.Random) -> bytes:
    """Return a batch, valid in about half of the cases."""
    records = tuple(_record(rng) for _ in range(rng.choice((0, 1, 1, 2, 5, 50))))
    is_valid = rng.random() < 0.5
    if is_valid:
        return encode_batch(RecordBatch(records, compression=rng.choice(list(Compression))))
    batch = RecordBatch(
        records,
        base_offset=rng.choice((0, 0, -1, _INT64_MAX)),
        leader_epoch=rng.choice((-1, 0, _INT32_MAX)),
        compression=rng.choice(list(Compression)),
        transactional=rng.random() < 0.2,
        control=rng.random() < 0.1,
        base_timestamp_ms=0,
        max_timestamp_ms=rng.choice(_TIMESTAMPS),
        last_offset_delta=rng.choice((None, *_DELTAS)),
        producer_id=rng.choice(_PRODUCER_IDS),
        producer_epoch=rng.choice(_PRODUCER_EPOCHS),
        base_sequence=rng.choice(_SEQUENCES),
    )
    damage = rng.choice(("crc", "count", "length", "cut", "magic", "bytes"))
    encoded = encode_batch(
        batch,
        magic=rng.choice((0, 1, 3, 127, -1)) if damage == "magic" else 2,
        crc=0 if damage == "crc" else None,
        record_count=rng.choice(_COUNTS) if damage == "count" else None,
        length=rng.choice((0, -1, 48, 49, _INT32_MAX, -(2**31))) if damage == "length" else None,
        cut_to=rng.randrange(1, 70) if damage == "cut" else None,
    )
    return _with_broken_records(encoded, rng) if damage == "bytes" else encoded


def _record(rng: random.Random) -> Record:
    value = rng.randbytes(rng.choice((0, 1, 16, 1000))) if rng.random() < 0.9 else None
    key = rng.choice((None, b"", b"k1", b"k2", b"\x00" * 300))
    headers = (("h", None), ("", b"x"))[: rng.randrange(3)]
    return Record(value, key, rng.choice((0, 1, 1_700_000_000_000)), headers)


def _with_broken_records(batch: bytes, rng: random.Random) -> bytes:
    """Overwrite bytes after the checksum, and correct the checksum: only decoding the batch shows the damage."""
    broken = bytearray(batch)
    for _ in range(rng.randrange(1, 6)):
        broken[rng.randrange(21, len(broken))] = rng.choice((0, 1, 0x7F, 0x80, 0xFF))
    broken[17:21] = struct.pack(">I", crc32c(bytes(broken[21:])))
    return bytes(broken)


def legacy_message_set(rng: random.Random) -> bytes:
    """Return a message of magic 0 or 1, which Kafka has not stored since 4.0 (KIP-724)."""
    magic = rng.randrange(2)
    body = struct.pack(">bb", magic, 0) + (struct.pack(">q", 0) if magic else b"")
    body += struct.pack(">i", -1) + struct.pack(">i", 3) + b"old"
    message = struct.pack(">I", zlib.crc32(body)) + body
    return struct.pack(">qi", 0, len(message)) + message


@cache
def bomb(compression: Compression, size: int) -> bytes:
    """Return a batch of one record of `size` zeros; the size is halved until the batch fits in `BOMB_BYTES_MAX`."""
    batch = _bomb(compression, size)
    return batch if len(batch) <= BOMB_BYTES_MAX else bomb(compression, size // 2)


def _bomb(compression: Compression, size: int) -> bytes:
    empty = encode_batch(RecordBatch((Record(b""),), compression=compression))
    value = varint(size << 1)
    body_size = 4 + len(value) + size + 1  # attributes, two deltas, no key; the value; no headers
    head = varint(body_size << 1) + b"\x00\x00\x00\x01" + value
    compressed = _compressed(compression, head, size, b"\x00")
    checked = empty[21:61] + compressed
    after_length = empty[12:17] + struct.pack(">I", crc32c(checked)) + checked
    return empty[:8] + struct.pack(">i", len(after_length)) + after_length


def _compressed(compression: Compression, head: bytes, zeros: int, tail: bytes) -> bytes:
    """Compress head, zeros and tail in pieces, so that the uncompressed content is never in memory as a whole."""
    pieces = [head, *(_ZEROS[: min(len(_ZEROS), zeros - start)] for start in range(0, zeros, len(_ZEROS))), tail]
    match compression:
        case Compression.GZIP:
            return _gzipped(pieces)
        case Compression.SNAPPY:
            codec = pa.Codec("snappy")
            blocks = (codec.compress(piece, asbytes=True) for piece in pieces)
            header = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)
            return header + b"".join(struct.pack(">i", len(block)) + block for block in blocks)
        case _:
            sink = pa.BufferOutputStream()
            with pa.CompressedOutputStream(sink, compression.name.lower()) as stream:
                for piece in pieces:
                    stream.write(piece)
            return bytes(sink.getvalue())


def _gzipped(pieces: Sequence[bytes]) -> bytes:
    """Compress with a full flush after each piece, so that the compressed form of a repeated piece can be reused.

    All whole pieces of zeros are the object `_ZEROS`: a slice of all bytes of an object is the object itself.
    """
    flushed: dict[int, bytes] = {}
    checksum = 0
    for piece in pieces:
        checksum = zlib.crc32(piece, checksum)
        if id(piece) not in flushed:
            stream = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
            flushed[id(piece)] = stream.compress(piece) + stream.flush(zlib.Z_FULL_FLUSH)
    end = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS).flush()
    trailer = struct.pack("<II", checksum, sum(map(len, pieces)) & 0xFFFFFFFF)
    return _GZIP_HEADER + b"".join(flushed[id(piece)] for piece in pieces) + end + trailer
