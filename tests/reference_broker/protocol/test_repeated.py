"""What repeats is read and written once, and never mixed up."""

from weakref import WeakSet

import pytest

from fixtures.clients.raw import encode_request
from reference_broker.protocol.messages import message_codec
from reference_broker.protocol.repeated import Read, remembering, remembering_writer
from tests.reference_broker.requests import request


def test_the_same_bytes_are_read_once_wherever_they_stand() -> None:
    read: list[bytes] = []

    def reader(frame: bytes, position: int) -> object:
        read.append(frame[position:])
        return object()

    remembered = remembering(reader)
    for size_bytes in (10, 1_000):
        read.clear()
        one, other = b"x" * size_bytes, b"x" * (size_bytes - 1) + b"y"
        first = remembered(b"ab" + one, 2)
        assert remembered(b"cde" + one, 3) is first
        assert remembered(other, 0) is not first
        assert read == [one, other]


def test_those_with_many_records_are_read_each_time() -> None:
    remembered = remembering(lambda frame, position: object())
    long = b"x" * 1_000_000
    assert remembered(long, 0) is not remembered(long, 0)


class Entity:
    """Of some size, and seen to be alive."""


def test_readers_of_many_versions_keep_as_little_as_one() -> None:
    alive: WeakSet[Entity] = WeakSet()

    def reader_of_a_version() -> Read:
        def read(frame: bytes, position: int) -> Entity:
            entity = Entity()
            alive.add(entity)
            return entity

        return remembering(read)

    readers = [reader_of_a_version() for _ in range(100)]
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


@pytest.mark.parametrize(("api_key", "version", "is_kept"), [(1, 12, True), (0, 9, False), (3, 12, False)])
def test_only_what_repeats_is_kept(api_key: int, version: int, is_kept: bool) -> None:
    """Records of the last Produce requests of each version were kept: two megabytes for each version in use."""
    name = {0: "Produce", 1: "Fetch", 3: "Metadata"}[api_key]
    frame = encode_request(request(name, version), 1, "client")
    codec = message_codec(api_key, version)
    assert (codec.read(frame)[1] is codec.read(frame)[1]) is is_kept


def test_an_entity_is_written_once_while_it_is_among_the_last() -> None:
    written: list[int] = []

    def write(entity: list[int]) -> bytes:
        written.append(entity[0])
        return bytes(entity)

    writer = remembering_writer(write)
    entities = [[number] for number in range(9)]
    assert [writer(entities[number]) for number in (0, 1, 0, 1)] == [b"\x00", b"\x01", b"\x00", b"\x01"]
    assert writer([0]) == b"\x00"  # an equal one is another one
    assert written == [0, 1, 0]
    for entity in entities:
        writer(entity)
    assert writer(entities[0]) == b"\x00"
