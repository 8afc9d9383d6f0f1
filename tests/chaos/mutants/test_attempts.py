"""Attempts at mutants: the requirements run with the settings of `kafkatrial run`."""

from unittest.mock import patch

from chaos.mutants.attempts import attempt
from reference_broker.core.log.log_segment import LogSegment

EXPIRED = "retention/time-deletes-expired-segments"


def age_from_1970(self, _now_ms, timestamp_ms):
    return timestamp_ms - next(self.headers(self.base_offset)).max_timestamp_ms


def test_a_requirement_that_awaits_retention_detects_a_wrong_age_of_a_segment():
    with patch.object(LogSegment, "time_waited_for_roll_ms", age_from_1970):
        assert attempt(EXPIRED) == f"{EXPIRED} violation"
    assert not attempt(EXPIRED)
