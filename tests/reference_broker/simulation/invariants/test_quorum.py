"""Quorum invariants that a seeded defect rarely violates first, and violations after a disk has lost content.

`test_invariants.py` and `tests/reference_broker/quorum/test_defects.py` test the other quorum invariants.
"""

from contextlib import nullcontext
from types import SimpleNamespace
from unittest.mock import patch

import pytest

from reference_broker.core.clock import Now
from reference_broker.core.quorum.configuration import QuorumConfig
from reference_broker.core.quorum.messages import OffsetAndEpoch
from reference_broker.core.quorum.quorum_log import QuorumLog
from reference_broker.core.quorum.quorum_state import Leader
from reference_broker.core.quorum.voters import ReplicaKey, Voter, VoterSet
from reference_broker.core.tracer import QuorumFetchRecorded
from reference_broker.simulation.invariants import InvariantViolation
from reference_broker.simulation.invariants.quorum import QuorumInvariants
from reference_broker.simulation.invariants.quorum_progress import QuorumProgress
from reference_broker.simulation.invariants.quorum_watch import QuorumWatch
from tests.reference_broker.quorum.simulation.scenario import Scenario
from tests.reference_broker.quorum.simulation.simulation import simulate


def violated_invariant(seed: int) -> str:
    """Return the name of the invariant that a seed violates; empty if there is none."""
    try:
        simulate(Scenario.generate(seed))
    except InvariantViolation as violation:
        return violation.name
    return ""


def test_leader_without_all_committed_records_is_a_violation():
    """Nodes grant every vote. Votes are not checked, so that the first violation is detected at the election."""
    without_vote_check = patch.object(QuorumInvariants, "on_response", staticmethod(lambda *_: False))
    with_all_votes_granted = patch.object(QuorumLog, "is_behind_or_equal", lambda _self, _other: True)
    with without_vote_check, with_all_votes_granted:
        assert any(violated_invariant(seed) == "quorum-leader-complete" for seed in range(60))


@pytest.mark.parametrize("is_leader", [True, False])
def test_uncommitted_snapshot_or_snapshot_loaded_by_a_leader_is_a_violation(is_leader):
    invariants = QuorumInvariants((1, 2, 3), 1_000)
    invariants.high_watermark = 10 if is_leader else 4
    key = ReplicaKey(1)
    leader = Leader(
        key, epoch=1, epoch_start_offset=0, voters=VoterSet([Voter(key)]), config=QuorumConfig(), now=Now(0, 0)
    )
    state = leader if is_leader else SimpleNamespace(epoch=1)
    snapshots = SimpleNamespace(earliest=OffsetAndEpoch(5, 1))
    node = SimpleNamespace(state=state, log=SimpleNamespace(snapshots=snapshots))
    with pytest.raises(InvariantViolation, match="quorum-leader-no-snapshot"):
        invariants._check_installed(1, node)


@pytest.mark.parametrize("has_lost_content", [True, False])
def test_a_violation_is_permitted_only_after_a_disk_has_lost_content(has_lost_content):
    """Without the lost content, the quorum may elect a leader that lacks committed records."""
    became_void, handlers = [], {}
    watch = QuorumWatch(QuorumInvariants((1, 2, 3), 1_000), lambda: became_void.append(True))
    watch.subscribe(SimpleNamespace(subscribe=handlers.__setitem__))
    if has_lost_content:
        watch.on_content_lost(2)
    violation = patch.object(QuorumProgress, "on_fetch", side_effect=InvariantViolation("quorum-progress", "wrong"))
    with violation, nullcontext() if has_lost_content else pytest.raises(InvariantViolation, match="quorum-progress"):
        handlers[QuorumFetchRecorded](None, None)
    assert bool(became_void) == has_lost_content
