"""The first records of a metadata log, and the features that a broker can run at (KIP-584)."""

from reference_broker.protocol.metadata_records import FeatureLevelRecord, MetadataRecord

METADATA_VERSION = "metadata.version"
METADATA_VERSION_MIN, METADATA_VERSION_MAX = 7, 30
"""3.3-IV3, the lowest that Kafka 4 runs at, and 4.3-IV0."""
SUPPORTED_FEATURES = {
    METADATA_VERSION: (METADATA_VERSION_MIN, METADATA_VERSION_MAX),
    "eligible.leader.replicas.version": (0, 1),
    "group.version": (0, 1),
    "kraft.version": (0, 1),
    "share.version": (0, 1),
    "streams.version": (0, 1),
    "transaction.version": (0, 2),
}
"""The levels with which a broker registers. Nothing here depends on those beside `metadata.version`; they are Kafka's,
since a metadata log that Kafka began has them in force, and lets no broker in that does not know them."""


def bootstrap_records() -> list[MetadataRecord]:
    """What a log begins with before any broker is in it."""
    return [FeatureLevelRecord(name=METADATA_VERSION, feature_level=METADATA_VERSION_MAX)]
