"""Topic properties of a log, with Apache Kafka's defaults.

Follows: org.apache.kafka.storage.internals.log.LogConfig.
"""

from dataclasses import dataclass

from reference_broker.protocol.record_batch import Codec

DAY_MS = 24 * 60 * 60 * 1000
NEVER = 2**63 - 1
UNLIMITED = -1


@dataclass(frozen=True, slots=True)
class LogConfig:
    """Configuration of a log. Names are those of Kafka's topic and broker properties, with underscores for dots."""

    segment_bytes: int = 1024 * 1024 * 1024
    segment_ms: int = 7 * DAY_MS
    segment_index_bytes: int = 10 * 1024 * 1024
    index_interval_bytes: int = 4096
    retention_ms: int = 7 * DAY_MS
    retention_bytes: int = UNLIMITED
    max_message_bytes: int = 1024 * 1024 + 12
    compression_type: Codec | None = None
    """Null is Kafka's `producer`: batches keep the codec of the producer."""
    cleanup_policy: frozenset[str] = frozenset({"delete"})
    message_timestamp_type: str = "CreateTime"
    message_timestamp_before_max_ms: int = NEVER
    message_timestamp_after_max_ms: int = 60 * 60 * 1000
    flush_messages: int = NEVER
    producer_id_expiration_ms: int = DAY_MS

    @property
    def compacts(self) -> bool:
        """Whether the topic is compacted, so that every record needs a key."""
        return "compact" in self.cleanup_policy

    @property
    def deletes(self) -> bool:
        """Whether retention deletes old segments."""
        return "delete" in self.cleanup_policy

    @property
    def uses_log_append_time(self) -> bool:
        """Whether the broker's time replaces the producer's (KIP-32)."""
        return self.message_timestamp_type == "LogAppendTime"
