"""Invariants of responses, tested without a cluster, because no storm violates them."""

from types import SimpleNamespace

import pytest

from reference_broker.simulation.invariants import InvariantViolation
from reference_broker.simulation.invariants.responses import _check_low_watermark

PARTITION = SimpleNamespace(topic="orders", index=0)


@pytest.mark.parametrize(("offset", "low_watermark"), [(5, 5), (-1, 0)])
def test_success_after_all_replicas_have_deleted_the_records_is_no_violation(offset, low_watermark):
    _check_low_watermark(SimpleNamespace(offset=offset), SimpleNamespace(low_watermark=low_watermark), PARTITION)


@pytest.mark.parametrize(("offset", "low_watermark"), [(5, 4), (-1, -1)])
def test_success_before_all_replicas_have_deleted_the_records_is_a_violation(offset, low_watermark):
    with pytest.raises(InvariantViolation, match="delete-response"):
        _check_low_watermark(SimpleNamespace(offset=offset), SimpleNamespace(low_watermark=low_watermark), PARTITION)
