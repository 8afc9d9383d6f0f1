"""What the cluster's metadata says once a broker comes, goes, or is about to: Kafka's `handleBroker…` functions.

A broker that goes leaves every ISR and leads nothing any more, in the same batch of records that says so: nobody sees
it fenced and leading. If it is the last one in sync, it stays in the ISR, and the partition has no leader.
"""

from reference_broker.core.controller.elections import Elections
from reference_broker.protocol.metadata_records import (
    BrokerRegistrationChangeRecord,
    MetadataRecord,
    RegisterBrokerRecord,
    UnregisterBrokerRecord,
)

_FENCE, _UNFENCE = 1, -1
_IN_CONTROLLED_SHUTDOWN = 1


def fenced(broker: RegisterBrokerRecord, elections: Elections) -> list[MetadataRecord]:
    """The broker may lead nothing: it asked for it, was told to go, or was not heard of for too long."""
    return [*elections.without(broker.broker_id), _change(broker, fenced=_FENCE)]


def unfenced(broker: RegisterBrokerRecord, elections: Elections) -> list[MetadataRecord]:
    """The broker serves; partitions without a leader may get one."""
    return [_change(broker, fenced=_UNFENCE), *elections.with_also(broker.broker_id)]


def in_controlled_shutdown(broker: RegisterBrokerRecord, elections: Elections) -> list[MetadataRecord]:
    """The broker serves, and gives its leaderships to others (KIP-841)."""
    marked = [] if broker.in_controlled_shutdown else [_change(broker, in_controlled_shutdown=_IN_CONTROLLED_SHUTDOWN)]
    return [*marked, *elections.without(broker.broker_id)]


def unregistered(broker: RegisterBrokerRecord, elections: Elections) -> list[MetadataRecord]:
    """The broker is no part of the cluster any more."""
    farewell = UnregisterBrokerRecord(broker_id=broker.broker_id, broker_epoch=broker.broker_epoch)
    return [*elections.without(broker.broker_id), farewell]


def _change(
    broker: RegisterBrokerRecord, *, fenced: int = 0, in_controlled_shutdown: int = 0
) -> BrokerRegistrationChangeRecord:
    return BrokerRegistrationChangeRecord(
        broker_id=broker.broker_id,
        broker_epoch=broker.broker_epoch,
        fenced=fenced,
        in_controlled_shutdown=in_controlled_shutdown,
    )
