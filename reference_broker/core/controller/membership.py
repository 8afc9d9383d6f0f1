"""Changes of a broker's state: records for the broker and for its partitions.

Follows: org.apache.kafka.controller.ReplicationControlManager (KIP-631, KIP-841).

A broker that is fenced loses every leadership in the same batch of records, so it is never visible as both fenced and
leading. It also leaves every ISR that has other members. If it is the last member, it stays in the ISR, unless another
leader is elected uncleanly.
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


def handle_broker_fenced(broker: RegisterBrokerRecord, elections: Elections) -> list[MetadataRecord]:
    """Return the records that fence a broker: at its request, for its shutdown, or after its session has expired."""
    return [*elections.remove_from_isrs(broker.broker_id), _change(broker, fenced=_FENCE)]


def handle_broker_unfenced(broker: RegisterBrokerRecord, elections: Elections) -> list[MetadataRecord]:
    """Return the records that unfence a broker, and elect leaders of partitions that have none."""
    return [_change(broker, fenced=_UNFENCE), *elections.elect_leaderless(broker.broker_id)]


def handle_broker_in_controlled_shutdown(broker: RegisterBrokerRecord, elections: Elections) -> list[MetadataRecord]:
    """Return the records that move leaderships away from a broker, which remains unfenced (KIP-841)."""
    marked = [] if broker.in_controlled_shutdown else [_change(broker, in_controlled_shutdown=_IN_CONTROLLED_SHUTDOWN)]
    return [*marked, *elections.remove_from_isrs(broker.broker_id)]


def handle_broker_unregistered(broker: RegisterBrokerRecord, elections: Elections) -> list[MetadataRecord]:
    """Return the records that remove a broker from the cluster."""
    unregistration = UnregisterBrokerRecord(broker_id=broker.broker_id, broker_epoch=broker.broker_epoch)
    return [*elections.remove_from_isrs(broker.broker_id), unregistration]


def _change(
    broker: RegisterBrokerRecord, *, fenced: int = 0, in_controlled_shutdown: int = 0
) -> BrokerRegistrationChangeRecord:
    return BrokerRegistrationChangeRecord(
        broker_id=broker.broker_id,
        broker_epoch=broker.broker_epoch,
        fenced=fenced,
        in_controlled_shutdown=in_controlled_shutdown,
    )
