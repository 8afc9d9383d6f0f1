"""Log matching without a cluster. In a cluster, other invariants are violated before logs diverge."""

import pytest

from reference_broker.simulation.invariants import InvariantViolation
from reference_broker.simulation.invariants.log_matching import LogMatching
from reference_broker.simulation.invariants.log_mirror import Batch


def batch(base_offset, *, epoch=0, crc=7, records=2):
    return Batch(base_offset, base_offset + records - 1, epoch, crc, segment=0, position=0, size_bytes=70)


def matching_with_one_replica():
    matching = LogMatching("log-matching")
    matching.check("node 1", None, batch(0))
    matching.check("node 1", batch(0), batch(2))
    matching.check("node 1", batch(2), batch(4, epoch=1))
    return matching


def test_equal_logs_match_and_so_does_a_log_with_a_later_start():
    matching = matching_with_one_replica()
    matching.check("node 2", None, batch(0))
    matching.check("node 2", batch(0), batch(2))
    matching.check("node 2", batch(2), batch(4, epoch=1))
    matching.check("node 3", None, batch(4, epoch=1))


@pytest.mark.parametrize(
    ("before", "other"),
    [
        (batch(0), batch(2, crc=8)),
        (batch(0), batch(2, records=3)),
        (batch(2, epoch=1), batch(4, epoch=1)),
        (batch(0), batch(2, epoch=1, crc=8)),
    ],
    ids=["other records", "another length", "another epoch before", "another start of the epoch"],
)
def test_logs_that_diverge_within_an_epoch_do_not_match(before, other):
    matching = matching_with_one_replica()
    matching.check("node 2", None, batch(0))
    with pytest.raises(InvariantViolation, match="log-matching"):
        matching.check("node 2", before, other)
