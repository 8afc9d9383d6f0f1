"""Requests for replication: Fetch and ListOffsets to a leader, AlterPartition to the controller, as kio's entities.

Follows: kafka.server.RemoteLeaderEndPoint (KIP-497, KIP-903).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import groupby
from typing import Any, Self

from reference_broker.core.replication.fetch_settings import FetchSettings
from reference_broker.core.replication.fetch_state import PartitionFetchState
from reference_broker.core.replication.isr import IsrState
from reference_broker.core.replication.partition import Partition
from reference_broker.protocol.schemas import request_schema

RequestedPartition = tuple[PartitionFetchState, int]
"""Fetch state of a partition, and its fetch offset."""


@dataclass(frozen=True, slots=True, eq=False)
class Proposal:
    """A proposed ISR of a partition. The epochs are those at the proposal, although it may be sent later.

    :ivar members: node id and broker epoch of each replica in the proposed ISR (KIP-903).
    """

    partition: Partition
    isr: IsrState
    leader_epoch: int
    partition_epoch: int
    members: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, partition: Partition, isr: IsrState) -> Self:
        """Return a proposal with the current epochs."""
        members = tuple(partition.followers.with_broker_epochs(isr.proposed))
        return cls(partition, isr, partition.leader_epoch, partition.partition_epoch, members)


_FETCH = (1, 18)
_LIST_OFFSETS = (2, 11)
_ALTER_PARTITION = (56, 3)
"""API keys and versions."""
_READ_UNCOMMITTED = 0


def fetch_request(settings: FetchSettings, broker_epoch: int, requested: Sequence[RequestedPartition]) -> Any:
    """Return a follower's Fetch (1) request, version 18, without a session.

    The order of the partitions is kept. A topic is therefore repeated if its partitions are not adjacent.
    """
    module = request_schema(*_FETCH)
    return module.FetchRequest(
        replica_state=module.ReplicaState(replica_id=settings.node_id, replica_epoch=broker_epoch),
        max_wait=settings.max_wait,
        min_bytes=settings.min_bytes,
        max_bytes=settings.max_bytes,
        topics=tuple(
            module.FetchTopic(
                topic_id=topic_id,
                partitions=tuple(
                    _fetch_partition(state, offset, settings.partition_max_bytes) for state, offset in of_topic
                ),
            )
            for topic_id, of_topic in groupby(requested, key=lambda pair: pair[0].partition.topic_id)
        ),
        forgotten_topics_data=(),
    )


def _fetch_partition(state: PartitionFetchState, offset: int, max_bytes: int) -> Any:
    module = request_schema(*_FETCH)
    return module.FetchPartition(
        partition=state.partition.index,
        current_leader_epoch=state.leader_epoch,
        fetch_offset=offset,
        last_fetched_epoch=state.partition.log.latest_epoch,
        log_start_offset=state.partition.log_start_offset,
        partition_max_bytes=max_bytes,
    )


def list_offsets_request(settings: FetchSettings, state: PartitionFetchState, timestamp: int) -> Any:
    """Return a follower's ListOffsets (2) request, version 11, for one partition.

    :param timestamp: -1 for the log end offset, -2 for the log start offset.
    """
    module = request_schema(*_LIST_OFFSETS)
    requested = module.ListOffsetsPartition(
        partition_index=state.partition.index, current_leader_epoch=state.leader_epoch, timestamp=timestamp
    )
    return module.ListOffsetsRequest(
        replica_id=settings.node_id,
        isolation_level=_READ_UNCOMMITTED,
        topics=(module.ListOffsetsTopic(name=state.partition.topic, partitions=(requested,)),),
        timeout=timedelta(milliseconds=settings.timeout_ms),
    )


def alter_partition_request(node_id: int, broker_epoch: int, proposals: Iterable[Proposal]) -> Any:
    """Return a leader's AlterPartition (56) request, version 3."""
    module = request_schema(*_ALTER_PARTITION)
    by_topic = sorted(proposals, key=lambda proposal: proposal.partition.key)
    return module.AlterPartitionRequest(
        broker_id=node_id,
        broker_epoch=broker_epoch,
        topics=tuple(
            module.TopicData(topic_id=topic_id, partitions=tuple(map(_alter_partition, of_topic)))
            for topic_id, of_topic in groupby(by_topic, key=lambda proposal: proposal.partition.topic_id)
        ),
    )


def _alter_partition(proposal: Proposal) -> Any:
    module = request_schema(*_ALTER_PARTITION)
    return module.PartitionData(
        partition_index=proposal.partition.index,
        leader_epoch=proposal.leader_epoch,
        new_isr_with_epochs=tuple(
            module.BrokerState(broker_id=node, broker_epoch=broker_epoch) for node, broker_epoch in proposal.members
        ),
        partition_epoch=proposal.partition_epoch,
    )
