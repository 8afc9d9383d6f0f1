"""Invariants of the quorum that a defect rarely violates first; `quorum.test_defects` tests the others."""

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
    try:
        simulate(Scenario.generate(seed))
    except InvariantViolation as violation:
        return violation.name
    return ""


def test_leader_without_all_committed_records_is_a_violation():
    """The check of votes is disabled, so the violation is detected at the election."""
    votes_unchecked = patch.object(QuorumInvariants, "on_response", staticmethod(lambda *_: False))
    votes_for_all = patch.object(QuorumLog, "is_behind_or_equal", lambda _self, _other: True)
    with votes_unchecked, votes_for_all:
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
def test_wrong_progress_after_a_loss_of_content_is_permitted(has_lost_content):
    """The leader may have lost its log, as after every other violation of the quorum."""
    void, handlers = [], {}
    watch = QuorumWatch(QuorumInvariants((1, 2, 3), 1_000), lambda: void.append(True))
    watch.subscribe(SimpleNamespace(subscribe=handlers.__setitem__))
    if has_lost_content:
        watch.on_content_lost(2)
    wrong = patch.object(QuorumProgress, "on_fetch", side_effect=InvariantViolation("quorum-progress", "wrong"))
    with wrong, nullcontext() if has_lost_content else pytest.raises(InvariantViolation, match="quorum-progress"):
        handlers[QuorumFetchRecorded](None, None)
    assert bool(void) == has_lost_content
