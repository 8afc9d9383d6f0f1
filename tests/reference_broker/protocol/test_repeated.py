"""Caches of decoded and encoded messages: a lookup never returns the result for a different message."""

from weakref import WeakSet

import pytest

from fixtures.clients.raw import encode_request
from reference_broker.protocol.messages import message_codec
from reference_broker.protocol.repeated import Read, caching_reader, caching_writer
from tests.reference_broker.requests import request


def test_same_bytes_are_decoded_once_at_any_position() -> None:
    read: list[bytes] = []

    def reader(frame: bytes, position: int) -> object:
        read.append(frame[position:])
        return object()

    cached = caching_reader(reader)
    for size_bytes in (10, 1_000):
        read.clear()
        one, other = b"x" * size_bytes, b"x" * (size_bytes - 1) + b"y"
        first = cached(b"ab" + one, 2)
        assert cached(b"cde" + one, 3) is first
        assert cached(other, 0) is not first
        assert read == [one, other]


def test_large_messages_are_not_cached() -> None:
    cached = caching_reader(lambda frame, position: object())
    long = b"x" * 1_000_000
    assert cached(long, 0) is not cached(long, 0)


class Entity:
    """Decoded entity that permits weak references, by which the live entities are counted."""


def test_readers_of_all_versions_share_one_cache() -> None:
    alive: WeakSet[Entity] = WeakSet()

    def version_reader() -> Read:
        def read(frame: bytes, position: int) -> Entity:
            entity = Entity()
            alive.add(entity)
            return entity

        return caching_reader(read)

    readers = [version_reader() for _ in range(100)]
    for number in range(10):
        for reader in readers:
            reader(bytes([number]) * 100_000, 0)
    assert len(alive) <= 8
    for number in range(10):
        for reader in readers:
            reader(bytes([number]) * 400, 0)
    assert len(alive) <= 8 + 128
    one, other = readers[:2]
    assert one(b"same", 0) is not other(b"same", 0)


@pytest.mark.parametrize(("api_key", "version", "is_cached"), [(1, 12, True), (0, 9, False), (3, 12, False)])
def test_only_repeating_apis_are_cached(api_key: int, version: int, is_cached: bool) -> None:
    """Regression: the last Produce requests of each version were cached, two megabytes per version."""
    name = {0: "Produce", 1: "Fetch", 3: "Metadata"}[api_key]
    frame = encode_request(request(name, version), 1, "client")
    codec = message_codec(api_key, version)
    assert (codec.read(frame)[1] is codec.read(frame)[1]) is is_cached


def test_recent_entities_are_encoded_once() -> None:
    written: list[int] = []

    def write(entity: list[int]) -> bytes:
        written.append(entity[0])
        return bytes(entity)

    writer = caching_writer(write)
    entities = [[number] for number in range(9)]
    assert [writer(entities[number]) for number in (0, 1, 0, 1)] == [b"\x00", b"\x01", b"\x00", b"\x01"]
    assert writer([0]) == b"\x00"  # the cache compares by identity, not equality
    assert written == [0, 1, 0]
    for entity in entities:
        writer(entity)
    assert writer(entities[0]) == b"\x00"
