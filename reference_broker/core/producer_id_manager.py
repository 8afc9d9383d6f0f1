"""Producer ids, which the controller allocates in blocks: one metadata record for a whole block.

Follows: org.apache.kafka.coordinator.transaction.ProducerIdManager (KIP-730).

The controller allocates each id once. When the broker stops, the rest of its block is discarded. When the block is
exhausted, requests wait for the next block. If the controller does not allocate it, all waiting requests fail, and
clients may retry.
"""

from collections import deque
from collections.abc import Callable
from typing import Any

from reference_broker.core.channels import SendToController
from reference_broker.core.clock import Now
from reference_broker.protocol.errors import ErrorCode
from reference_broker.protocol.schemas import request_schema

_ALLOCATE_PRODUCER_IDS = (67, 0)
"""API key and version."""

ProducerIdCallback = Callable[[int | None, Now], None]
"""Takes a producer id, or null if none was allocated."""


class ProducerIdManager:
    """The block of this broker, and the requests that wait for the next one.

    :param broker_epoch: returns this broker's epoch.
    """

    def __init__(self, node_id: int, broker_epoch: Callable[[], int], send_to_controller: SendToController) -> None:
        self._node_id = node_id
        self._broker_epoch = broker_epoch
        self._send_to_controller = send_to_controller
        self._block = range(0)
        self._waiting: deque[ProducerIdCallback] = deque()

    @property
    def remaining(self) -> int:
        """The number of ids that are left of the block."""
        return len(self._block)

    def generate_producer_id(self, callback: ProducerIdCallback, now: Now) -> None:
        """Call `callback` with a new id, possibly at once, or with null if the controller allocates no block."""
        self._waiting.append(callback)
        if len(self._waiting) == 1:
            self._serve(now)

    def _serve(self, now: Now) -> None:
        while self._waiting and self._block:
            producer_id, self._block = self._block[0], self._block[1:]
            self._waiting.popleft()(producer_id, now)
        if self._waiting:
            self._request_next_block(now)

    def _request_next_block(self, now: Now) -> None:
        module = request_schema(*_ALLOCATE_PRODUCER_IDS)
        request = module.AllocateProducerIdsRequest(broker_id=self._node_id, broker_epoch=self._broker_epoch())
        self._send_to_controller(request, self._handle_allocate_producer_ids_response, now)

    def _handle_allocate_producer_ids_response(self, response: Any, now: Now) -> None:
        if response is not None and response.error_code is ErrorCode.none:
            self._block = range(response.producer_id_start, response.producer_id_start + response.producer_id_len)
            self._serve(now)
        else:
            waiting, self._waiting = self._waiting, deque()
            for callback in waiting:
                callback(None, now)
