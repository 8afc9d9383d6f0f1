"""Framing of requests: splits a stream of bytes into frames, each of which follows its size in four bytes.

Follows: org.apache.kafka.common.network.NetworkReceive.

Rules of this file:
- A size is validated before the frame is complete (KAFKA-2878, KAFKA-5062). If it is negative or exceeds
  `socket.request.max.bytes`, the connection must be closed, because the start of the next request is unknown.
- There is no socket here. The shell adds received bytes in pieces of any length, and takes complete frames.
"""

from reference_broker.protocol.errors import MalformedRequestError

_SIZE_BYTES = 4


class FrameBuffer:
    """Received bytes of one connection that are not yet handled.

    :param frame_size_max_bytes: `socket.request.max.bytes`.
    """

    __slots__ = ("_frame_size_max_bytes", "_received")

    def __init__(self, frame_size_max_bytes: int) -> None:
        self._frame_size_max_bytes = frame_size_max_bytes
        self._received = bytearray()

    def __len__(self) -> int:
        return len(self._received)

    def feed(self, data: bytes) -> None:
        """Add received bytes."""
        self._received += data

    def clear(self) -> None:
        """Discard the received bytes."""
        self._received = bytearray()

    def next_frame(self) -> bytes | None:
        """Return the next frame without its size, or null if it is incomplete. Raises `MalformedRequestError`."""
        if len(self._received) < _SIZE_BYTES:
            return None
        size_bytes = int.from_bytes(self._received[:_SIZE_BYTES], "big", signed=True)
        if not 0 <= size_bytes <= self._frame_size_max_bytes:
            raise MalformedRequestError(f"a request of {size_bytes} bytes; the limit is {self._frame_size_max_bytes}")
        end = _SIZE_BYTES + size_bytes
        if len(self._received) < end:
            return None
        with memoryview(self._received) as received:
            frame = bytes(received[_SIZE_BYTES:end])
        del self._received[:end]
        return frame
