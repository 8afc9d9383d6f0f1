"""What nodes of the quorum are examined in at the controllers' listener, by nodes that mistake themselves.

Sources: `KafkaRaftClient` of Kafka 4.3, KIP-595, KIP-630, KIP-853, KIP-996.
"""

from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

from chaos.simulation.examination.exam import (
    ELSEWHERE,
    NOBODY,
    NONE,
    STRANGER,
    Exam,
    Facts,
    Whom,
    always,
    schema_for_nodes,
)
from reference_broker.core.quorum.messages import METADATA_TOPIC_ID
from reference_broker.core.quorum.wire_parts import named

OWN: Final = "own"
"""In place of the cluster's id."""
_FETCH, _VOTE, _BEGIN, _END, _FETCH_SNAPSHOT = 1, 52, 53, 54, 59


def _vote(facts: Facts, *, cluster_id: str | None = OWN, voter_id: int | None = None, **given: Any) -> Any:
    """Of another voter, whose log is empty, for its vote in the epoch that is."""
    schema, asked_id = schema_for_nodes(_VOTE), facts.standby
    partition = schema.PartitionData(
        partition_index=0,
        replica_epoch=facts.epoch,
        replica_id=facts.controller,
        replica_directory_id=None,
        voter_directory_id=None,
        last_offset_epoch=0,
        last_offset=0,
        pre_vote=False,
    )
    return schema.VoteRequest(
        cluster_id=facts.cluster_id if cluster_id == OWN else cluster_id,
        voter_id=asked_id if voter_id is None else voter_id,
        topics=named(schema, replace(partition, **given)),
    )


def _votes(facts: Facts) -> Any:
    return [
        _vote(facts, cluster_id=ELSEWHERE),
        _vote(facts, partition_index=1),
        _vote(facts, replica_epoch=facts.epoch - 1, pre_vote=True),
        _vote(facts, voter_id=facts.controller),
        _vote(facts, voter_directory_id=STRANGER),
        _vote(facts, replica_id=-1),
        _vote(facts, replica_id=NOBODY),
        _vote(facts, replica_epoch=2**31 - 1),
        _vote(facts, last_offset=-1),
        _vote(facts, last_offset_epoch=-1),
        _vote(facts, last_offset_epoch=facts.epoch, last_offset=2**40),
        _vote(facts, last_offset_epoch=facts.epoch + 1, pre_vote=True),
        _vote(facts),
        _vote(facts, pre_vote=True),
        _vote(facts, cluster_id=None),
        _vote(facts, last_offset_epoch=facts.epoch - 1, last_offset=2**40),
        _vote(facts, last_offset_epoch=facts.epoch, last_offset=2**40, pre_vote=True),
        _vote(facts, voter_id=-1),
    ]


_OF_VOTES: Final = [
    *("INCONSISTENT_CLUSTER_ID", "INVALID_REQUEST"),
    *(
        each
        for error in (
            *("FENCED_LEADER_EPOCH", "INVALID_VOTER_KEY", "INVALID_VOTER_KEY", "INVALID_REQUEST"),
            *("INCONSISTENT_VOTER_SET", *("INVALID_REQUEST",) * 5),
        )
        for each in (NONE, error)
    ),
    *(NONE, NONE) * 6,
]
"""Who knows a leader that answers votes for nobody."""


def _vote_for_a_short_log(facts: Facts) -> Any:
    return _vote(facts, replica_epoch=facts.epoch + 1, last_offset_epoch=0, last_offset=0)


def _announcement(facts: Facts, api_key: int, *, cluster_id: str | None = OWN, **given: Any) -> Any:
    """Of the leader, to a voter, that the epoch has begun or ended."""
    schema = schema_for_nodes(api_key)
    candidates = {"preferred_candidates": ()} if api_key == _END else {"voter_directory_id": None}
    partition = schema.PartitionData(
        partition_index=0, leader_id=facts.controller, leader_epoch=facts.epoch, **candidates
    )
    voter_id = {} if api_key == _END else {"voter_id": given.pop("voter_id", facts.standby)}
    return (schema.EndQuorumEpochRequest if api_key == _END else schema.BeginQuorumEpochRequest)(
        cluster_id=facts.cluster_id if cluster_id == OWN else cluster_id,
        topics=named(schema, replace(partition, **given)),
        leader_endpoints=(),
        **voter_id,
    )


def _announcements(facts: Facts) -> Any:
    return [
        *(
            _announcement(facts, api_key, **given)
            for api_key in (_BEGIN, _END)
            for given in (
                {"cluster_id": ELSEWHERE},
                {"partition_index": 1},
                {"leader_epoch": facts.epoch - 1},
                {"leader_id": NOBODY},
                {"leader_id": -1},
                {"leader_id": facts.standby},
                {"leader_epoch": 2**31 - 1},
            )
        ),
        _announcement(facts, _BEGIN, voter_id=facts.controller),
        _announcement(facts, _BEGIN, voter_directory_id=STRANGER),
        _announcement(facts, _BEGIN),
        _announcement(facts, _BEGIN, cluster_id=None),
        _announcement(facts, _BEGIN, voter_id=-1),
    ]


