"""`stable-offsets`: an OffsetFetch with `require_stable` waits for the commits before it."""

from unittest.mock import patch

import pytest

from reference_broker.core.group_coordinator import GroupCoordinator
from reference_broker.simulation.invariants import InvariantViolation
from tests.reference_broker.requests import request
from tests.reference_broker.simulation.invariants.storm import GROUP, Client, Storm

PERIOD_MS = 7


def fetching_storm(version):
    """Return a run without faults, in which a second client fetches the offsets of the group repeatedly."""
    run = Storm(1, faults=0, faulty_ms=3_000)
    client = Client(run.cluster)
    named = {"groups": [{"group_id": GROUP}]} if version >= 8 else {"group_id": GROUP}

    def fetch():
        client.send(run.committer._node, request("OffsetFetch", version, require_stable=True, **named), lambda _: None)
        if not run.is_over:
            run.cluster.scheduler.after(PERIOD_MS, fetch)

    run.cluster.scheduler.after(PERIOD_MS, fetch)
    return run


@pytest.mark.parametrize("version", [7, 9])
def test_stable_offsets_are_committed(version):
    fetching_storm(version).run()


@pytest.mark.parametrize("version", [7, 9])
def test_an_offset_fetch_that_does_not_wait_is_detected(version):
    at_once = patch.object(GroupCoordinator, "await_stable", lambda _self, _groups, settled, now: settled({}, now))
    with at_once, pytest.raises(InvariantViolation, match="stable-offsets"):
        fetching_storm(version).run()
