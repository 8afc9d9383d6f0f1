"""Logs that have parted come together by leader epochs, never by the high watermark (KIP-101, KIP-279, KIP-320)."""

import pytest

from reference_broker.protocol.errors import ErrorCode
from tests.reference_broker.replication.group import TOPIC, Group


def rests(group: Group, node: int, for_ms: int) -> bool:
    """Whether a broker asks nothing about the partition for a time, which passes."""
    before = group.fetches[node]
    group.run(for_ms=for_ms)
    return group.fetches[node] == before


def test_kip_101_a_restarted_follower_keeps_what_is_committed_above_its_own_high_watermark() -> None:
    """Scenario 1: it restarts, and then the leader dies. Had it truncated to its high watermark, "b" would be lost."""
    group = Group(2)
    group.run()
    group.produce("a")
    produced = group.produce("b")
    group.run()
    assert (produced.error, group.partition(2).high_watermark) == (ErrorCode.none, 0)
    group.kill(2)
    group.run()
    group.start(2)
    group.tell()
    group.kill(1)
    group.elect(2, isr=(2,))
    assert group.values(2) == "a b"


def test_kip_101_a_deposed_leader_gives_up_what_it_alone_had() -> None:
    """Scenario 2: both die; the one that had less comes back first and leads. Offset 1 must not hold two records."""
    group = Group(2)
    group.run()
    group.produce("a")
    group.run()
    group.cut(1, 2)
    group.produce("b", acks=1)
    group.kill(1)
    group.kill(2)
    group.heal()
    group.start(2)
    group.tell()
    group.elect(2, isr=(2,))
    group.produce("c")
    group.start(1)
    group.tell()
    group.run(for_ms=1_500)
    assert group.log(1) == group.log(2) == [(0, 0, "a"), (1, 1, "c")]
    assert set(group.state.isr) == {1, 2}


def test_kip_279_logs_that_parted_in_several_epochs_come_together_step_by_step() -> None:
    """1 has epochs 0, 2 and 4; 2 has 0, 1 and 3. What 1 tells of epoch 3 is about 2, which 2 does not know."""
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


def test_an_unclean_leader_shortens_the_logs_of_the_others() -> None:
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


def test_a_follower_that_ends_below_the_leaders_start_begins_again_there() -> None:
    group = Group(2, isr=(1,))
    group.cut(1, 2)
    group.produce("a", "b")
    group.produce("c")
    group.partition(1).delete_records_on_leader(2, group.now)
    group.heal()
    group.run(for_ms=1_500)
    assert (group.log(2), group.partition(2).log_start_offset) == ([(2, 0, "c")], 2)
    assert set(group.state.isr) == {1, 2}


def test_a_follower_that_was_told_of_an_epoch_first_waits_for_the_leader() -> None:
    group = Group(2)
    group.run()
    group.elect(1, tell=(2,))
    group.run(for_ms=500)  # until the fetch of the epoch before is answered
    assert rests(group, 2, for_ms=900)
    assert not rests(group, 2, for_ms=100)
    group.tell()
    produced = group.produce("a")
    group.run(for_ms=1_000)
    assert produced.error is ErrorCode.none


def test_a_follower_that_is_fenced_waits_for_its_metadata() -> None:
    group = Group(2)
    group.run()
    group.elect(1, tell=(1,))
    group.run(for_ms=500)  # until the fetch of the epoch before is answered
    assert rests(group, 2, for_ms=5_000)
    group.tell()
    produced = group.produce("a")
    group.run()
    assert produced.error is ErrorCode.none


def test_a_replica_that_the_leader_does_not_know_yet_waits() -> None:
    """A reassignment reached the new replica before the leader."""
    group = Group(3)
    group.run()
    group.produce("a")
    group.run()
    group.change(replicas=(1, 2), isr=(1, 2))
    assert group.members[3].broker.replicas.get(TOPIC, 0) is None
    group.change(replicas=(1, 2, 3), adding_replicas=(3,), tell=(3,))
    group.run()
    assert rests(group, 3, for_ms=900)
    assert not rests(group, 3, for_ms=100)
    group.tell()
    group.run(for_ms=1_500)
    assert group.values(3) == "a"


def test_a_lost_connection_is_tried_again_after_the_backoff() -> None:
    group = Group(2)
    group.run()
    group.cut(1, 2)
    group.heal()
    produced = group.produce("a")
    assert rests(group, 2, for_ms=900)
    assert produced.error is None
    group.run(for_ms=100)
    assert produced.error is ErrorCode.none


@pytest.mark.parametrize("clean", [True, False])
def test_the_high_watermark_survives_as_far_as_it_was_written_down(clean: bool) -> None:
    group = Group(2)
    group.run()
    group.produce("a")
    group.run(for_ms=1_000)
    if clean:
        group.members[2].broker.close()
    group.kill(2)
    group.start(2)
    group.tell((2,))
    assert group.partition(2).high_watermark == (1 if clean else 0)
