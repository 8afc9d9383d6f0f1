"""Replication by fetches: acknowledgements, high watermark, and changes of the ISR."""

import pytest

from reference_broker.core.replication.isr import IsrPhase
from reference_broker.protocol.errors import ErrorCode
from tests.reference_broker.replication.group import LAG_MAX_MS, Group


def test_record_is_acknowledged_when_every_in_sync_replica_has_it() -> None:
    group = Group(3)
    group.run()
    produced = group.produce("a")
    assert produced.error is None
    group.run()
    assert produced.error is ErrorCode.none
    assert [group.values(node) for node in (1, 2, 3)] == ["a", "a", "a"]
    assert group.partition(1).high_watermark == 1


def test_record_with_acks_1_is_acknowledged_at_once_and_committed_when_replicated() -> None:
    group = Group(3)
    group.run()
    group.cut(1, 2)
    assert group.produce("a", acks=1).error is ErrorCode.none
    group.run()
    assert (group.values(3), group.partition(1).high_watermark) == ("a", 0)
    group.heal()
    group.run(for_ms=1_000)
    assert group.partition(1).high_watermark == 1


def test_followers_receive_the_high_watermark_with_the_next_fetch_response() -> None:
    group = Group(2)
    group.run()
    group.produce("a")
    group.run()
    assert (group.partition(1).high_watermark, group.partition(2).high_watermark) == (1, 0)
    group.run(for_ms=500)
    assert group.partition(2).high_watermark == 1


def test_produce_that_is_not_replicated_in_time_returns_a_timeout_and_its_offset() -> None:
    group = Group(2)
    group.cut(1, 2)
    produced = group.produce("a", timeout_ms=1_000)
    group.run(for_ms=1_000)
    assert (produced.error, produced.base_offset) == (ErrorCode.request_timed_out, 0)
    assert group.values(1) == "a"


def test_waiting_produce_fails_when_the_broker_loses_leadership() -> None:
    group = Group(3)
    group.cut(1, 2)
    group.cut(1, 3)
    produced = group.produce("a")
    group.elect(2)
    assert produced.error is ErrorCode.not_leader_or_follower
    assert group.produce("b", to=1).error is ErrorCode.not_leader_or_follower


def test_isr_below_the_minimum_accepts_only_acks_1_and_commits_no_record() -> None:
    group = Group(3, min_isr=2)
    group.run()
    group.produce("a")
    group.run()
    group.kill(2)
    group.kill(3)
    waiting = group.produce("b", timeout_ms=60_000)
    group.run(for_ms=2 * LAG_MAX_MS)
    assert group.state.isr == (1,)
    assert group.produce("c").error is ErrorCode.not_enough_replicas
    assert group.produce("d", acks=1).error is ErrorCode.none
    assert (group.partition(1).high_watermark, waiting.error) == (1, None)

    group.start(2)
    group.publish_metadata()
    group.run(for_ms=2_000)
    assert set(group.state.isr) == {1, 2}
    assert (group.partition(1).high_watermark, waiting.error) == (3, ErrorCode.none)
    assert group.values(2) == "a b d"


def test_record_committed_by_an_isr_below_the_minimum_returns_an_error() -> None:
    group = Group(2, min_isr=2)
    group.run()
    group.produce("a")
    group.run()
    group.change(isr=(1,))
    assert group.partition(1).check_enough_replicas_reach_offset(1) is ErrorCode.not_enough_replicas_after_append


def test_effective_min_insync_replicas_is_at_most_the_replication_factor() -> None:
    group = Group(1, min_isr=2)
    assert group.produce("a").error is ErrorCode.none


# The ISR shrinks


