"""Defects of the group coordinator: committed offsets. The broker does not implement group members yet."""

from collections.abc import Iterable, Sequence
from typing import Any

from chaos.defects.defect import Area
from reference_broker.core.clock import Now
from reference_broker.core.group_coordinator import GroupCoordinator, Settled, Stable
from reference_broker.core.group_offsets import Commit, GroupOffsets
from reference_broker.core.handlers import offset_commit
from reference_broker.core.replication.partition import Partition
from reference_broker.protocol.errors import ErrorCode

_seeds = Area.GROUPS.seeds
_append = GroupCoordinator._append
_apply = GroupOffsets._apply
_commit = offset_commit._commit
_init = GroupOffsets.__init__


@_seeds(GroupOffsets, "load_more", "group-offsets-fit-log", "commit-lost", source="KAFKA-4362")
def begin_with_no_offsets(self: GroupOffsets) -> None:
    """A new coordinator does not load its partition.

    After a failover every group has lost its offsets, and its consumers start at the beginning or the end of the logs.
    """
    self._loaded_to = self._load_to


@_seeds(GroupOffsets, "__init__", "group-offsets-fit-log", "commit-lost", "commit-regress")
def load_up_to_the_high_watermark(self: GroupOffsets, partition: Partition) -> None:
    """A new coordinator loads its partition only up to its own high watermark, which lags at first.

    The last commits that its predecessor acknowledged are missing until the next failover.
    """
    _init(self, partition)
    self._load_to = partition.high_watermark


@_seeds(GroupCoordinator, "on_resignation", "group-offsets-fit-log", "commit-regress", source="KAFKA-5600")
def keep_offsets_when_deposed(self: GroupCoordinator, partition: Partition, now: Now) -> None:
    """A coordinator that is no longer the leader keeps its offsets, and uses them when it leads again.

    Groups fetch outdated offsets, and read records again.
    """


@_seeds(GroupCoordinator, "_append", "commit-lost", "commit-regress")
def acknowledge_commits_at_once(
    self: GroupCoordinator, offsets: GroupOffsets, commits: Sequence[Commit], settled: Settled, now: Now
) -> None:
    """A commit is acknowledged when the coordinator has appended it, before it is replicated.

    If the coordinator fails, the commit is lost, and the group reads records again.
    """
    _append(self, offsets, commits, lambda *_: None, now)
    settled(ErrorCode.none, now)


@_seeds(GroupCoordinator, "await_stable", "stable-offsets", source="KIP-447")
def return_unstable_offsets(self: GroupCoordinator, groups: Iterable[GroupOffsets], settled: Stable, now: Now) -> None:
    """OffsetFetch with `require_stable` does not wait for pending commits.

    A consumer that takes over a partition reads records again if their commit is pending at that time.
    """
    settled({}, now)


@_seeds(offset_commit, "_commit", "commit-regress", source="https://github.com/redpanda-data/redpanda/issues/13364")
def commit_one_offset_too_far(group: str, topic: str, requested: Any, now: Now) -> Commit:
    """The coordinator stores an offset that is one higher than the committed one.

    The group skips one record.
    """
    key, value = _commit(group, topic, requested, now)
    assert value is not None
    return key, type(value)(
        offset=value.offset + 1,
        leader_epoch=value.leader_epoch,
        metadata=value.metadata,
        commit_timestamp=value.commit_timestamp,
    )


@_seeds(GroupOffsets, "_apply", "group-offsets-fit-log", "commit-regress")
def keep_the_first_offset(self: GroupOffsets, key: Any, value: Any) -> None:
    """A later commit of a group for the same partition is ignored.

    A group always restarts at its first commit.
    """
    if value is None or (key.topic, key.partition) not in self._committed.get(key.group, {}):
        _apply(self, key, value)
