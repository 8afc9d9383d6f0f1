"""The first records of a metadata log, and the one that each start of a broker adds."""

from reference_broker.core.identity import Identity
from reference_broker.protocol.metadata_records import (
    BrokerEndpoint,
    BrokerFeature,
    FeatureLevelRecord,
    MetadataRecord,
    RegisterBrokerRecord,
)

METADATA_VERSION = "metadata.version"
METADATA_VERSION_MIN, METADATA_VERSION_MAX = 7, 30
"""3.3-IV3, the lowest that Kafka 4 runs at, and 4.3-IV0."""


def bootstrap_records() -> list[MetadataRecord]:
    """What a log begins with before any broker is in it."""
    return [FeatureLevelRecord(name=METADATA_VERSION, feature_level=METADATA_VERSION_MAX)]


def registration_record(identity: Identity, broker_epoch: int) -> RegisterBrokerRecord:
    """A broker is in the cluster, and not fenced: it is the whole cluster."""
    return RegisterBrokerRecord(
        broker_id=identity.node_id,
        incarnation_id=identity.incarnation_id,
        broker_epoch=broker_epoch,
        end_points=tuple(
            BrokerEndpoint(name=endpoint.listener, host=endpoint.host, port=endpoint.port)
            for endpoint in identity.endpoints
        ),
        features=(
            BrokerFeature(
                name=METADATA_VERSION,
                min_supported_version=METADATA_VERSION_MIN,
                max_supported_version=METADATA_VERSION_MAX,
            ),
        ),
        fenced=False,
        log_dirs=(identity.directory_id,),
    )
