"""One broker: all of its state, and what handlers do with it beyond reading.

Everything here is pure: bytes reach it through `apis.handle`, files through the `Disk` port, time as an argument. What
it wants sent is gathered in an outbox that the caller takes (`take_effects`), because one request may answer another:
a produce lets a waiting fetch go.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from uuid import UUID

from reference_broker.core.clock import Now
from reference_broker.core.configuration.configuration import BrokerConfiguration
from reference_broker.core.configuration.key import LONG_MAX
from reference_broker.core.connection import Close, Connection, Effect, Respond
from reference_broker.core.controller import Controller, NewTopic
from reference_broker.core.disk import Disk
from reference_broker.core.group_offsets import GroupOffsets
from reference_broker.core.identity import Identity
from reference_broker.core.log.checkpoints import CLEAN_SHUTDOWN_FILE
from reference_broker.core.metadata.bootstrap import bootstrap_records, registration_record
from reference_broker.core.metadata.image import MetadataImage
from reference_broker.core.metadata.metadata_log import MetadataLog
from reference_broker.core.partitions import Partitions
from reference_broker.core.producer_ids import ProducerIds
from reference_broker.core.purgatory import Purgatory
from reference_broker.core.request import Request
from reference_broker.core.timers import Action, Timers
from reference_broker.core.topic_names import CONSUMER_OFFSETS_TOPIC
from reference_broker.protocol.messages import message_codec
from reference_broker.protocol.metadata_records import MetadataRecord


class Broker:
    """The state of a broker. Made from its disk, as it stands after the last stop or crash.

    :param new_uuid: where topic ids come from.
    """

    def __init__(
        self, identity: Identity, properties: Mapping[str, str], disk: Disk, new_uuid: Callable[[], UUID], now: Now
    ) -> None:
        self.identity = identity
        self.configuration = BrokerConfiguration(properties)
        self.timers = Timers()
        self.purgatory = Purgatory(self.timers)
        self._disk = disk
        clean = disk.exists(CLEAN_SHUTDOWN_FILE)
        if clean:
            disk.delete(CLEAN_SHUTDOWN_FILE)
            disk.flush_directory("")
        self._metadata = MetadataLog(disk, now, clean=clean)
        self.controller = Controller(self.image, self.configuration, identity.directory_id, new_uuid)
        self.partitions = Partitions(disk, self.configuration, self.image, clean=clean)
        self.groups = GroupOffsets(self.partitions, self.image)
        self.producer_ids = ProducerIds(self._take_producer_ids)
        self._outbox: list[Effect] = []
        self._join(now)
        self.groups.load()
        self._schedule(now)

    @property
    def image(self) -> MetadataImage:
        """The cluster as this broker knows it."""
        return self._metadata.image

    @property
    def metadata_offset(self) -> int:
        """The offset of the last metadata record that the image has taken in (`finalized_features_epoch`)."""
        return self._metadata.end_offset - 1

    def commit(self, records: Sequence[MetadataRecord], now: Now) -> None:
        """Change the cluster's metadata, and this broker's partitions with it. Who waits for one that goes is told."""
        self._metadata.commit(records, now)
        for partition in self.partitions.synchronise(now):
            self.purgatory.happened(partition.key, now)

    def ensure_offsets_topic(self, now: Now) -> None:
        """Create `__consumer_offsets` where there is none. Raises `ControllerError`."""
        if CONSUMER_OFFSETS_TOPIC not in self.image.topics:
            number = self.configuration.integer
            topic = NewTopic(
                CONSUMER_OFFSETS_TOPIC,
                number("offsets.topic.num.partitions"),
                number("offsets.topic.replication.factor"),
                overrides={
                    "cleanup.policy": "compact",
                    "compression.type": "producer",
                    "segment.bytes": str(number("offsets.topic.segment.bytes")),
                },
            )
            self.commit(self.controller.plan_topic(topic).records, now)

    def _take_producer_ids(self, now: Now) -> int:
        first, records = self.controller.allocate_producer_ids(self.identity.node_id)
        self.commit(records, now)
        return first

    def respond(self, request: Request, response: Any) -> None:
        """Answer a request; its connection goes on to the next."""
        request.connection.busy = False
        data = message_codec(request.api_key, response.__version__).write(request.correlation_id, response)
        self._outbox.append(Respond(request.connection, data))

    def close_connection(self, connection: Connection, reason: str) -> None:
        """Close a connection of which no more is wanted."""
        self._outbox.append(Close(connection, reason))

    def disconnected(self, connection: Connection) -> None:
        """A connection is gone: nobody waits for its answers."""
        self.purgatory.drop(connection)

    def fire_timers(self, now: Now) -> None:
        """Do what is due; the shell calls this at `timers.next_ms`."""
        self.timers.fire(now)

    def take_effects(self) -> list[Effect]:
        """What was decided since the last time, in order."""
        effects, self._outbox = self._outbox, []
        return effects

    def stop(self) -> None:
        """A clean end: everything flushed, checkpoints written, and last of all the marker that says so."""
        self.partitions.close()
        self._metadata.close()
        broker_epoch = self.image.brokers[self.identity.node_id].broker_epoch
        self._disk.replace(CLEAN_SHUTDOWN_FILE, f'{{"version":0,"brokerEpoch":{broker_epoch}}}'.encode())

    def _join(self, now: Now) -> None:
        """Register, as every start of a broker does; the first start of a cluster gives its features first."""
        records = [] if self.image.features else bootstrap_records()
        broker_epoch = self._metadata.end_offset + len(records)
        self.commit([*records, registration_record(self.identity, broker_epoch)], now)

    def _schedule(self, now: Now) -> None:
        """Housekeeping, as often as Kafka's properties say."""
        housekeeping: tuple[tuple[str, Action], ...] = (
            ("log.retention.check.interval.ms", self.partitions.apply_retention),
            ("log.flush.scheduler.interval.ms", self.partitions.flush_overdue),
            ("log.flush.offset.checkpoint.interval.ms", lambda _: self.partitions.checkpoint()),
        )
        for name, action in housekeeping:
            period_ms = max(self.configuration.integer(name), 1)
            if period_ms < LONG_MAX:
                self.timers.set_periodic(now.monotonic_ms + period_ms, period_ms, action)
