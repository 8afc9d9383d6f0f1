"""The metadata log: divergence and truncation, snapshots, and recovery after power failures."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference_broker.core.disk import MemoryDisk
from reference_broker.core.log.config import LogConfig
from reference_broker.core.quorum.control_records import leader_change_batch
from reference_broker.core.quorum.messages import OffsetAndEpoch
from reference_broker.core.quorum.quorum_log import QUORUM_LOG_DIRECTORY, QuorumLog
from reference_broker.core.quorum.snapshots import encode_snapshot
from reference_broker.protocol.record_batch import BatchHeader
from reference_broker.protocol.records import KeyValue, decode_batches, encode_batch
from reference_broker.simulation.disk import SimulatedDisk

NOW_MS = 1_700_000_000_000
CONFIG = LogConfig(cleanup_policy=frozenset(), segment_bytes=300, index_interval_bytes=100)
SNAPSHOT = encode_snapshot(5, [[KeyValue(None, b"state")]], last_contained_log_timestamp_ms=NOW_MS, now_ms=NOW_MS)


def open_log(disk, epochs=()):
    """Return a log with one record for each of the epochs."""
    log = QuorumLog(disk, CONFIG, NOW_MS)
    for number, epoch in enumerate(epochs):
        log.append_as_leader(encode_batch([KeyValue(None, b"%d" % number)], NOW_MS), epoch, NOW_MS)
    log.flush()
    return log


def epochs_of(log):
    return [log.epoch_for_offset(offset) for offset in range(log.start_offset, log.end_offset)]


def follow(follower, leader, epoch):
    """Fetch and truncate until the logs are equal; return the number of truncations."""
    truncations = 0
    while True:
        end = follower.end
        diverging = leader.diverging_epoch(end.offset, end.epoch)
        if diverging is not None:
            truncations += 1
            follower.truncate_to_end_offset(diverging, NOW_MS)
            assert follower.end_offset < end.offset
        elif end.offset == leader.end_offset:
            return truncations
        else:
            follower.append_as_follower(leader.read(end.offset, 200), epoch, NOW_MS)


histories = st.lists(st.integers(1, 6), max_size=12).map(sorted)


@given(common=histories, leader=histories, follower=histories)
def test_follower_keeps_exactly_the_common_records(common, leader, follower):
    """The logs are equal up to an offset, and have different epochs after it.

    Two records at one offset differ only by epoch.
    """
    base = max(common, default=0)
    leaders = [*common, *(base + 2 * epoch for epoch in leader)]
    followers = [*common, *(base + 2 * epoch - 1 for epoch in follower)]
    leading, following = open_log(MemoryDisk(), leaders), open_log(MemoryDisk(), followers)
    truncations = follow(following, leading, max([*leaders, *followers, 1]))
    assert following.read(0, 1 << 20) == leading.read(0, 1 << 20)
    assert epochs_of(following) == leaders
    assert bool(follower) == bool(truncations)


@pytest.mark.parametrize("damage", ["torn", "flipped", "gap", "newer"])
def test_follower_rejects_batches_that_do_not_follow_its_log(damage):
    leader, follower = open_log(MemoryDisk(), [1, 1, 3]), open_log(MemoryDisk())
    records = bytearray(leader.read(0, 1 << 20))
    second = BatchHeader.parse(records).size_bytes
    match damage:
        case "torn":
            del records[-1:]
        case "flipped":
            records[-1] ^= 1
        case "gap":
            del records[second : 2 * second]
    follower.append_as_follower(bytes(records), 2 if damage == "newer" else 3, NOW_MS)
    assert follower.end_offset == (1 if damage == "gap" else 2)


def test_truncation_survives_a_power_failure():
    for seed in range(20):
        disk = SimulatedDisk()
        log = open_log(disk, [1, 1, 2, 2, 2, 2, 2, 2])
        log.truncate_to_end_offset(OffsetAndEpoch(2, 1), NOW_MS)
        disk.cut_power(Random(seed))
        assert open_log(disk).end == OffsetAndEpoch(2, 1)


def test_power_failure_loses_only_unflushed_records():
    ends = set()
    for seed in range(40):
        disk = SimulatedDisk()
        log = open_log(disk, [1, 1])
        log.append_as_leader(leader_change_batch(1, [1], [1], NOW_MS), 2, NOW_MS)
        disk.cut_power(Random(seed))
        ends.add(open_log(disk).end)
    assert OffsetAndEpoch(2, 1) in ends <= {OffsetAndEpoch(2, 1), OffsetAndEpoch(3, 2)}


def test_log_starts_at_its_snapshot():
    disk = MemoryDisk()
    log = open_log(disk, [1, 1, 2, 2, 2, 5])
    log.store_snapshot(OffsetAndEpoch(2, 1), SNAPSHOT)
    log.store_snapshot(OffsetAndEpoch(5, 2), SNAPSHOT)
    log.delete_before_snapshot(OffsetAndEpoch(5, 2), NOW_MS)
    for found in (log, open_log(disk)):
        assert (found.start_offset, found.end) == (5, OffsetAndEpoch(6, 5))
        assert found.snapshots.earliest == OffsetAndEpoch(5, 2)
        assert found.snapshot_for(0, 0) == OffsetAndEpoch(5, 2)
        assert found.snapshot_for(3, 2) == OffsetAndEpoch(5, 2)
        assert found.snapshot_for(5, 1) == OffsetAndEpoch(5, 2)
        assert found.snapshot_for(5, 2) is None
        assert found.diverging_epoch(5, 2) is None
        assert found.diverging_epoch(7, 5) == OffsetAndEpoch(6, 5)


@pytest.mark.parametrize("epochs", [[], [1, 1], [1, 7, 7], [1, 7, 7, 7, 7, 7, 7, 7]])
def test_installed_snapshot_replaces_the_log(epochs):
    """Even a log with a newer epoch is replaced: the snapshot lacks its records, so they are not committed."""
    disk = MemoryDisk()
    log = open_log(disk, epochs)
    log.install_snapshot(OffsetAndEpoch(5, 5), SNAPSHOT, NOW_MS)
    for found in (log, open_log(disk)):
        assert (found.start_offset, found.end) == (5, OffsetAndEpoch(5, 5))
        assert found.snapshots.latest == found.snapshots.earliest == OffsetAndEpoch(5, 5)


@pytest.mark.parametrize("epochs", [[], [1, 1], [1, 7, 7], [1, 7, 7, 7, 7, 7, 7, 7]])
def test_interrupted_installation_is_completed(epochs):
    disk = MemoryDisk()
    open_log(disk, epochs).snapshots.store(OffsetAndEpoch(5, 5), SNAPSHOT)
    log = open_log(disk)
    assert (log.start_offset, log.end) == (5, OffsetAndEpoch(5, 5))


def test_older_snapshots_of_an_interrupted_installation_are_deleted():
    """Found by the simulation: the power failed after the log was replaced, before the older snapshot was deleted."""
    disk = MemoryDisk()
    log = open_log(disk, [1, 1, 1])
    log.store_snapshot(OffsetAndEpoch(2, 1), SNAPSHOT)
    older = {path: bytes(data) for path, data in disk.files.items() if path.endswith(".checkpoint")}
    log.install_snapshot(OffsetAndEpoch(5, 5), SNAPSHOT, NOW_MS)
    disk.files.update({path: bytearray(data) for path, data in older.items()})
    found = open_log(disk)
    assert (found.start_offset, found.snapshots.earliest) == (5, OffsetAndEpoch(5, 5))


def copied(disk):
    return {path: bytearray(data) for path, data in disk.files.items()}


def test_older_segments_of_an_interrupted_installation_are_not_part_of_the_log():
    """Found by the simulation: after a power failure, the new segment and all segments that it replaced existed."""
    disk = MemoryDisk()
    log = open_log(disk, [5, 5, 5])
    log.store_snapshot(OffsetAndEpoch(2, 5), SNAPSHOT)
    older = copied(disk)
    log.install_snapshot(OffsetAndEpoch(5, 5), SNAPSHOT, NOW_MS)
    disk.files.update(older)
    found = open_log(disk)
    assert (found.start_offset, found.end) == (5, OffsetAndEpoch(5, 5))
    assert found.snapshots.earliest == OffsetAndEpoch(5, 5)


@pytest.mark.parametrize(("restored", "start"), [({0}, 8), ({4}, 4), ({0, 4}, 4)])
def test_restored_segments_below_the_log_start_lose_no_record(restored, start):
    """A power failure restores deleted segments, and the snapshot that ends at offset 4.

    The log starts at offset 4 if it has all records from there on, else at 8.

    :param restored: base offsets of the restored segments.
    """
    disk = MemoryDisk()
    log = open_log(disk, [5] * 12)
    log.store_snapshot(OffsetAndEpoch(4, 5), SNAPSHOT)
    log.store_snapshot(OffsetAndEpoch(8, 5), SNAPSHOT)
    older = copied(disk)
    log.delete_before_snapshot(OffsetAndEpoch(8, 5), NOW_MS)
    deleted = {path for path in older if path not in disk.files}
    segments = {f"{QUORUM_LOG_DIRECTORY}/{base:020d}.log" for base in (0, 4)}
    assert segments <= deleted
    names = {path for path in deleted if path.endswith(".checkpoint")}
    names |= {f"{QUORUM_LOG_DIRECTORY}/{base:020d}.log" for base in restored}
    disk.files.update({path: older[path] for path in names})
    found = open_log(disk)
    assert (found.start_offset, found.end) == (start, OffsetAndEpoch(12, 5))
    assert sum(1 for _ in decode_batches(found.read(start, 10_000))) > 0


def test_snapshot_within_the_log_does_not_change_the_log():
    disk = MemoryDisk()
    log = open_log(disk, [1, 1, 5, 5, 5, 6])
    log.store_snapshot(OffsetAndEpoch(5, 5), SNAPSHOT)
    assert open_log(disk).end == OffsetAndEpoch(6, 6)


def test_snapshot_has_batches_with_its_own_offsets():
    position, headers = 0, []
    while position < len(SNAPSHOT):
        headers.append(BatchHeader.parse(SNAPSHOT, position))
        position += headers[-1].size_bytes
    assert [(header.base_offset, header.leader_epoch, header.is_control) for header in headers] == [
        (0, 5, True),
        (1, 5, False),
        (2, 5, True),
    ]
    assert [record.value for _, record in decode_batches(SNAPSHOT)] == [b"state"]


def test_files_have_kafkas_names():
    disk = MemoryDisk()
    open_log(disk, [1]).store_snapshot(OffsetAndEpoch(1, 1), SNAPSHOT)
    assert f"{QUORUM_LOG_DIRECTORY}/00000000000000000001-0000000001.checkpoint" in disk.files
