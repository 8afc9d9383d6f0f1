"""ISR proposals to the controller for the partitions that this broker leads: AlterPartition (56).

Follows: kafka.server.AlterPartitionManager (KIP-497).

One request is in flight at a time. It has all proposals that have no result yet. A proposal is sent unchanged in each
request until a response without a top-level error has its result. An outdated proposal has no effect: the controller
rejects it because of its partition epoch, and the partition ignores the result.
"""

from collections.abc import Callable
from typing import Any

from reference_broker.core.channels import SendToController
from reference_broker.core.clock import Now
from reference_broker.core.replication.isr import IsrState
from reference_broker.core.replication.partition import Partition
from reference_broker.core.replication.requests import Proposal, alter_partition_request
from reference_broker.core.timers import Timers
from reference_broker.protocol.errors import ErrorCode

_RETRY_MS = 50


class AlterPartitionManager:
    """The ISR proposals of one broker that have no result yet.

    :param broker_epoch: returns this broker's epoch.
    """

    def __init__(self, node_id: int, timers: Timers, send: SendToController, broker_epoch: Callable[[], int]) -> None:
        self._node_id = node_id
        self._timers = timers
        self._send_to_controller = send
        self._broker_epoch = broker_epoch
        self._proposals: dict[tuple[str, int], Proposal] = {}
        self._is_under_way = False

    def propose(self, partition: Partition, proposal: IsrState, now: Now) -> None:
        """Send a proposal, now or in the next request. It replaces an earlier proposal for the same partition."""
        self._proposals[partition.key] = Proposal.of(partition, proposal)
        self._send(now)

    def _send(self, now: Now) -> None:
        if self._is_under_way or not self._proposals:
            return
        self._is_under_way = True
        sent = dict(self._proposals)
        request = alter_partition_request(self._node_id, self._broker_epoch(), sent.values())
        self._send_to_controller(
            request, lambda response, later: self._handle_alter_partition_response(sent, response, later), now
        )

    def _handle_alter_partition_response(self, sent: dict[tuple[str, int], Proposal], response: Any, now: Now) -> None:
        self._is_under_way = False
        if response is None or response.error_code is not ErrorCode.none:
            self._timers.set(now.monotonic_ms + _RETRY_MS, self._send)
            return
        results = {
            (topic.topic_id, result.partition_index): result for topic in response.topics for result in topic.partitions
        }
        for key, proposal in sent.items():
            result = results.get((proposal.partition.topic_id, proposal.partition.index))
            if result is not None:
                if self._proposals.get(key) is proposal:
                    del self._proposals[key]
                _complete(proposal.partition, proposal.isr, result, now)
        self._send(now)


def _complete(partition: Partition, proposal: IsrState, result: Any, now: Now) -> None:
    if result.error_code is not ErrorCode.none:
        partition.handle_alter_partition_error(proposal, result.error_code, now)
    else:
        partition.handle_alter_partition_update(
            proposal,
            isr=result.isr,
            leader_epoch=result.leader_epoch,
            partition_epoch=result.partition_epoch,
            now=now,
        )
