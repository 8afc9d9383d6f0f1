"""Requirements of partition leaders: requests to other brokers, and elections that are requested.

There are no faults here: leaders change because a script reorders the replicas and elects the preferred one.
"""

from typing import Final

from hypothesis import strategies as st

from conformance.requirements import rejections, sources
from conformance.requirements.requirement import KRAFT, Level, Requirement
from conformance.sequential.check import judges, sequential
from conformance.sequential.steps import (
    EARLIEST,
    AwaitTopic,
    Batch,
    CreateTopic,
    DeleteRecords,
    ElectionType,
    ElectLeaders,
    Fetch,
    InitProducerId,
    ListOffsets,
    OffsetForLeaderEpoch,
    On,
    Produce,
    RawRequest,
    Record,
    Step,
)
from conformance.sequential.strategies import led_by, many, numbered, placed, produces, script
from fixtures.targets.target import Capability

_REPLICATION: Final = frozenset({Capability.TOPIC_ADMIN, Capability.REPLICATION})
_ELSEWHERE: Final = st.sampled_from([2, 3])
"""Broker 2 is the follower of a topic on the first two brokers, and broker 3 has no replica of it."""
_FOR_THE_LEADER: Final = (
    Produce((Batch((Record(b"x"),)),)),
    Fetch(version=10),
    ListOffsets(),
    OffsetForLeaderEpoch(0),
    DeleteRecords(1),
)
"""Requests that only the leader serves. A broker may describe a new leader shortly before it resigns itself. Therefore
Produce with acks=-1 is first: a previous leader responds to it only after it has resigned."""
_PARTITION_ERRORS: Final = (
    judges("error", "base_offset", of=Produce)
    | judges("error", "records", of=Fetch)
    | judges("error", "offset", of=ListOffsets)
    | judges("error", "end_offset", of=OffsetForLeaderEpoch)
    | judges("error", "low_watermark", of=DeleteRecords)
)


def _reordered_and_elected(*order: int) -> tuple[Step, ...]:
    """Return the steps of `led_by`; the state of the topic is also awaited before the election, which changes it."""
    reorder, *elect = led_by(*order)
    return reorder, AwaitTopic(), *elect


