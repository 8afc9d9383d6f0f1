"""Requirements of AlterPartitionReassignments (KIP-455): replicas are added, removed and moved; their records stay."""

from typing import Final

from hypothesis import strategies as st

from conformance.requirements import sources
from conformance.requirements.requirement import KRAFT, Level, Requirement
from conformance.sequential.check import judges, sequential
from conformance.sequential.model.topics import UNKNOWN_BROKER
from conformance.sequential.steps import (
    AlterReassignment,
    AwaitTopic,
    DescribeLogDirs,
    Eventually,
    Fetch,
    Kill,
    ListOffsets,
    ListReassignments,
    Merged,
    On,
    Produce,
    Restart,
    Step,
)
from conformance.sequential.strategies import many, placed, produces, script
from fixtures.targets.target import Capability

_REPLICATION: Final = frozenset({Capability.TOPIC_ADMIN, Capability.REPLICATION})
_CHANGE: Final = judges("error", of=AlterReassignment)
_STATE: Final = judges("partitions", "all_agree", "offline_replicas", of=AwaitTopic)
_LOG: Final = judges("error", "records", of=Fetch) | judges("error", "base_offset", of=Produce)

_REPLICA_LISTS: Final = st.sampled_from([(3,), (1,), (2, 3), (3, 1), (1, 2, 3), (3, 2, 1)])
_BAD: Final = st.sampled_from(
    [
        AlterReassignment(None),
        AlterReassignment(()),
        AlterReassignment((1, 1)),
        AlterReassignment((1, UNKNOWN_BROKER)),
        AlterReassignment((1, 3), partition=1),
        AlterReassignment((1, 3), topic="trial-none"),
        AlterReassignment(None, topic="trial-none"),
    ]
)


_LISTED: Final = (ListReassignments(), ListReassignments(of_all_topics=True))
_TO_BROKER_3: Final = st.sampled_from([(1, 3), (3, 1), (1, 2, 3), (3, 2), (3,)]).map(
    lambda replicas: (Eventually(AlterReassignment(replicas)), *_LISTED)
)


def _moved(replicas: tuple[int, ...]) -> tuple[Step, ...]:
    """Return the steps that reassign partition 0 to these brokers, and wait until the reassignment is complete."""
    return AlterReassignment(replicas), AwaitTopic(), Eventually(ListReassignments())


