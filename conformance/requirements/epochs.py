"""Leader epochs as clients use them (KIP-101, KIP-320): where an epoch ended, and who is ahead of whom.

A script's topics are new, so their epoch is 0; what an election changes is `conformance/concurrent`'s.
"""

from typing import Final

from hypothesis import strategies as st

from conformance.requirements import sources
from conformance.requirements.requirement import Level, Requirement
from conformance.sequential.check import judges, sequential
from conformance.sequential.steps import CreateTopic, Fetch, ListOffsets, OffsetForLeaderEpoch
from conformance.sequential.strategies import many, produces, script
from fixtures.targets.target import Capability

_TOPICS: Final = frozenset({Capability.TOPIC_ADMIN})
_EPOCHS: Final = st.sampled_from([-1, 0, 1, 7, 2**31 - 1])

REQUIREMENTS: Final = (
    Requirement(
        id="epochs/end-offset-of-an-epoch",
        level=Level.MUST,
        text="OffsetForLeaderEpoch answers the current epoch with the log end, and an epoch that is still to come "
        "with epoch -1 and offset -1.",
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
        id="epochs/client-ahead-of-leader-is-told",
        level=Level.MUST,
        text="Fetch, ListOffsets and OffsetForLeaderEpoch with a current leader epoch above the leader's are answered "
        "UNKNOWN_LEADER_EPOCH, without records and offsets; with the leader's own epoch, or -1, they are served.",
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
                Fetch(leader_epoch=1),
                ListOffsets(leader_epoch=1),
                OffsetForLeaderEpoch(leader_epoch=1),
            ),
            judges("error", "records", of=Fetch)
            | judges("error", "offset", of=ListOffsets)
            | judges("error", "end_offset", of=OffsetForLeaderEpoch),
        ),
        needs=_TOPICS,
    ),
    Requirement(
        id="epochs/answers-carry-the-epoch",
        level=Level.MUST,
        text="Each batch that is read, and each offset that ListOffsets finds, carries the leader epoch in which its "
        "record was appended.",
        sources=(sources.KIP_320, sources.RECORD_BATCH),
        check=sequential(
            script(CreateTopic(), many(produces()), Fetch(), ListOffsets(), ListOffsets(0)),
            judges("error", "leader_epochs", of=Fetch) | judges("error", "leader_epoch", of=ListOffsets),
        ),
        needs=_TOPICS,
    ),
)