REQUIREMENTS: Final = (
    Requirement(
        id="leadership/only-the-leader-serves",
        level=Level.MUST,
        text="A broker that is not the partition's leader returns NOT_LEADER_OR_FOLLOWER to Produce, ListOffsets, "
        "OffsetForLeaderEpoch and DeleteRecords, and to Fetch before v11, whether or not it has a replica. It changes "
        "nothing.",
        sources=(sources.PROTOCOL_ERRORS, sources.KIP_392),
        check=sequential(
            script(
                placed(1, 2),
                produces(),
                many(
                    st.builds(
                        On,
                        _ELSEWHERE,
                        produces()
                        | st.sampled_from(
                            [Fetch(version=10), ListOffsets(), OffsetForLeaderEpoch(0), DeleteRecords(1)]
                        ),
                    )
                ),
                *(On(broker, step) for broker in (2, 3) for step in _FOR_THE_LEADER),
                *(
                    On(2, step)
                    for epoch in (-1, 0)
                    for step in (ListOffsets(leader_epoch=epoch), OffsetForLeaderEpoch(leader_epoch=epoch))
                ),
                Fetch(),
                ListOffsets(),
            ),
            _PARTITION_ERRORS,
            cost=5,
        ),
        needs=_REPLICATION,
        nodes_min=3,
    ),
    Requirement(
        id="leadership/current-leader-is-returned",
        level=Level.SHOULD,
        text="With NOT_LEADER_OR_FOLLOWER the responses to Produce since v10 and to Fetch since v16 have the leader, "
        "its epoch and its address, so that the client does not need to request metadata.",
        sources=(sources.KIP_951,),
        check=sequential(
            script(
                placed(1, 2),
                st.sampled_from([(), led_by(2, 1), (*led_by(2, 1), *led_by(1, 2))]),
                On(3, Fetch()),
                st.builds(On, st.just(3), produces()),
                *led_by(2, 1),
                On(3, Fetch()),
                On(3, Produce((Batch((Record(b"x"),)),))),
                On(3, Produce((Batch((Record(b"x"),)),), version=10)),
            ),
            judges("error", "current_leader", "endpoints", of=Produce)
            | judges("error", "current_leader", "endpoints", of=Fetch),
            cost=7,
        ),
        needs=_REPLICATION,
        since="3.7.0",
        nodes_min=3,
    ),
    Requirement(
        id="leadership/no-leader-with-other-errors",
        level=Level.SHOULD,
        text="A Fetch response since v16 with another error than NOT_LEADER_OR_FOLLOWER and FENCED_LEADER_EPOCH has "
        "no current leader, because the client would take it for a change of leader.",
        sources=(sources.KIP_951,),
        check=sequential(
            script(CreateTopic(), Fetch(1000), Fetch(leader_epoch=1000), Fetch(partition=1000)),
            judges("current_leader", of=Fetch),
        ),
        needs=frozenset({Capability.TOPIC_ADMIN}),
        since="3.7.0",
    ),
    Requirement(
        id="leadership/preferred-leader-is-elected",
        level=Level.MUST,
        text="ElectLeaders of the preferred type makes the first replica the leader, in a new leader epoch. The "
        "request returns ELECTION_NOT_NEEDED if the first replica is the leader already, or if an unclean election is "
        "requested and there is a leader. It returns UNKNOWN_TOPIC_OR_PARTITION for an unknown partition, and "
        "INVALID_REQUEST for an unknown election type.",
        sources=(sources.KIP_183, sources.KIP_460),
        check=sequential(
            script(
                placed(1, 2, 3),
                rejections.UNKNOWN_ELECTION,
                ElectLeaders(),
                many(
                    st.permutations([1, 2, 3]).map(lambda order: _reordered_and_elected(*order))
                    | st.sampled_from(
                        [ElectLeaders(election=ElectionType.UNCLEAN), ElectLeaders("trial-none"), ElectLeaders()]
                    ),
                    at_most=3,
                ),
                *_reordered_and_elected(2, 3, 1),
                ElectLeaders(),
                ElectLeaders(election=ElectionType.UNCLEAN),
                ElectLeaders("trial-none"),
                *_reordered_and_elected(3, 1, 2),
            ),
            judges("error", of=ElectLeaders)
            | judges("partitions", "leader_epochs", "all_agree", of=AwaitTopic)
            | judges("errors", of=RawRequest),
            cost=7,
        ),
        needs=_REPLICATION,
        nodes_min=3,
        since=KRAFT,
    ),
    Requirement(
        id="leadership/records-outlive-a-leader",
        level=Level.MUST,
        text="A new leader serves the records that were acknowledged before, at the same offsets, and appends after "
        "them. The previous leader returns NOT_LEADER_OR_FOLLOWER to the requests that only a leader serves, and "
        "changes nothing.",
        sources=(sources.GUARANTEES, sources.KIP_101, sources.PROTOCOL_ERRORS),
        check=sequential(
            script(
                placed(1, 2, 3),
                many(produces(), at_most=3),
                *led_by(3, 1, 2),
                *(On(1, step) for step in _FOR_THE_LEADER),
                Fetch(),
                many(produces(), at_most=3),
                *led_by(2, 1, 3),
                Fetch(),
                ListOffsets(),
            ),
            _PARTITION_ERRORS,
            cost=7,
        ),
        needs=_REPLICATION,
        nodes_min=3,
        since=KRAFT,
    ),
    Requirement(
        id="leadership/producers-outlive-a-leader",
        level=Level.MUST,
        text="A new leader knows the idempotent producers of a partition. It acknowledges a repeated batch with "
        "the original base offset, and rejects a batch out of sequence with OUT_OF_ORDER_SEQUENCE_NUMBER.",
        sources=(sources.KIP_98, sources.KIP_360),
        check=sequential(
            script(
                placed(1, 2, 3),
                InitProducerId(),
                many(produces(), at_least=0, at_most=2),
                *map(numbered, (0, 1)),
                *led_by(3, 1, 2),
                *map(numbered, (1, 0, 5, 2)),
                *led_by(2, 1, 3),
                *map(numbered, (2, 4, 3)),
                Fetch(),
            ),
            _PARTITION_ERRORS,
            cost=7,
        ),
        needs=_REPLICATION,
        nodes_min=3,
        since=KRAFT,
    ),
    Requirement(
        id="leadership/deleted-records-stay-deleted",
        level=Level.MUST,
        text="DeleteRecords completes when every live replica has the new log start offset, so that a leader elected "
        "later does not return the deleted records.",
        sources=(sources.KIP_107,),
        check=sequential(
            script(
                placed(1, 2, 3),
                produces(),
                many(produces() | st.integers(0, 3).map(DeleteRecords), at_most=4),
                DeleteRecords(1),
                *led_by(3, 1, 2),
                ListOffsets(EARLIEST),
                Fetch(),
                many(produces() | st.integers(0, 3).map(DeleteRecords), at_most=2),
                *led_by(2, 1, 3),
                ListOffsets(EARLIEST),
                Fetch(),
            ),
            _PARTITION_ERRORS,
            cost=7,
        ),
        needs=_REPLICATION,
        nodes_min=3,
        since=KRAFT,
    ),
)
