"""Edges of the ranges of a split log: an outage is detected between any two times that the format permits."""

import numpy as np
import pytest

from linearizability.shards.edges import may_be_outage


@pytest.mark.parametrize(
    ("not_served_ns", "first_invoke_ns", "served_ns", "expected"),
    [
        (2**62, -(2**62), -(2**63), True),
        (2**62, -(2**62), 2**62 - 5, False),
        (2**62, 2**62 - 6, -(2**62), True),
        (-(2**62), -(2**62), 2**62, False),
        (16, 0, 10, True),
        (15, 0, 10, False),
    ],
)
def test_outage_may_last_as_long_as_the_format_allows(not_served_ns, first_invoke_ns, served_ns, expected):
    assert may_be_outage(np.array([not_served_ns]), first_invoke_ns, np.array([served_ns]), 5) is expected
