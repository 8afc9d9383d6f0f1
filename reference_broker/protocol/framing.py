"""The length prefix: a stream of bytes becomes requests, each four bytes of size and so many bytes of message.

Rules of this file:
- A size is judged before a byte of its message is kept (KAFKA-2878, KAFKA-5062): negative, or above
  `socket.request.max.bytes`, and the connection is beyond repair, since nobody knows where the next request begins.
- No socket here. The shell feeds what it received, in pieces of any size, and takes whole frames out.
"""

from reference_broker.protocol.errors import MalformedRequestError

_SIZE_BYTES = 4


class FrameBuffer:
    """What one connection has received and not yet taken out.

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
        """Drop what was received."""
        self._received = bytearray()

    def next_frame(self) -> bytes | None:
        """The next whole request without its length; null while it is incomplete. Raises `MalformedRequestError`."""
        if len(self._received) < _SIZE_BYTES:
            return None
        size_bytes = int.from_bytes(self._received[:_SIZE_BYTES], "big", signed=True)
        if not 0 <= size_bytes <= self._frame_size_max_bytes:
            raise MalformedRequestError(f"a request of {size_bytes} bytes, the limit is {self._frame_size_max_bytes}")
        end = _SIZE_BYTES + size_bytes
        if len(self._received) < end:
            return None
        with memoryview(self._received) as received:
            frame = bytes(received[_SIZE_BYTES:end])
        del self._received[:end]
        return frame
