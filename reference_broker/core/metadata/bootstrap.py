"""First records of a metadata log, and the supported feature levels.

Follows: org.apache.kafka.metadata.bootstrap.BootstrapMetadata (KIP-584).
"""

from reference_broker.protocol.metadata_records import FeatureLevelRecord, MetadataRecord

METADATA_VERSION = "metadata.version"
METADATA_VERSION_MIN, METADATA_VERSION_MAX = 7, 30
"""Feature levels of 3.3-IV3, which is also the minimum in Kafka 4, and of 4.3-IV0."""
SUPPORTED_FEATURES = {
    METADATA_VERSION: (METADATA_VERSION_MIN, METADATA_VERSION_MAX),
    "eligible.leader.replicas.version": (0, 1),
    "group.version": (0, 1),
    "kraft.version": (0, 1),
    "share.version": (0, 1),
    "streams.version": (0, 1),
    "transaction.version": (0, 2),
}
"""Feature levels with which a broker registers. Only `metadata.version` has an effect here. The others have Kafka's
ranges: a metadata log that Kafka has formatted finalizes these features, and a broker must support them to register."""


def bootstrap_records() -> list[MetadataRecord]:
    """Return the first records of a new log."""
    return [FeatureLevelRecord(name=METADATA_VERSION, feature_level=METADATA_VERSION_MAX)]
