"""What repeats is read and written once, and never mixed up."""

from reference_broker.protocol.repeated import remembering, remembering_writer


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
