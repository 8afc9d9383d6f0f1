"""The broker role of a node: metadata image, replicas, group coordinator, and requests to the active controller.

Follows: kafka.server.BrokerServer, kafka.server.metadata.BrokerMetadataPublisher (KIP-500, KIP-631).

The broker is pure: it receives requests from the handlers, metadata through `on_metadata_update` and time as an
argument, and accesses files through the `Disk` port. It emits effects through its `Runtime`.

Rules of this file:
- A broker changes no metadata. It sends requests to the active controller (`send_to_controller`) and applies the result
  when the records are committed, as every other broker does.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

from reference_broker.core.assignments_manager import AssignmentsManager
from reference_broker.core.auto_topic_creation_manager import AutoTopicCreationManager
from reference_broker.core.broker_lifecycle_manager import UNKNOWN_EPOCH, BrokerLifecycleManager, BrokerState
from reference_broker.core.channels import ResponseHandler
from reference_broker.core.clock import Now
from reference_broker.core.configuration.configuration import BrokerConfiguration
from reference_broker.core.connection import Channel
from reference_broker.core.group_coordinator import GroupCoordinator
from reference_broker.core.identity import Identity
from reference_broker.core.metadata.delta import MetadataDelta
from reference_broker.core.metadata.image import MetadataImage
from reference_broker.core.producer_id_manager import ProducerIdManager
from reference_broker.core.purgatory import Purgatory
from reference_broker.core.replication.replica_manager import ReplicaManager
from reference_broker.core.runtime import Runtime

ControllerEndpoint = Callable[[], tuple[int, str, int] | None]
"""Returns id, host and port of the active controller; null while none is known."""

FORWARDING = "forwarding"
"""Purpose of the channel for requests that the active controller handles in place of the broker."""

_ALTER_PARTITION = "alter-partition"
_DIRECTORY_ASSIGNMENTS = "directory-assignments"
_HEARTBEAT = "heartbeat"
_ALTER_PARTITION_TIMEOUT_MS = 30_000
_PRODUCER_IDS = "producer-ids"
_PRODUCER_IDS_TIMEOUT_MS = 5_000


class CommittedMetadata(Protocol):
    """The committed metadata; `offset` is that of the last record in `image`."""

    image: MetadataImage
    offset: int


class Broker:
    """A broker, restored from its disk after a shutdown or crash."""

    def __init__(
        self, runtime: Runtime, metadata: CommittedMetadata, controller_endpoint: ControllerEndpoint, now: Now
    ) -> None:
        self.runtime = runtime
        self._metadata = metadata
        self.published_offset = -1
        """Offset up to which this broker has applied the metadata, for its heartbeats; -1 before it has applied any.

        It advances when all replicas of that metadata are opened, so that the controller does not unfence the broker
        earlier.
        """
        self._controller_endpoint = controller_endpoint
        self.replicas = ReplicaManager(
            runtime,
            lambda: metadata.image,
            self._alter_partition,
            lambda: self.epoch,
            on_metadata_applied=self._publish_offset,
            clean=runtime.previous_epoch is not None,
        )
        self.topic_creation = AutoTopicCreationManager(
            partial(self.send_to_controller, FORWARDING), runtime.configuration
        )
        self.groups = GroupCoordinator(runtime, self.replicas, lambda: metadata.image)
        self.producer_ids = ProducerIdManager(self.identity.node_id, lambda: self.epoch, self._allocate_producer_ids)
        self.lifecycle = BrokerLifecycleManager(
            runtime,
            partial(self.send_to_controller, _HEARTBEAT),
            lambda: self.published_offset,
            UNKNOWN_EPOCH if runtime.previous_epoch is None else runtime.previous_epoch,
        )
        self._directories = AssignmentsManager(
            runtime.identity,
            runtime.timers,
            partial(self.send_to_controller, _DIRECTORY_ASSIGNMENTS),
            lambda: metadata.image,
            lambda: self.epoch,
        )
        self.replicas.schedule(now)
        # The timeout starts at the first `fire`, because `now` is from before the recovery of the metadata log.
        runtime.timers.set(now.monotonic_ms, self.lifecycle.schedule_registration_timeout)

    @property
    def identity(self) -> Identity:
        """Identity of this node."""
        return self.runtime.identity

    @property
    def configuration(self) -> BrokerConfiguration:
        """The effective configuration of this node."""
        return self.runtime.configuration

    @property
    def purgatory(self) -> Purgatory:
        """The purgatory of this node."""
        return self.runtime.purgatory

    @property
    def image(self) -> MetadataImage:
        """The metadata image of this broker. Callers must not keep it, because a snapshot replaces it."""
        return self._metadata.image

    @property
    def metadata_offset(self) -> int:
        """The offset of the last metadata record in the image (`finalized_features_epoch`)."""
        return self._metadata.offset

    @property
    def epoch(self) -> int:
        """The broker epoch of this incarnation; -1 if the image does not have the incarnation's registration."""
        registered = self.image.brokers.get(self.identity.node_id)
        is_current = registered is not None and registered.incarnation_id == self.identity.incarnation_id
        return registered.broker_epoch if registered is not None and is_current else UNKNOWN_EPOCH

    def on_metadata_update(self, delta: MetadataDelta, now: Now) -> None:
        """Apply a change of the metadata. The image contains the change already."""
        self.replicas.on_metadata_update(delta, now)
        self._directories.on_metadata_update(delta, now)
        self.groups.on_metadata_update(delta, now)
        if any(self._is_leaving(broker_id) for broker_id in delta.brokers):
            self.lifecycle.report(now)

    def _is_leaving(self, broker_id: int) -> bool:
        broker = self.image.brokers.get(broker_id)
        return broker is not None and broker.in_controlled_shutdown

    def controller_found(self, now: Now) -> None:
        """Start to register when a leader of the quorum is known for the first time."""
        if self.lifecycle.state is BrokerState.NOT_RUNNING:
            self.lifecycle.start(now)

    def _publish_offset(self) -> None:
        self.published_offset = self._metadata.offset

    def send_to_controller(
        self, purpose: str, request: Any, then: ResponseHandler, *, timeout_ms: int, now: Now
    ) -> None:
        """Send kio's request entity to the active controller.

        `then` receives the response, or null if no controller is known or none responds.
        """
        endpoint = self._controller_endpoint()
        if endpoint is None:
            self.runtime.timers.set(now.monotonic_ms, lambda later: then(None, later))
        else:
            self.runtime.channels.send_request(
                Channel(purpose, *endpoint), request, then, timeout_ms=timeout_ms, now=now
            )

    def _allocate_producer_ids(self, request: Any, then: ResponseHandler, now: Now) -> None:
        self.send_to_controller(_PRODUCER_IDS, request, then, timeout_ms=_PRODUCER_IDS_TIMEOUT_MS, now=now)

    def _alter_partition(self, request: Any, then: ResponseHandler, now: Now) -> None:
        self.send_to_controller(_ALTER_PARTITION, request, then, timeout_ms=_ALTER_PARTITION_TIMEOUT_MS, now=now)

    def close(self) -> None:
        """Flush and close every log."""
        self.replicas.close()
