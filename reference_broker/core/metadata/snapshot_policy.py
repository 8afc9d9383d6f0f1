"""Snapshots of the metadata image, and retention of snapshots and log.

Follows: org.apache.kafka.image.publisher.SnapshotGenerator (KIP-630).

| property                                          | a snapshot is written when                                    |
|---------------------------------------------------|---------------------------------------------------------------|
| `metadata.log.max.record.bytes.between.snapshots` | this many bytes were committed since the last snapshot        |
| `metadata.log.max.snapshot.interval.ms`           | records are committed, and the last snapshot is older;        |
|                                                   | 0: never                                                      |

After a snapshot is written, the oldest snapshot is deleted repeatedly, as long as there is a later one and one of these
conditions holds. The log before the next snapshot is deleted with it.

| property                                          | condition                                                     |
|---------------------------------------------------|---------------------------------------------------------------|
| `metadata.max.retention.bytes`                    | log and snapshots are larger in total; negative: never        |
| `metadata.max.retention.ms`                       | the oldest snapshot is older; negative: never                 |

Every node writes its own snapshots of the applied records. A snapshot's batches have at most 1,024 records, as in
Kafka.
"""

from reference_broker.core.clock import Now
from reference_broker.core.configuration.configuration import BrokerConfiguration
from reference_broker.core.metadata.cluster_metadata import ClusterMetadata
from reference_broker.core.quorum.raft_client import KafkaRaftClient
from reference_broker.core.quorum.snapshots import encode_snapshot
from reference_broker.protocol.metadata_records import encode_metadata_record
from reference_broker.protocol.records import KeyValue

_BATCH_RECORDS_MAX = 1024


class SnapshotPolicy:
    """Policy that is applied after each commit. The first interval begins at the start of the process, as in Kafka."""

    def __init__(
        self, quorum: KafkaRaftClient, metadata: ClusterMetadata, configuration: BrokerConfiguration, now: Now
    ) -> None:
        self._quorum = quorum
        self._metadata = metadata
        self._max_bytes = configuration.integer("metadata.log.max.record.bytes.between.snapshots")
        self._max_interval_ms = configuration.integer("metadata.log.max.snapshot.interval.ms")
        self._retention_bytes = configuration.integer("metadata.max.retention.bytes")
        self._retention_ms = configuration.integer("metadata.max.retention.ms")
        self._last_ms = now.monotonic_ms

    def handle_commit(self, now: Now) -> None:
        """Write a snapshot and delete expired ones, if a snapshot is due after a commit.

        No snapshot is due if no record was applied after the last one, for example after a snapshot of the leader was
        installed.
        """
        is_late = 0 < self._max_interval_ms <= now.monotonic_ms - self._last_ms
        if self._metadata.applied_bytes >= self._max_bytes or (is_late and self._metadata.applied_bytes):
            self._write_snapshot(now)
            self._delete_old(now)

    def handle_load_snapshot(self, now: Now) -> None:
        """Restart the interval, because the image was loaded from a snapshot of the leader."""
        self._last_ms = now.monotonic_ms

    def _write_snapshot(self, now: Now) -> None:
        metadata = self._metadata
        end_offset = metadata.offset + 1
        values = [KeyValue(None, encode_metadata_record(record)) for record in metadata.image.records()]
        batches = [values[at : at + _BATCH_RECORDS_MAX] for at in range(0, len(values), _BATCH_RECORDS_MAX)]
        data = encode_snapshot(
            self._quorum.log.epoch_for_offset(metadata.offset),
            batches,
            last_contained_log_timestamp_ms=metadata.timestamp_ms,
            now_ms=now.wall_ms,
        )
        self._quorum.create_snapshot(end_offset, data)
        metadata.applied_bytes = 0
        self._last_ms = now.monotonic_ms

    def _delete_old(self, now: Now) -> None:
        log = self._quorum.log
        while (successor := log.snapshots.second) is not None and self._is_expired(now):
            log.delete_before_snapshot(successor, now.wall_ms)

    def _is_expired(self, now: Now) -> bool:
        """Whether log and snapshots exceed the retention size, or the oldest snapshot the retention time."""
        log = self._quorum.log
        age_ms = now.wall_ms - log.snapshots.earliest_timestamp_ms()
        return 0 <= self._retention_bytes < log.size_bytes or 0 <= self._retention_ms < age_ms
