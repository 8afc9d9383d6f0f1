"""`LeaderEpochFileCache` compared with a list that has the epoch of each offset (KIP-101, KIP-279)."""

import hypothesis.strategies as st
from hypothesis import given

from reference_broker.core.disk import MemoryDisk
from reference_broker.core.log.checkpoints import LEADER_EPOCH_FILE, read_offsets, write_offsets
from reference_broker.core.log.leader_epoch_file_cache import LeaderEpochFileCache

DIRECTORY = "orders-0"


def cache_with(entries):
    epochs = LeaderEpochFileCache(MemoryDisk(), DIRECTORY)
    for epoch, start_offset in entries:
        epochs.assign(epoch, start_offset)
    return epochs


def test_checkpoint_has_kafkas_format():
    disk = MemoryDisk()
    epochs = LeaderEpochFileCache(disk, DIRECTORY)
    epochs.assign(0, 0)
    epochs.assign(3, 17)
    assert bytes(disk.files[f"{DIRECTORY}/{LEADER_EPOCH_FILE}"]) == b"0\n2\n0 0\n3 17\n"
    assert LeaderEpochFileCache(disk, DIRECTORY).entries == ((0, 0), (3, 17))


def test_end_offsets_follow_kafkas_rules():
    epochs = cache_with([(2, 10), (4, 20), (7, 30)])
    assert epochs.end_offset_for(-1, 40) == (-1, -1)
    assert epochs.end_offset_for(8, 40) == (-1, -1)
    assert epochs.end_offset_for(7, 40) == (7, 40)
    assert epochs.end_offset_for(6, 40) == (4, 30)
    assert epochs.end_offset_for(4, 40) == (4, 30)
    assert epochs.end_offset_for(3, 40) == (2, 20)
    assert epochs.end_offset_for(1, 40) == (1, 10)
    assert epochs.end_offset_for(-2, 40) == (-2, 10)
    assert cache_with([]).end_offset_for(-2, 40) == (-1, -1)
    assert cache_with([]).end_offset_for(0, 40) == (-1, -1)


def test_epoch_without_records_is_replaced():
    epochs = cache_with([(0, 0), (1, 5), (2, 5)])
    assert epochs.entries == ((0, 0), (2, 5))


@given(
    runs=st.lists(st.tuples(st.integers(1, 3), st.integers(1, 4)), max_size=6),
    start=st.integers(0, 25),
    end=st.integers(0, 25),
    requested=st.integers(-1, 20),
)
def test_end_offsets_equal_those_of_a_list(runs, start, end, requested):
    written, epoch = [], -1
    epochs = LeaderEpochFileCache(MemoryDisk(), DIRECTORY)
    for step, count in runs:
        epoch += step
        epochs.assign(epoch, len(written))
        written += [epoch] * count
    start, end = sorted((min(start, len(written)), min(end, len(written))))
    epochs.truncate_from_end(end)
    epochs.truncate_from_start(start)
    kept = dict(enumerate(written[:end]))
    left = {offset: epoch for offset, epoch in kept.items() if offset >= start}
    if not left:
        return
    latest = max(left.values())
    assert epochs.latest == latest
    assert all(epochs.epoch_for_offset(offset) == epoch for offset, epoch in left.items())
    if requested == -1 or requested > latest:
        assert epochs.end_offset_for(requested, end) == (-1, -1)
    else:
        floor = max((epoch for epoch in left.values() if epoch <= requested), default=requested)
        above = min((offset for offset, epoch in left.items() if epoch > requested), default=end)
        assert epochs.end_offset_for(requested, end) == (floor, above)


@given(st.dictionaries(st.tuples(st.sampled_from(["a", "b.c", "d_e"]), st.integers(0, 9)), st.integers(0, 2**63 - 1)))
def test_offset_checkpoints_round_trip(offsets):
    disk = MemoryDisk()
    write_offsets(disk, "recovery-point-offset-checkpoint", offsets)
    assert read_offsets(disk, "recovery-point-offset-checkpoint") == offsets


def test_invalid_checkpoint_is_treated_as_missing():
    disk = MemoryDisk()
    for damaged in (b"", b"1\n0\n", b"0\n2\na 0 1\n", b"0\n1\na 0\n", b"0\n1\na 0 x\n", b"\xff\xfe", b"0\nx\n"):
        disk.replace("checkpoint", damaged)
        assert read_offsets(disk, "checkpoint") == {}
    assert read_offsets(disk, "none") == {}


def test_checkpoint_of_a_killed_broker_is_flushed_after_the_restart():
    disk = MemoryDisk()
    LeaderEpochFileCache(disk, DIRECTORY).assign(0, 0)
    reopened = LeaderEpochFileCache(disk, DIRECTORY)
    assert reopened.take_unflushed() == [f"{DIRECTORY}/{LEADER_EPOCH_FILE}"]
    assert reopened.take_unflushed() == []
