"""Requirements of leader epochs as clients use them (KIP-101, KIP-320): end offsets, and fencing of requests.

A new topic's epoch is 0. It increases when a script requests the election of another replica. The effects of faults
are covered by `conformance/concurrent`.
"""

from typing import Final

from hypothesis import strategies as st

from conformance.requirements import sources
from conformance.requirements.requirement import KRAFT, Level, Requirement
from conformance.sequential.check import judges, sequential
from conformance.sequential.steps import (
    EARLIEST,
    LATEST,
    MAX_TIMESTAMP,
    AwaitTopic,
    Batch,
    CreateTopic,
    Fetch,
    ListOffsets,
    OffsetCommit,
    OffsetFetch,
    OffsetForLeaderEpoch,
    Produce,
    Record,
    Step,
)
from conformance.sequential.strategies import BASE_TIMESTAMP_MS, led_by, many, placed, produces, script
from fixtures.targets.target import Capability

_TOPICS: Final = frozenset({Capability.TOPIC_ADMIN})
_REPLICATION: Final = _TOPICS | {Capability.REPLICATION}
_NEWEST_MS: Final = BASE_TIMESTAMP_MS + 1000
"""A timestamp above those of all other records."""
_EPOCHS: Final = st.sampled_from([-1, 0, 1, 7, 2**31 - 1])


def _with_epoch(epoch: int) -> tuple[Step, ...]:
    """Return requests of each API that has the field `current_leader_epoch`, with this value."""
    offsets = (ListOffsets(timestamp, leader_epoch=epoch) for timestamp in (LATEST, EARLIEST, BASE_TIMESTAMP_MS))
    return Fetch(leader_epoch=epoch), *offsets, OffsetForLeaderEpoch(leader_epoch=epoch)


_TWO_EPOCHS_MORE: Final = (*led_by(2, 1), *led_by(1, 2))
_REQUESTS_WITH_EPOCHS: Final = st.sampled_from([-1, 0, 1, 2, 3]).flatmap(
    lambda epoch: st.sampled_from(
        [Fetch(leader_epoch=epoch), ListOffsets(leader_epoch=epoch), OffsetForLeaderEpoch(leader_epoch=epoch)]
    )
)

