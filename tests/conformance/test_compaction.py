"""Properties that the generated scripts of compaction requirements have with every seed."""

import pytest

from conformance.registry import select
from conformance.search import scripts_of
from conformance.sequential.steps import Produce


@pytest.mark.parametrize("seed", [1, 20, 1373442618])
def test_every_script_has_a_first_segment_that_compaction_empties(seed):
    """If a broker wrongly advances the log start when a segment becomes empty, every seed must detect it."""
    (requirement,) = select(["compaction/newest-record-of-each-key-stays"])
    for script in scripts_of(requirement.check.scripts, seed_value=seed, scripts_max=20):
        first, *later, _active = [step.batches[0].records for step in script.steps if isinstance(step, Produce)]
        assert {record.key for record in first} <= {record.key for records in later for record in records}
