"""A defect that copies the replaced function differs from it only in its bug."""

from collections import defaultdict
from types import SimpleNamespace
from unittest.mock import MagicMock, call

import pytest

from chaos.defects.registry import DEFECTS
from reference_broker.core.clock import Now
from reference_broker.core.tracer import HighWatermarkUpdated, LogTruncated, RecordsAppended

NOW = Now(0, 0)


class TracingPartition(MagicMock):
    """A partition that records its traces."""

    def _set_high_watermark(self, offset):
        self.high_watermark = offset
        self._trace(HighWatermarkUpdated, offset)


@pytest.mark.parametrize("name", ["pass-over-flush-messages", "flush-before-the-append"])
def test_a_control_batch_updates_its_producer(name):
    log = MagicMock(log_end_offset=0, recovery_point=0)
    header = SimpleNamespace(producer_id=5, is_control=True, leader_epoch=0, base_offset=0, size_bytes=0)
    DEFECTS[name].replacement(log, header, b"", 0)
    log.producers.update.assert_called_once_with(header)


def test_a_follower_reports_the_high_watermark_and_the_records_of_a_response():
    follower = TracingPartition(log_start_offset=0, high_watermark=0)
    follower.log.configure_mock(log_end_offset=5, recovery_point=0)
    DEFECTS["take-the-leaders-high-watermark-whole"].replacement(follower, b"records", 7, 0, NOW)
    assert follower._trace.mock_calls == [call(HighWatermarkUpdated, 7), call(RecordsAppended, 5)]
    follower._context.on_truncated.assert_not_called()


def test_a_follower_whose_empty_log_starts_again_at_a_lower_offset_reports_a_truncation():
    follower = TracingPartition(log_start_offset=9, high_watermark=9)
    follower.log.configure_mock(log_end_offset=5, recovery_point=9)
    follower.log.append_as_follower = lambda *_, **__: setattr(follower.log, "recovery_point", 3)
    DEFECTS["take-the-leaders-high-watermark-whole"].replacement(follower, b"records", 9, 0, NOW)
    follower._context.on_truncated.assert_called_once_with(follower)


def test_a_follower_reports_a_truncation():
    follower = TracingPartition(high_watermark=5)
    follower.log.log_end_offset = 5
    follower.log.truncate_to = lambda offset, _now_ms: setattr(follower.log, "log_end_offset", offset)
    truncate_to = DEFECTS["keep-the-high-watermark-when-truncating"].replacement
    truncate_to(follower, 3, NOW)
    truncate_to(follower, 3, NOW)
    assert follower._trace.mock_calls == [call(LogTruncated, 3)]
    assert follower._context.on_truncated.mock_calls == [call(follower)] * 2


def test_a_deleted_offset_leaves_no_group_without_offsets():
    offsets = SimpleNamespace(_committed=defaultdict(dict))
    key = SimpleNamespace(group="g", topic="orders", partition=0)
    apply = DEFECTS["keep-the-first-offset"].replacement
    apply(offsets, key, 1)
    apply(offsets, key, 2)
    assert offsets._committed == {"g": {("orders", 0): 1}}
    apply(offsets, key, None)
    assert offsets._committed == {}