def test_lagging_follower_is_removed_from_the_isr_and_waiting_produces_are_acknowledged() -> None:
    group = Group(3)
    group.run(for_ms=1_000)
    group.cut(1, 3)
    produced = group.produce("a")
    group.run(for_ms=LAG_MAX_MS // 2)
    assert (group.state.isr, produced.error) == ((1, 2, 3), None)
    group.run(for_ms=LAG_MAX_MS)
    assert (group.state.isr, produced.error) == ((1, 2), ErrorCode.none)


def test_caught_up_follower_stays_in_the_isr_without_fetches() -> None:
    group = Group(3)
    group.run()
    group.produce("a")
    group.run(for_ms=1_000)
    group.cut(1, 3)
    group.run(for_ms=10 * LAG_MAX_MS)
    assert group.state.isr == (1, 2, 3)


def test_follower_that_never_reaches_the_log_end_under_load_stays_in_the_isr() -> None:
    group = Group(2)
    group.run()
    for number in range(4 * LAG_MAX_MS // 100):
        group.produce(str(number), acks=1)
        group.step()  # the fetch response is in flight when the next record is appended
        group.run(for_ms=100)
    assert group.altered_isrs == []


def test_pending_shrink_does_not_advance_the_high_watermark() -> None:
    group = Group(2)
    group.run()
    group.is_controller_reachable = False
    group.kill(2)
    produced = group.produce("a", timeout_ms=60_000)
    group.run(for_ms=2 * LAG_MAX_MS)
    assert group.partition(1).isr.phase is IsrPhase.PENDING_SHRINK
    group.produce("b", acks=1)
    assert (group.partition(1).high_watermark, produced.error) == (0, None)


def test_new_leader_waits_the_whole_lag_time_for_its_followers() -> None:
    group = Group(3)
    group.run(for_ms=10 * LAG_MAX_MS)
    group.cut(2, 3)
    group.kill(1)
    group.elect(2, isr=(2, 3))
    group.produce("a")
    group.run(for_ms=LAG_MAX_MS - 1)
    assert group.state.isr == (2, 3)
    group.run(for_ms=LAG_MAX_MS)
    assert group.state.isr == (2,)


# The ISR expands


def _group_without_3() -> Group:
    """Return a group with the ISR 1 and 2; broker 3 has an empty log and is cut off from the leader."""
    group = Group(3, isr=(1, 2))
    group.cut(1, 3)
    group.run()
    group.produce("a", "b")
    group.run()
    return group


def test_follower_with_all_committed_records_joins_the_isr() -> None:
    group = _group_without_3()
    group.heal()
    group.run(for_ms=1_000)
    assert set(group.state.isr) == {1, 2, 3}
    assert group.values(3) == "a b"


def test_pending_expand_includes_the_proposed_follower_in_the_maximal_isr() -> None:
    group = _group_without_3()
    group.is_controller_reachable = False
    group.heal()
    group.run(for_ms=1_000)
    partition = group.partition(1)
    assert (partition.isr.phase, partition.isr.maximal) == (IsrPhase.PENDING_EXPAND, {1, 2, 3})
    group.cut(1, 3)
    group.produce("c")
    group.run()
    assert (partition.high_watermark, partition.isr.isr) == (2, {1, 2})


@pytest.mark.parametrize("change", [{"fenced": True}, {"in_controlled_shutdown": True}, {"broker_epoch": 1_000}])
def test_follower_that_the_controller_would_reject_is_not_proposed(change: dict[str, object]) -> None:
    """The follower is fenced or in controlled shutdown (KIP-841), or its fetches have an old broker epoch (KIP-903)."""
    group = _group_without_3()
    group.alter_broker(3, publish_to=(1,), **change)
    group.heal()
    group.run(for_ms=1_500)
    assert group.altered_isrs == []


def test_fetch_with_an_old_broker_epoch_does_not_update_the_follower() -> None:
    group = _group_without_3()
    group.alter_broker(3, publish_to=(1,), broker_epoch=1_000)
    group.heal()
    group.run(for_ms=1_500)
    assert group.partition(1).followers[3].end_offset == -1


def test_high_watermark_waits_for_caught_up_replicas_outside_the_isr() -> None:
    """Otherwise, under load, the high watermark would always be ahead of such a replica, which could never join."""
    group = _group_without_3()
    group.is_controller_reachable = False
    group.heal()
    group.run(for_ms=1_000)
    group.change(isr=(1, 2))  # newer metadata ends the proposal
    group.cut(1, 3)
    group.produce("c", acks=1)
    group.run()
    assert group.partition(1).isr.phase is IsrPhase.COMMITTED
    assert group.partition(1).high_watermark == 2
    group.run(for_ms=2 * LAG_MAX_MS)
    group.produce("d", acks=1)
    group.run()
    assert group.partition(1).high_watermark == 4


def test_follower_joins_only_after_the_start_offset_of_the_leader_epoch() -> None:
    """The high watermark of a new leader may lag, so records above it may already be committed."""
    group = Group(3, isr=(1, 2), min_isr=2)
    group.cut(1, 3)
    group.cut(2, 3)
    group.produce("a", "b")
    group.run()
    group.kill(1)
    group.elect(2, isr=(2,))
    leader = group.partition(2)
    assert (leader.high_watermark, leader.epoch_start_offset) == (0, 2)
    group.heal()
    group.step_until(lambda: leader.followers[3].end_offset == 0)
    assert not leader.isr.is_pending
    group.run(for_ms=1_000)
    assert set(group.state.isr) == {2, 3}


# Errors of AlterPartition


@pytest.mark.parametrize("error", [ErrorCode.ineligible_replica, ErrorCode.operation_not_attempted])
def test_proposal_that_was_certainly_not_applied_is_withdrawn(error: ErrorCode) -> None:
    group = _group_without_3()
    group.alter_partition_error = error
    group.heal()
    group.step_until(lambda: group.partition(1).isr.is_pending)
    group.step_until(lambda: not group.partition(1).isr.is_pending)
    assert group.partition(1).isr.maximal == {1, 2}


@pytest.mark.parametrize(
    "error",
    [
        ErrorCode.fenced_leader_epoch,
        ErrorCode.invalid_update_version,
        ErrorCode.invalid_request,
        ErrorCode.new_leader_elected,
        ErrorCode.unknown_topic_id,
        ErrorCode.unknown_topic_or_partition,
    ],
)
def test_leader_with_outdated_metadata_waits_for_newer_metadata(error: ErrorCode) -> None:
    group = _group_without_3()
    group.alter_partition_error = error
    group.heal()
    group.run(for_ms=2_000)
    assert group.partition(1).isr.phase is IsrPhase.PENDING_EXPAND
    group.alter_partition_error = None
    group.change()
    group.run(for_ms=2_000)
    assert set(group.state.isr) == {1, 2, 3}


def test_alter_partition_is_retried_after_any_other_error() -> None:
    group = _group_without_3()
    group.alter_partition_error = ErrorCode.unknown_server_error
    group.heal()
    group.step_until(lambda: group.rejections >= 3)
    group.alter_partition_error = None
    group.run(for_ms=2_000)
    assert set(group.state.isr) == {1, 2, 3}


def test_alter_partition_response_after_newer_metadata_is_ignored() -> None:
    group = _group_without_3()
    group.heal()
    group.step_until(lambda: group.partition(1).isr.is_pending)
    proposal = group.partition(1).isr
    group.elect(1, isr=(1, 2))
    group.partition(1).handle_alter_partition_update(
        proposal, isr=(1, 2, 3), leader_epoch=0, partition_epoch=9, now=group.now
    )
    assert (group.partition(1).isr.phase, group.partition(1).isr.isr) == (IsrPhase.COMMITTED, {1, 2})


# Separate fetchers of busy and quiet partitions


def connection_purposes(group: Group, node: int) -> set[str]:
    """Return the purposes of a follower's connections to the leader."""
    return {purpose for peer, purpose in group.members[group.state.leader].connections if peer == node}


def test_busy_partition_is_fetched_separately_from_quiet_partitions() -> None:
    group = Group(2)
    group.run(for_ms=1_000)
    assert connection_purposes(group, 2) == {"replica-fetcher-quiet-0"}
    group.produce("a")
    group.run()
    assert connection_purposes(group, 2) == {"replica-fetcher"}
    group.run(for_ms=7_000)
    assert connection_purposes(group, 2) == {"replica-fetcher"}, (
        "the partition stays there, because no other partition is quiet"
    )


def test_record_never_waits_for_a_fetch_without_its_partition() -> None:
    group = Group(2)
    for pause_ms in (0, 100, 4_990, 5_010, 5_600, 12_000, 250):
        group.run(for_ms=pause_ms)
        produced = group.produce("a")
        group.run(for_ms=0)
        assert produced.error is ErrorCode.none, pause_ms
