"""Division of a stream into length-prefixed requests, whatever the sizes of the pieces in which it arrives."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference_broker.protocol.errors import MalformedRequestError
from reference_broker.protocol.framing import FrameBuffer


def framed(frame: bytes) -> bytes:
    return struct.pack(">i", len(frame)) + frame


def take_all(buffer: FrameBuffer) -> list[bytes]:
    frames = []
    while (frame := buffer.next_frame()) is not None:
        frames.append(frame)
    return frames


@given(st.lists(st.binary(max_size=50)), st.data())
def test_frames_are_complete_and_in_order(frames, data):
    stream = b"".join(map(framed, frames))
    buffer, found = FrameBuffer(50), []
    while stream:
        size = data.draw(st.integers(1, len(stream)))
        buffer.feed(stream[:size])
        stream = stream[size:]
        found += take_all(buffer)
    assert found == frames
    assert len(buffer) == 0


@pytest.mark.parametrize("size", [-1, -(2**31), 101, 2**31 - 1, int.from_bytes(b"GET ", "big")])
def test_invalid_size_is_rejected_before_the_message_arrives(size):
    buffer = FrameBuffer(100)
    buffer.feed(struct.pack(">i", size))
    with pytest.raises(MalformedRequestError, match=str(size)):
        buffer.next_frame()


def test_largest_permitted_size_is_accepted():
    buffer = FrameBuffer(100)
    buffer.feed(framed(b"x" * 100))
    assert buffer.next_frame() == b"x" * 100