REQUIREMENTS: Final = (
    Requirement(
        id="epochs/end-offset-of-an-epoch",
        level=Level.MUST,
        text="OffsetForLeaderEpoch returns the log end offset for the current epoch, and epoch -1 and offset -1 for a "
        "future epoch.",
        sources=(sources.KIP_101, sources.KIP_320),
        check=sequential(
            script(
                CreateTopic(),
                produces(),
                many(produces() | st.builds(OffsetForLeaderEpoch, st.sampled_from([0, 1, 5]))),
                OffsetForLeaderEpoch(0),
                OffsetForLeaderEpoch(1),
            ),
            judges("error", "leader_epoch", "end_offset", of=OffsetForLeaderEpoch),
        ),
        needs=_TOPICS,
    ),
    Requirement(
        id="epochs/unknown-leader-epoch-is-rejected",
        level=Level.MUST,
        text="Fetch, ListOffsets and OffsetForLeaderEpoch with a current leader epoch above the leader's return "
        "UNKNOWN_LEADER_EPOCH, without records and offsets; with the leader's epoch, or -1, they are served.",
        sources=(sources.KIP_320,),
        check=sequential(
            script(
                CreateTopic(),
                produces(),
                many(
                    st.builds(Fetch, leader_epoch=_EPOCHS)
                    | st.builds(ListOffsets, leader_epoch=_EPOCHS)
                    | st.builds(OffsetForLeaderEpoch, leader_epoch=_EPOCHS)
                ),
                *_with_epoch(1),
            ),
            judges("error", "records", of=Fetch)
            | judges("error", "offset", of=ListOffsets)
            | judges("error", "end_offset", of=OffsetForLeaderEpoch),
        ),
        needs=_TOPICS,
    ),
    Requirement(
        id="epochs/responses-carry-the-epoch",
        level=Level.MUST,
        text="Each batch that Fetch returns, and each offset that ListOffsets returns, has the leader epoch in which "
        "its record was appended, and Metadata has the current leader epoch.",
        sources=(sources.KIP_320, sources.RECORD_BATCH),
        check=sequential(
            script(CreateTopic(), many(produces()), AwaitTopic(), Fetch(), ListOffsets(), ListOffsets(0)),
            judges("error", "leader_epochs", of=Fetch)
            | judges("error", "leader_epoch", of=ListOffsets)
            | judges("leader_epochs", of=AwaitTopic),
        ),
        needs=_TOPICS,
    ),
    Requirement(
        id="epochs/old-epoch-is-fenced",
        level=Level.MUST,
        text="After a change of leader, Fetch, ListOffsets and OffsetForLeaderEpoch return FENCED_LEADER_EPOCH if "
        "their current leader epoch is below the leader's, and UNKNOWN_LEADER_EPOCH if it is above it. These "
        "responses have no records and no offsets.",
        sources=(sources.KIP_320,),
        check=sequential(
            script(
                placed(1, 2),
                produces(),
                *_TWO_EPOCHS_MORE,
                many(_REQUESTS_WITH_EPOCHS, at_least=3),
                *(step for epoch in (0, 1, 3) for step in _with_epoch(epoch)),
            ),
            judges("error", "records", of=Fetch)
            | judges("error", "offset", of=ListOffsets)
            | judges("error", "end_offset", of=OffsetForLeaderEpoch),
            cost=7,
        ),
        needs=_REPLICATION,
        nodes_min=3,
        since=KRAFT,
    ),
    Requirement(
        id="epochs/past-epochs-ended-where-the-next-began",
        level=Level.MUST,
        text="For a past epoch, OffsetForLeaderEpoch returns its end offset, which is the first offset of the next "
        "epoch. For a past epoch without records, it returns the newest earlier epoch that has records.",
        sources=(sources.KIP_101, sources.KIP_279),
        check=sequential(
            script(
                placed(1, 2),
                many(produces(), at_least=0, at_most=2),
                *led_by(2, 1),
                many(produces(), at_least=0, at_most=2),
                *led_by(1, 2),
                produces(),
                *led_by(2, 1),
                *led_by(1, 2),
                produces(),
                *(OffsetForLeaderEpoch(epoch) for epoch in range(6)),
            ),
            judges("error", "leader_epoch", "end_offset", of=OffsetForLeaderEpoch),
            cost=7,
        ),
        needs=_REPLICATION,
        nodes_min=3,
        since=KRAFT,
    ),
    Requirement(
        id="epochs/epoch-begins-at-log-end",
        level=Level.MUST,
        text="A leader's epoch begins with its election: even before its first record, OffsetForLeaderEpoch returns "
        "the new epoch with the log end offset, which is also the end offset of the epoch before it.",
        sources=(sources.KIP_101, sources.KIP_279),
        check=sequential(
            script(
                placed(1, 2),
                many(produces(), at_least=0, at_most=2),
                *led_by(2, 1),
                *(OffsetForLeaderEpoch(epoch) for epoch in range(3)),
                many(produces(), at_least=0, at_most=1),
                *led_by(1, 2),
                *(OffsetForLeaderEpoch(epoch) for epoch in range(4)),
            ),
            judges("error", "leader_epoch", "end_offset", of=OffsetForLeaderEpoch),
            cost=7,
        ),
        needs=_REPLICATION,
        nodes_min=3,
        since=KRAFT,
    ),
    Requirement(
        id="epochs/records-keep-their-epoch",
        level=Level.MUST,
        text="After a change of leader, a batch keeps the leader epoch in which it was appended: Fetch returns this "
        "epoch in the batch, and ListOffsets returns it with the offset.",
        sources=(sources.KIP_320, sources.RECORD_BATCH),
        check=sequential(
            script(
                placed(1, 2),
                many(produces(), at_most=2),
                *led_by(2, 1),
                many(produces(), at_most=2),
                *led_by(1, 2),
                produces(),
                Fetch(),
                ListOffsets(0),
                ListOffsets(EARLIEST),
                ListOffsets(),
            ),
            judges("error", "leader_epochs", of=Fetch) | judges("error", "leader_epoch", of=ListOffsets),
            cost=7,
        ),
        needs=_REPLICATION,
        nodes_min=3,
        since=KRAFT,
    ),
    Requirement(
        id="epochs/newest-record-keeps-its-epoch",
        level=Level.MUST,
        text="After a change of leader, ListOffsets for -3 (maximum timestamp) returns the leader epoch in which the "
        "record with the newest timestamp was appended.",
        sources=(sources.KIP_734, sources.KIP_320),
        check=sequential(
            script(
                placed(1, 2),
                many(produces(), at_most=2),
                *led_by(2, 1),
                Produce((Batch((Record(b"newest", timestamp_ms=_NEWEST_MS),)),)),
                *led_by(1, 2),
                many(produces(), at_most=2),
                ListOffsets(MAX_TIMESTAMP),
            ),
            judges("error", "offset", "leader_epoch", of=ListOffsets),
            cost=7,
        ),
        needs=_REPLICATION,
        nodes_min=3,
        since=KRAFT,
    ),
    Requirement(
        id="epochs/every-leader-has-a-new-epoch",
        level=Level.MUST,
        text="Each change of leader increases the partition's leader epoch, in every broker's metadata; without a "
        "change of its leader a partition's epoch stays the same.",
        sources=(sources.KIP_320, sources.KIP_101),
        check=sequential(
            script(
                placed(1, 2, partitions=3),
                AwaitTopic(),
                many(
                    st.sampled_from([led_by(*order, partition=n) for order in ((2, 1), (1, 2)) for n in range(3)]),
                    at_most=3,
                ),
                *_TWO_EPOCHS_MORE,
                *led_by(2, 1, partition=2),
            ),
            judges("leader_epochs", "all_agree", of=AwaitTopic),
            cost=7,
        ),
        needs=_REPLICATION,
        nodes_min=3,
        since=KRAFT,
    ),
    Requirement(
        id="epochs/commits-carry-the-epoch",
        level=Level.MUST,
        text="A committed offset is read back with the leader epoch that was committed with it, whatever the current "
        "leader epoch is, so that a consumer can detect that the log was truncated.",
        sources=(sources.KIP_320,),
        check=sequential(
            script(
                placed(1, 2),
                many(
                    st.builds(OffsetCommit, st.integers(0, 3), leader_epoch=st.integers(-1, 2)).map(
                        lambda commit: (commit, OffsetFetch())
                    ),
                    at_most=3,
                ),
                *led_by(2, 1),
                OffsetFetch(),
                OffsetCommit(2, leader_epoch=1),
                OffsetFetch(),
            ),
            judges("error", of=OffsetCommit) | judges("committed_offset", "committed_leader_epoch", of=OffsetFetch),
            cost=7,
        ),
        needs=_REPLICATION,
        nodes_min=3,
    ),
)
