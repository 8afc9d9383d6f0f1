"""Report of a broker's log directory to the controller, after the broker's disk was replaced.

Follows: org.apache.kafka.server.AssignmentsManager (KIP-858).

A replica on this broker is misplaced if the metadata has another directory id for it. One AssignReplicasToDirs request
is in flight at a time and contains every misplaced replica. Requests are sent until no replica is misplaced.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from uuid import UUID

from reference_broker.core.broker_lifecycle_manager import UNKNOWN_EPOCH, ControllerChannel
from reference_broker.core.clock import Now
from reference_broker.core.identity import Identity
from reference_broker.core.metadata.delta import MetadataDelta
from reference_broker.core.metadata.image import MetadataImage
from reference_broker.core.timers import Timers
from reference_broker.protocol.metadata_records import PartitionRecord
from reference_broker.protocol.schemas import request_schema

_ASSIGN_REPLICAS_TO_DIRS = (73, 0)
"""API key and version."""
_TIMEOUT_MS = 30_000
_RETRY_MS = 100


class AssignmentsManager:
    """Sender of AssignReplicasToDirs requests for the replicas of one broker.

    :param image: returns the metadata image.
    :param broker_epoch: returns this broker's epoch.
    """

    def __init__(
        self,
        identity: Identity,
        timers: Timers,
        send_to_controller: ControllerChannel,
        image: Callable[[], MetadataImage],
        broker_epoch: Callable[[], int],
    ) -> None:
        self._identity = identity
        self._timers = timers
        self._send_to_controller = send_to_controller
        self._image = image
        self._broker_epoch = broker_epoch
        self._is_in_flight = False

    def on_metadata_update(self, delta: MetadataDelta, now: Now) -> None:
        """Report the misplaced replicas, if the change contains one or this broker's registration."""
        changed = self._image().partitions_in(delta.partitions)
        has_registration = delta.everything or self._identity.node_id in delta.brokers
        if has_registration or any(self._is_misplaced(partition) for _, partition in changed):
            self._maybe_send(now)

    def _maybe_send(self, now: Now) -> None:
        if self._is_in_flight or self._broker_epoch() == UNKNOWN_EPOCH:
            return
        misplaced = self._misplaced()
        if misplaced:
            self._is_in_flight = True
            self._send_to_controller(self._request(misplaced), self._handle_response, timeout_ms=_TIMEOUT_MS, now=now)

    def _request(self, misplaced: Mapping[UUID, Sequence[int]]) -> Any:
        module = request_schema(*_ASSIGN_REPLICAS_TO_DIRS)
        topics = tuple(
            module.TopicData(
                topic_id=topic_id, partitions=tuple(module.PartitionData(partition_index=index) for index in indices)
            )
            for topic_id, indices in misplaced.items()
        )
        return module.AssignReplicasToDirsRequest(
            broker_id=self._identity.node_id,
            broker_epoch=self._broker_epoch(),
            directories=(module.DirectoryData(id_=self._identity.directory_id, topics=topics),),
        )

    def _misplaced(self) -> Mapping[UUID, Sequence[int]]:
        """Return the misplaced partitions by topic id."""
        misplaced: dict[UUID, list[int]] = {}
        for partition in filter(self._is_misplaced, self._image().partitions()):
            misplaced.setdefault(partition.topic_id, []).append(partition.partition_id)
        return misplaced

    def _is_misplaced(self, partition: PartitionRecord) -> bool:
        if self._identity.node_id not in partition.replicas:
            return False
        position = partition.replicas.index(self._identity.node_id)
        return partition.directories[position] != self._identity.directory_id

    def _handle_response(self, response: Any, now: Now) -> None:
        self._is_in_flight = False
        self._timers.set(now.monotonic_ms + _RETRY_MS, self._maybe_send)
