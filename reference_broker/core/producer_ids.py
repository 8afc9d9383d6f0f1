"""Producer ids, taken from the controller in blocks so that not every one costs a metadata record (KIP-730).

What is left of a block when the broker stops is never used: an id is unique for the life of the cluster.
"""

from collections.abc import Callable

from reference_broker.core.clock import Now
from reference_broker.core.controller import PRODUCER_ID_BLOCK_SIZE


class ProducerIds:
    """The block that this broker holds.

    :param take_block: gets the first id of a new block, committed to the metadata.
    """

    def __init__(self, take_block: Callable[[Now], int]) -> None:
        self._take_block = take_block
        self._block = range(0)

    def next(self, now: Now) -> int:
        """An id that nobody has had."""
        if not self._block:
            first = self._take_block(now)
            self._block = range(first, first + PRODUCER_ID_BLOCK_SIZE)
        producer_id, self._block = self._block[0], self._block[1:]
        return producer_id