REQUIREMENTS: Final = (
    Requirement(
        id="reassignment/replicas-are-moved",
        level=Level.MUST,
        text="A reassignment ends with exactly the requested replicas, in their order and all in sync, in every "
        "broker's metadata, and is no longer listed; a leader that is not among them is replaced by the first. One "
        "request can reassign several partitions.",
        sources=(sources.KIP_455,),
        check=sequential(
            script(
                placed(1, 2),
                produces(),
                many(_REPLICA_LISTS.map(_moved), at_most=3),
                *_moved((3,)),
                *_moved((1, 2)),
                placed(1, 2, topic="trial-two", partitions=2),
                Merged(
                    (
                        AlterReassignment((2, 3), topic="trial-two"),
                        AlterReassignment((3, 1), topic="trial-two", partition=1),
                    )
                ),
                AwaitTopic("trial-two"),
            ),
            _CHANGE | _STATE | judges("error", "ongoing", of=ListReassignments) | judges("responses", of=Merged),
            cost=7,
        ),
        needs=_REPLICATION,
        nodes_min=3,
        since=KRAFT,
    ),
    Requirement(
        id="reassignment/records-move-along",
        level=Level.MUST,
        text="After a reassignment to other brokers the partition has the same records, at the same offsets and with "
        "the same log start, and it can be written and read throughout.",
        sources=(sources.KIP_455, sources.GUARANTEES),
        check=sequential(
            script(
                placed(1, 2),
                many(produces(), at_most=3),
                *_moved((2, 3)),
                produces(),
                Fetch(),
                *_moved((3, 1)),
                many(produces(), at_most=2),
                Fetch(),
                ListOffsets(),
            ),
            _LOG | judges("error", "offset", of=ListOffsets),
            cost=7,
        ),
        needs=_REPLICATION,
        nodes_min=3,
        since=KRAFT,
    ),
    Requirement(
        id="reassignment/invalid-reassignment-is-rejected",
        level=Level.MUST,
        text="A list of replicas that is empty, or has a broker twice or an unknown broker, is rejected with "
        "INVALID_REPLICA_ASSIGNMENT, an unknown partition with UNKNOWN_TOPIC_OR_PARTITION, and a cancellation without "
        "an ongoing reassignment with NO_REASSIGNMENT_IN_PROGRESS; the partition does not change.",
        sources=(sources.KIP_455, sources.PROTOCOL_ERRORS),
        check=sequential(
            script(placed(1, 2), many(_BAD), AlterReassignment(()), AwaitTopic()),
            _CHANGE | _STATE,
            cost=2,
        ),
        needs=_REPLICATION,
        nodes_min=3,
        since=KRAFT,
    ),
    Requirement(
        id="reassignment/replication-factor-change-can-be-disallowed",
        level=Level.MUST,
        text="Since v1 a reassignment without allow_replication_factor_change that requests another number of replicas "
        "is rejected with INVALID_REPLICATION_FACTOR, and moves nothing.",
        sources=(sources.KIP_860,),
        check=sequential(
            script(
                placed(1, 2),
                many(
                    st.sampled_from([(1,), (3,), (1, 2, 3), (2, 1)]).map(
                        lambda replicas: AlterReassignment(replicas, allow_factor_change=False)
                    ),
                    at_most=3,
                ),
                AlterReassignment((1, 2, 3), allow_factor_change=False),
                AwaitTopic(),
            ),
            _CHANGE | _STATE,
            cost=5,
        ),
        needs=_REPLICATION,
        nodes_min=3,
        since="4.1.0",
    ),
    Requirement(
        id="reassignment/ongoing-reassignment-is-listed",
        level=Level.MUST,
        text="A reassignment to a broker that is down is listed as ongoing, with the replicas being added, those being "
        "removed, and all replicas in order, whether the request has the topic or null for all topics. If it is "
        "cancelled, it is not listed any more, and the previous replicas stay. Otherwise it ends after the restart of "
        "the broker.",
        sources=(sources.KIP_455,),
        check=sequential(
            script(
                placed(1, 2),
                produces(),
                *_LISTED,
                Kill(3),
                _TO_BROKER_3,
                AlterReassignment(None),
                *_LISTED,
                AlterReassignment(None),
                _TO_BROKER_3,
                Restart(3),
                AwaitTopic(),
                *map(Eventually, _LISTED),
                Fetch(),
            ),
            _CHANGE | _STATE | judges("error", "ongoing", of=ListReassignments) | judges("records", of=Fetch),
            cost=15,
        ),
        needs=_REPLICATION | {Capability.PROCESS_CONTROL},
        nodes_min=3,
        since=KRAFT,
    ),
    Requirement(
        id="reassignment/brokers-hold-their-own-replicas",
        level=Level.MUST,
        text="DescribeLogDirs returns a replica on the brokers to which the partition is assigned, with its size and "
        "eventually no lag, and on no other broker; a replica that was moved is deleted on the previous broker.",
        sources=(sources.KIP_113, sources.KIP_455),
        check=sequential(
            script(
                placed(1, 2),
                produces(),
                st.sampled_from([(), _moved((3, 2)), _moved((1, 2, 3))]),
                *(Eventually(On(broker, DescribeLogDirs())) for broker in (1, 2, 3)),
                *(Eventually(On(broker, DescribeLogDirs(of_all_topics=True))) for broker in (1, 2, 3)),
                On(1, DescribeLogDirs("trial-none")),
            ),
            judges("error", "replicas", "has_bytes", "offset_lag", "is_future", of=DescribeLogDirs),
            cost=7,
        ),
        needs=_REPLICATION,
        nodes_min=3,
    ),
)
