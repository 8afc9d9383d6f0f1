"""ISR proposals on their way to the controller: AlterPartition (56) (Kafka's `AlterPartitionManager`).

One request is under way at a time and carries all that was proposed meanwhile. A proposal stays until it is answered,
whatever becomes of a request, and as it was made: one that is out of date by then changes nothing, at the controller
(by its partition epoch) or here.
"""

from collections.abc import Callable
from typing import Any

from reference_broker.core.clock import Now
from reference_broker.core.replication.isr import IsrState
from reference_broker.core.replication.partition import Partition
from reference_broker.core.replication.requests import Proposal, alter_partition_request
from reference_broker.core.timers import Timers
from reference_broker.protocol.errors import ErrorCode

AskController = Callable[[Any, Callable[[Any, Now], None], Now], None]
"""Sends a request to the active controller; null for an answer means that none came."""

_RETRY_MS = 50


class AlterPartitionManager:
    """The proposals of one broker.

    :param broker_epoch: gives this broker's epoch.
    """

    def __init__(self, node_id: int, timers: Timers, ask: AskController, broker_epoch: Callable[[], int]) -> None:
        self._node_id = node_id
        self._timers = timers
        self._ask = ask
        self._broker_epoch = broker_epoch
        self._proposals: dict[tuple[str, int], Proposal] = {}
        self._is_under_way = False

    def propose(self, partition: Partition, proposal: IsrState, now: Now) -> None:
        """Take a proposal; it is in place of an earlier one of this partition."""
        self._proposals[partition.key] = Proposal.of(partition, proposal)
        self._send(now)

    def _send(self, now: Now) -> None:
        if self._is_under_way or not self._proposals:
            return
        self._is_under_way = True
        sent = dict(self._proposals)
        request = alter_partition_request(self._node_id, self._broker_epoch(), sent.values())
        self._ask(request, lambda response, then: self._answered(sent, response, then), now)

    def _answered(self, sent: dict[tuple[str, int], Proposal], response: Any, now: Now) -> None:
        self._is_under_way = False
        if response is None or response.error_code is not ErrorCode.none:
            self._timers.set(now.monotonic_ms + _RETRY_MS, self._send)
            return
        answers = {
            (topic.topic_id, answer.partition_index): answer for topic in response.topics for answer in topic.partitions
        }
        for key, proposal in sent.items():
            answer = answers.get((proposal.partition.topic_id, proposal.partition.index))
            if answer is not None:
                if self._proposals.get(key) is proposal:
                    del self._proposals[key]
                _settle(proposal.partition, proposal.isr, answer, now)
        self._send(now)


def _settle(partition: Partition, proposal: IsrState, answer: Any, now: Now) -> None:
    if answer.error_code is not ErrorCode.none:
        partition.isr_refused(proposal, answer.error_code, now)
    else:
        partition.isr_accepted(
            proposal,
            isr=answer.isr,
            leader_epoch=answer.leader_epoch,
            partition_epoch=answer.partition_epoch,
            now=now,
        )
