"""Retention: the number of the oldest segments of a log that are to be deleted.

Follows: org.apache.kafka.storage.internals.log.UnifiedLog.

- With any cleanup policy: segments below the log start offset.
- With policy `delete`: segments whose removal leaves at least `retention.bytes`, and those whose largest timestamp is
  older than `retention.ms`. If a segment has no timestamps, its age is the time since it was created or loaded.
- The search ends at the first segment that must be kept, at the latest at the high watermark. If the active segment is
  to be deleted, the caller rolls the log first.
"""

from collections.abc import Callable, Sequence
from itertools import accumulate

from reference_broker.core.log.config import UNLIMITED, LogConfig
from reference_broker.core.log.log_segment import LogSegment


def below_log_start(segments: Sequence[LogSegment], log_start_offset: int) -> int:
    """Return the number of segments below the log start offset, without the active segment."""
    return _leading(segments[:-1], lambda segment: segment.end_offset <= log_start_offset)


def over_size(segments: Sequence[LogSegment], config: LogConfig, high_watermark: int) -> int:
    """Return the number of segments to delete by `retention.bytes`."""
    if config.retention_bytes == UNLIMITED:
        return 0
    spare_bytes = sum(segment.size_bytes for segment in segments) - config.retention_bytes
    removed_bytes = accumulate(segment.size_bytes for segment in segments)
    fitting = sum(1 for total in removed_bytes if total <= spare_bytes)
    return _leading(segments[:fitting], lambda segment: _may_be_deleted(segment, high_watermark))


def over_age(segments: Sequence[LogSegment], config: LogConfig, high_watermark: int, now_ms: int) -> int:
    """Return the number of segments to delete by `retention.ms`."""
    if config.retention_ms == UNLIMITED:
        return 0

    def is_expired(segment: LogSegment) -> bool:
        latest_ms = segment.max_timestamp_ms if segment.max_timestamp_ms >= 0 else segment.created_ms
        return _may_be_deleted(segment, high_watermark) and now_ms - latest_ms > config.retention_ms

    return _leading(segments, is_expired)


def _may_be_deleted(segment: LogSegment, high_watermark: int) -> bool:
    return segment.size_bytes > 0 and segment.end_offset <= high_watermark


def _leading(segments: Sequence[LogSegment], is_deletable: Callable[[LogSegment], bool]) -> int:
    return next((number for number, segment in enumerate(segments) if not is_deletable(segment)), len(segments))
