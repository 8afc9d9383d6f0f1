"""Truncation of followers' logs: by leader epochs, never to the high watermark (KIP-101, KIP-279, KIP-320)."""

import pytest

from reference_broker.core.log.checkpoints import RECOVERY_POINT_FILE, read_offsets
from reference_broker.protocol.errors import ErrorCode
from tests.reference_broker.replication.group import TOPIC, Group


def fetches_within(group: Group, node: int, for_ms: int) -> bool:
    """Advance the clock, and return whether a broker has sent a Fetch request for the partition in that time."""
    before = group.fetches[node]
    group.run(for_ms=for_ms)
    return group.fetches[node] > before


def leader_with_an_unreplicated_record() -> Group:
    """Return two brokers that both have "a". Broker 1 is the leader; it is cut off, and only its log has "b"."""
    group = Group(2)
    group.run()
    group.produce("a")
    group.run()
    group.cut(1, 2)
    group.produce("b", acks=1)
    return group


def test_kip_101_restarted_follower_keeps_committed_records_above_its_high_watermark() -> None:
    """Scenario 1: the follower restarts, then the leader fails. A truncation to the high watermark would lose "b"."""
    group = Group(2)
    group.run()
    group.produce("a")
    produced = group.produce("b")
    group.run()
    assert (produced.error, group.partition(2).high_watermark) == (ErrorCode.none, 0)
    group.kill(2)
    group.run()
    group.start(2)
    group.publish_metadata()
    group.kill(1)
    group.elect(2, isr=(2,))
    assert group.values(2) == "a b"


def test_kip_101_former_leader_truncates_its_unreplicated_records() -> None:
    """Scenario 2: both replicas fail. The one with fewer records becomes leader. The logs must agree at offset 1."""
    group = leader_with_an_unreplicated_record()
    group.kill(1)
    group.kill(2)
    group.heal()
    group.start(2)
    group.publish_metadata()
    group.elect(2, isr=(2,))
    group.produce("c")
    group.start(1)
    group.publish_metadata()
    group.run(for_ms=1_500)
    assert group.log(1) == group.log(2) == [(0, 0, "a"), (1, 1, "c")]
    assert set(group.state.isr) == {1, 2}


def test_recovery_point_is_checkpointed_when_records_below_it_are_removed() -> None:
    """Otherwise, records that are appended at these offsets later would count as flushed after a crash."""
    group = leader_with_an_unreplicated_record()
    group.partition(1).log.flush()
    group.members[1].broker.replicas.checkpoint()
    assert read_offsets(group.disks[1], RECOVERY_POINT_FILE) == {(TOPIC, 0): 2}
    group.elect(2, isr=(2,))
    group.heal()
    group.run(for_ms=1_500)
    assert group.values(1) == "a"
    assert read_offsets(group.disks[1], RECOVERY_POINT_FILE) == {(TOPIC, 0): 1}


def test_kip_279_logs_that_diverged_in_several_epochs_are_truncated_step_by_step() -> None:
    """Broker 1 has epochs 0, 2 and 4, and broker 2 has 0, 1 and 3.

    Broker 2 fetches with epoch 3. Broker 1 returns the diverging epoch 2, which the log of broker 2 lacks.
    """
    group = Group(2)
    group.run()
    group.produce("a")
    group.run(for_ms=1_000)
    group.cut(1, 2)
    for leader, value in ((2, "b"), (1, "c"), (2, "d"), (1, "e")):
        group.elect(leader)
        group.produce(value, acks=1)
    assert [epoch for _, epoch, _ in group.log(1)] == [0, 2, 4]
    assert [epoch for _, epoch, _ in group.log(2)] == [0, 1, 3]
    group.heal()
    group.run(for_ms=1_500)
    assert group.log(2) == group.log(1) == [(0, 0, "a"), (1, 2, "c"), (2, 4, "e")]


def test_followers_truncate_to_the_log_of_an_unclean_leader() -> None:
    group = Group(2)
    group.run()
    group.produce("a")
    group.run()
    group.cut(1, 2)
    group.change(isr=(1,))
    group.produce("b", "c")
    group.elect(2, isr=(2,))
    group.heal()
    group.run(for_ms=1_500)
    assert group.log(1) == group.log(2) == [(0, 0, "a")]
    assert group.partition(1).high_watermark == 1


def test_follower_below_the_leaders_log_start_offset_restarts_its_log_at_that_offset() -> None:
    group = Group(2, isr=(1,))
    group.cut(1, 2)
    group.produce("a", "b")
    group.produce("c")
    group.partition(1).delete_records_on_leader(2, group.now)
    group.heal()
    group.run(for_ms=1_500)
    assert (group.log(2), group.partition(2).log_start_offset) == ([(2, 0, "c")], 2)
    assert set(group.state.isr) == {1, 2}


def test_follower_with_a_newer_epoch_than_the_leader_backs_off() -> None:
    group = Group(2)
    group.run()
    group.elect(1, publish_to=(2,))
    group.run(for_ms=500)  # until the fetch of the previous epoch has its response
    assert not fetches_within(group, 2, for_ms=900)
    assert fetches_within(group, 2, for_ms=100)
    group.publish_metadata()
    produced = group.produce("a")
    group.run(for_ms=1_000)
    assert produced.error is ErrorCode.none


def test_fenced_follower_waits_for_new_metadata() -> None:
    group = Group(2)
    group.run()
    group.elect(1, publish_to=(1,))
    group.run(for_ms=500)  # until the fetch of the previous epoch has its response
    assert not fetches_within(group, 2, for_ms=5_000)
    group.publish_metadata()
    produced = group.produce("a")
    group.run()
    assert produced.error is ErrorCode.none


def test_new_replica_that_is_unknown_to_the_leader_backs_off() -> None:
    """The new replica receives the metadata of the reassignment before the leader does."""
    group = Group(3)
    group.run()
    group.produce("a")
    group.run()
    group.change(replicas=(1, 2), isr=(1, 2))
    assert group.members[3].broker.replicas.get(TOPIC, 0) is None
    group.change(replicas=(1, 2, 3), adding_replicas=(3,), publish_to=(3,))
    group.run()
    assert not fetches_within(group, 3, for_ms=900)
    assert fetches_within(group, 3, for_ms=100)
    group.publish_metadata()
    group.run(for_ms=1_500)
    assert group.values(3) == "a"


def test_follower_reconnects_after_the_backoff() -> None:
    group = Group(2)
    group.run()
    group.cut(1, 2)
    group.heal()
    produced = group.produce("a")
    assert not fetches_within(group, 2, for_ms=900)
    assert produced.error is None
    assert fetches_within(group, 2, for_ms=100)
    assert produced.error is ErrorCode.none


@pytest.mark.parametrize("clean", [True, False])
def test_high_watermark_is_restored_after_a_clean_shutdown_only(clean: bool) -> None:
    """A clean shutdown writes the checkpoint. The broker is killed before it would write it periodically."""
    group = Group(2)
    group.run()
    group.produce("a")
    group.run(for_ms=1_000)
    if clean:
        group.members[2].broker.close()
    group.kill(2)
    group.start(2)
    group.publish_metadata((2,))
    assert group.partition(2).high_watermark == (1 if clean else 0)
