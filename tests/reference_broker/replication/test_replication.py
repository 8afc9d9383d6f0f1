"""What is committed, acknowledged and seen, as leader and followers exchange fetches."""

import pytest

from reference_broker.core.replication.isr import IsrPhase
from reference_broker.protocol.errors import ErrorCode
from tests.reference_broker.replication.group import LAG_MAX_MS, Group


def test_a_record_is_acknowledged_when_every_replica_in_sync_has_it() -> None:
    group = Group(3)
    group.run()
    produced = group.produce("a")
    assert produced.error is None
    group.run()
    assert produced.error is ErrorCode.none
    assert [group.values(node) for node in (1, 2, 3)] == ["a", "a", "a"]
    assert group.partition(1).high_watermark == 1


def test_acks_1_is_answered_at_once_and_stays_invisible_until_it_is_replicated() -> None:
    group = Group(3)
    group.run()
    group.cut(1, 2)
    assert group.produce("a", acks=1).error is ErrorCode.none
    group.run()
    assert (group.values(3), group.partition(1).high_watermark) == ("a", 0)
    group.heal()
    group.run(for_ms=1_000)
    assert group.partition(1).high_watermark == 1


def test_followers_hear_of_the_high_watermark_with_the_next_answer() -> None:
    group = Group(2)
    group.run()
    group.produce("a")
    group.run()
    assert (group.partition(1).high_watermark, group.partition(2).high_watermark) == (1, 0)
    group.run(for_ms=500)
    assert group.partition(2).high_watermark == 1


def test_a_produce_that_is_not_replicated_in_time_is_told_so_and_keeps_its_offset() -> None:
    group = Group(2)
    group.cut(1, 2)
    produced = group.produce("a", timeout_ms=1_000)
    group.run(for_ms=1_000)
    assert (produced.error, produced.base_offset) == (ErrorCode.request_timed_out, 0)
    assert group.values(1) == "a"


def test_who_loses_leadership_tells_those_who_wait_that_it_no_longer_leads() -> None:
    group = Group(3)
    group.cut(1, 2)
    group.cut(1, 3)
    produced = group.produce("a")
    group.elect(2)
    assert produced.error is ErrorCode.not_leader_or_follower
    assert group.produce("b", to=1).error is ErrorCode.not_leader_or_follower


def test_an_isr_below_the_minimum_takes_acks_1_alone_and_commits_nothing() -> None:
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
    group.tell()
    group.run(for_ms=2_000)
    assert set(group.state.isr) == {1, 2}
    assert (group.partition(1).high_watermark, waiting.error) == (3, ErrorCode.none)
    assert group.values(2) == "a b d"


def test_what_is_committed_by_too_small_an_isr_after_the_append_is_told_so() -> None:
    group = Group(2, min_isr=2)
    group.run()
    group.produce("a")
    group.run()
    group.change(isr=(1,))
    assert group.partition(1).check_enough_replicas_reach_offset(1) is ErrorCode.not_enough_replicas_after_append


def test_the_minimum_is_never_more_than_the_number_of_replicas() -> None:
    group = Group(1, min_isr=2)
    assert group.produce("a").error is ErrorCode.none


# The ISR shrinks


