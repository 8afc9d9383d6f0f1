"""Bootstrap records of a metadata log, and the supported levels of features.

Follows: org.apache.kafka.metadata.bootstrap.BootstrapMetadata (KIP-584, KIP-778).
"""

from reference_broker.protocol.metadata_records import FeatureLevelRecord, MetadataRecord

METADATA_VERSION = "metadata.version"
METADATA_VERSION_MIN, METADATA_VERSION_MAX = 7, 30
"""Level 7 is 3.3-IV3, the minimum of Kafka 4; level 30 is 4.3-IV0."""
SUPPORTED_FEATURES = {
    METADATA_VERSION: (METADATA_VERSION_MIN, METADATA_VERSION_MAX),
    "eligible.leader.replicas.version": (0, 1),
    "group.version": (0, 1),
    "kraft.version": (0, 1),
    "share.version": (0, 1),
    "streams.version": (0, 1),
    "transaction.version": (0, 2),
}
"""The features with which a broker registers, and the lowest and highest supported level of each. Only
`metadata.version` has an effect here. The others have Kafka's ranges: Kafka finalizes them when it formats a metadata
log, and a broker must support every finalized feature to register."""


def bootstrap_records() -> list[MetadataRecord]:
    """Return the records with which a new metadata log begins."""
    return [FeatureLevelRecord(name=METADATA_VERSION, feature_level=METADATA_VERSION_MAX)]