_OF_ANNOUNCEMENTS: Final = [
    *(
        *("INCONSISTENT_CLUSTER_ID", "INVALID_REQUEST"),
        *(NONE, "FENCED_LEADER_EPOCH", NONE, "INCONSISTENT_VOTER_SET", *(NONE, "INVALID_REQUEST") * 3),
    )
    * 2,
    *(NONE, "INVALID_VOTER_KEY") * 2,
    *(NONE, NONE) * 3,
]


def fetch(facts: Facts, *, cluster_id: str | None = OWN, max_wait_ms: int = 0, **given: Any) -> Any:
    """Of nobody in particular, from where the log ends."""
    schema, log = schema_for_nodes(_FETCH), facts.quorum.log
    partition = schema.FetchPartition(
        partition=0,
        current_leader_epoch=facts.epoch,
        fetch_offset=log.end_offset,
        last_fetched_epoch=log.last_epoch,
        partition_max_bytes=1_000,
    )
    topics = (schema.FetchTopic(topic_id=METADATA_TOPIC_ID, partitions=(replace(partition, **given),)),)
    return schema.FetchRequest(
        cluster_id=facts.cluster_id if cluster_id == OWN else cluster_id,
        max_wait=timedelta(milliseconds=max_wait_ms),
        min_bytes=0,
        topics=topics,
        forgotten_topics_data=(),
    )


def _fetches(facts: Facts) -> Any:
    return [
        fetch(facts, cluster_id=ELSEWHERE),
        fetch(facts, partition=1),
        fetch(facts, fetch_offset=-1),
        fetch(facts, last_fetched_epoch=-1),
        fetch(facts, last_fetched_epoch=facts.epoch + 1),
        fetch(facts, max_wait_ms=-1),
        fetch(facts, current_leader_epoch=facts.epoch - 1, last_fetched_epoch=0),
        fetch(facts, current_leader_epoch=facts.epoch + 1),
        fetch(facts, fetch_offset=2**40),
        fetch(facts, cluster_id=None),
        fetch(facts, fetch_offset=facts.quorum.log.end_offset, max_wait_ms=20),
    ]


_OF_FETCHES: Final = [
    *("INCONSISTENT_CLUSTER_ID", "INVALID_REQUEST"),
    *(NONE, "INVALID_REQUEST") * 4,
    *(NONE, "FENCED_LEADER_EPOCH", NONE, "UNKNOWN_LEADER_EPOCH", *(NONE,) * 6),
]


def _snapshots(facts: Facts) -> Any:
    schema = schema_for_nodes(_FETCH_SNAPSHOT)

    def asked(cluster_id: str | None, epoch: int, partition: int = 0) -> Any:
        snapshot_id = schema.SnapshotId(end_offset=2**40, epoch=1)
        place = schema.PartitionSnapshot(
            partition=partition, current_leader_epoch=epoch, snapshot_id=snapshot_id, position=0
        )
        topics = (schema.TopicSnapshot(name="__cluster_metadata", partitions=(place,)),)
        return schema.FetchSnapshotRequest(cluster_id=cluster_id, max_bytes=1_000, topics=topics)

    return [
        asked(ELSEWHERE, facts.epoch),
        asked(facts.cluster_id, facts.epoch, partition=1),
        asked(facts.cluster_id, facts.epoch - 1),
        asked(facts.cluster_id, facts.epoch + 1),
        asked(facts.cluster_id, facts.epoch),
        asked(None, facts.epoch),
    ]


_OF_SNAPSHOTS: Final = [
    *("INCONSISTENT_CLUSTER_ID", "INVALID_REQUEST", NONE, "FENCED_LEADER_EPOCH", NONE, "UNKNOWN_LEADER_EPOCH"),
    *(NONE, "SNAPSHOT_NOT_FOUND") * 2,
]


EXAMS: Final = (
    Exam("votes", Whom.STANDBY, _votes, always(*_OF_VOTES)),
    Exam("epochs that begin and end", Whom.STANDBY, _announcements, always(*_OF_ANNOUNCEMENTS)),
    Exam("fetches of the metadata log", Whom.CONTROLLER, _fetches, always(*_OF_FETCHES)),
    Exam("pieces of snapshots", Whom.CONTROLLER, _snapshots, always(*_OF_SNAPSHOTS)),
    Exam("a vote for a short log", Whom.STANDBY, _vote_for_a_short_log, always(NONE, NONE), unsettles=True),
)