def test_a_follower_that_lags_too_long_leaves_the_isr_and_what_waited_for_it_is_acknowledged() -> None:
    group = Group(3)
    group.run(for_ms=1_000)
    group.cut(1, 3)
    produced = group.produce("a")
    group.run(for_ms=LAG_MAX_MS // 2)
    assert (group.state.isr, produced.error) == ((1, 2, 3), None)
    group.run(for_ms=LAG_MAX_MS)
    assert (group.state.isr, produced.error) == ((1, 2), ErrorCode.none)


def test_an_idle_follower_never_leaves_the_isr() -> None:
    group = Group(3)
    group.run()
    group.produce("a")
    group.run(for_ms=1_000)
    group.cut(1, 3)
    group.run(for_ms=10 * LAG_MAX_MS)
    assert group.state.isr == (1, 2, 3)


def test_a_follower_that_never_reaches_the_end_under_load_stays_in_the_isr() -> None:
    group = Group(2)
    group.run()
    for number in range(4 * LAG_MAX_MS // 100):
        group.produce(str(number), acks=1)
        group.step()  # the answer to the follower is under way when the next record comes
        group.run(for_ms=100)
    assert group.altered == []


def test_until_the_controller_agrees_those_that_are_to_leave_hold_the_high_watermark() -> None:
    group = Group(2)
    group.run()
    group.is_controller_reachable = False
    group.kill(2)
    produced = group.produce("a", timeout_ms=60_000)
    group.run(for_ms=2 * LAG_MAX_MS)
    assert group.partition(1).isr.phase is IsrPhase.PENDING_SHRINK
    group.produce("b", acks=1)
    assert (group.partition(1).high_watermark, produced.error) == (0, None)


def test_a_new_leader_gives_its_followers_a_whole_lag_time_to_show_up() -> None:
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
    """The ISR is 1 and 2; 3 has nothing, and is cut off."""
    group = Group(3, isr=(1, 2))
    group.cut(1, 3)
    group.run()
    group.produce("a", "b")
    group.run()
    return group


def test_a_follower_that_has_all_that_is_committed_joins_the_isr() -> None:
    group = _group_without_3()
    group.heal()
    group.run(for_ms=1_000)
    assert set(group.state.isr) == {1, 2, 3}
    assert group.values(3) == "a b"


def test_one_that_is_about_to_join_counts_from_when_it_is_proposed() -> None:
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
def test_a_follower_is_not_proposed_while_the_controller_would_refuse_it(change: dict[str, object]) -> None:
    """Fenced, about to stop (KIP-841), or the fetches are those of an earlier run of it (KIP-903)."""
    group = _group_without_3()
    group.alter_broker(3, tell=(1,), **change)
    group.heal()
    group.run(for_ms=1_500)
    assert group.altered == []


def test_a_fetch_of_an_earlier_run_of_a_follower_tells_nothing() -> None:
    group = _group_without_3()
    group.alter_broker(3, tell=(1,), broker_epoch=1_000)
    group.heal()
    group.run(for_ms=1_500)
    assert group.partition(1).followers[3].end_offset == -1


def test_a_caught_up_replica_outside_of_the_isr_is_not_outrun() -> None:
    """Else it could never join under load: the high watermark would always be ahead of it."""
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


def test_a_follower_must_reach_the_start_of_the_leaders_epoch_to_join() -> None:
    """Between the new leader's high watermark, which trails, and its log's end there may be committed records."""
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


# What the controller says


@pytest.mark.parametrize("error", [ErrorCode.ineligible_replica, ErrorCode.operation_not_attempted])
def test_a_proposal_that_was_certainly_not_carried_out_is_taken_back(error: ErrorCode) -> None:
    group = _group_without_3()
    group.refuse_with = error
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
def test_a_leader_whose_view_is_old_waits_for_newer_metadata(error: ErrorCode) -> None:
    group = _group_without_3()
    group.refuse_with = error
    group.heal()
    group.run(for_ms=2_000)
    assert group.partition(1).isr.phase is IsrPhase.PENDING_EXPAND
    group.refuse_with = None
    group.change()
    group.run(for_ms=2_000)
    assert set(group.state.isr) == {1, 2, 3}


def test_any_other_error_is_tried_again() -> None:
    group = _group_without_3()
    group.refuse_with = ErrorCode.unknown_server_error
    group.heal()
    group.step_until(lambda: group.refused >= 3)
    group.refuse_with = None
    group.run(for_ms=2_000)
    assert set(group.state.isr) == {1, 2, 3}


def test_an_answer_that_comes_after_newer_metadata_changes_nothing() -> None:
    group = _group_without_3()
    group.heal()
    group.step_until(lambda: group.partition(1).isr.is_pending)
    proposal = group.partition(1).isr
    group.elect(1, isr=(1, 2))
    group.partition(1).handle_alter_partition_update(
        proposal, isr=(1, 2, 3), leader_epoch=0, partition_epoch=9, now=group.now
    )
    assert (group.partition(1).isr.phase, group.partition(1).isr.isr) == (IsrPhase.COMMITTED, {1, 2})


# Lanes


def lanes(group: Group, node: int) -> set[str]:
    """For what purposes a follower asks the leader now."""
    return {purpose for asker, purpose in group.members[group.state.leader].connections if asker == node}


def test_a_partition_that_is_written_to_is_fetched_apart_from_the_quiet_ones() -> None:
    group = Group(2)
    group.run(for_ms=1_000)
    assert lanes(group, 2) == {"replica-fetcher-quiet-0"}
    group.produce("a")
    group.run()
    assert lanes(group, 2) == {"replica-fetcher"}
    group.run(for_ms=7_000)
    assert lanes(group, 2) == {"replica-fetcher"}, "nobody else is quiet, so it stays"


def test_a_record_never_waits_for_a_fetch_that_does_not_name_its_partition() -> None:
    group = Group(2)
    for pause_ms in (0, 100, 4_990, 5_010, 5_600, 12_000, 250):
        group.run(for_ms=pause_ms)
        produced = group.produce("a")
        group.run(for_ms=0)
        assert produced.error is ErrorCode.none, pause_ms
