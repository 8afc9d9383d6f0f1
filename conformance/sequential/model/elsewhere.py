"""Model of the responses of brokers that are not the partition's leader or the group's coordinator."""

from typing import Final

from conformance.sequential.expectation import Expectation
from conformance.sequential.model.cluster import ModelCluster, Partition
from conformance.sequential.steps import DeleteRecords, Fetch, ListOffsets, OffsetForLeaderEpoch, Produce, Step

_NOT_LEADER: Final = "NOT_LEADER_OR_FOLLOWER"
_FOLLOWER_FETCH: Final = 11
"""Version of Fetch since which followers serve consumers (KIP-392)."""

_NOTHING: Final[dict[type[Step], Expectation]] = {
    Produce: {"base_offset": -1, "log_append_time": "none"},
    Fetch: {"records": ()},
    ListOffsets: {"timestamp": -1, "offset": -1},
    OffsetForLeaderEpoch: {"leader_epoch": -1, "end_offset": -1},
    DeleteRecords: {"low_watermark": -1},
}


def rejected_by(cluster: ModelCluster, broker: int, step: Step) -> Expectation | None:
    """Return NOT_LEADER_OR_FOLLOWER and the leader (KIP-951); None if the broker serves the step.

    A Fetch to a follower that may serve it has an empty expectation: every response is permitted.
    """
    if type(step) not in _NOTHING:
        return None
    assert isinstance(step, Produce | Fetch | ListOffsets | OffsetForLeaderEpoch | DeleteRecords)
    partition = cluster.partition(step.topic, step.partition)
    if partition is None or partition.leader in {None, broker}:
        return None
    if isinstance(step, Fetch) and _is_served_by_followers(partition, broker, step):
        return {}
    leader = {"current_leader": (partition.leader, partition.leader_epoch), "endpoints": (partition.leader,)}
    return {"error": _NOT_LEADER, **_NOTHING[type(step)], **leader}


def served_by_one(alone: Expectation) -> Expectation:
    """Return the expectation that only the coordinator serves a request; nothing is expected of an invalid request."""
    return {"served_by": 1, "other_errors": ("NOT_COORDINATOR",)} if alone.get("error") == "NONE" else {}


def _is_served_by_followers(partition: Partition, broker: int, step: Fetch) -> bool:
    return broker in (partition.replicas or ()) and (step.version is None or step.version >= _FOLLOWER_FETCH)
