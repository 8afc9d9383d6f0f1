"""Requirements of error responses: offsets, epochs and watermarks are -1, and errors of topics have a message.

No client acts on these fields. Other requirements do not judge them in error responses, so that a cosmetic deviation
violates no other requirement.
"""

from typing import Final

from conformance.requirements import rejections, sources
from conformance.requirements.requirement import KRAFT, Level, Requirement
from conformance.sequential.check import judges, sequential
from conformance.sequential.judging import Judges, Rank
from conformance.sequential.steps import (
    Batch,
    CreateTopic,
    DeleteRecords,
    Fetch,
    Flaw,
    ListOffsets,
    OffsetForLeaderEpoch,
    Produce,
    RawRequest,
    Record,
    Step,
)
from conformance.sequential.strategies import script
from fixtures.targets.target import Capability

_COSMETIC: Final = frozenset({Rank.COSMETIC})
_BATCH: Final = Batch((Record(b"a"),))
_EPOCH_AHEAD: Final = 1000


def _requirement(id_: str, text: str, judged: Judges, *failing: Step) -> Requirement:
    return Requirement(
        id=id_,
        level=Level.SHOULD,
        text=text,
        sources=(sources.PROTOCOL,),
        check=sequential(script(CreateTopic(), Produce((_BATCH,)), *failing), judged, ranks=_COSMETIC),
        needs=frozenset({Capability.TOPIC_ADMIN}),
    )


REQUIREMENTS: Final = (
    _requirement(
        "produce/errors-have-no-offset",
        "A Produce response with an error has base offset -1 and no log append time. With INVALID_REQUIRED_ACKS, "
        "CORRUPT_MESSAGE and MESSAGE_TOO_LARGE, and with INVALID_RECORD if the partition's records are not exactly one "
        "whole batch of magic 2, log start offset is -1 too: the batch did not reach the log.",
        judges("base_offset", "log_start_offset", "log_append_time", of=Produce),
        Produce((_BATCH,), acks=2),
        Produce(()),
        Produce((_BATCH, _BATCH)),
        *(Produce((Batch(_BATCH.records, flaw=flaw),)) for flaw in (Flaw.WRONG_CRC, Flaw.MAGIC_1, Flaw.TRUNCATED)),
        Produce((_BATCH,), topic="trial-none"),
    ),
    _requirement(
        "fetch/errors-have-no-watermarks",
        "A Fetch response with OFFSET_OUT_OF_RANGE has high watermark, last stable offset and log start offset -1.",
        judges("high_watermark", "last_stable_offset", "log_start_offset", of=Fetch),
        Fetch(1000),
    ),
    _requirement(
        "offsets/errors-have-no-offset",
        "A ListOffsets or DeleteRecords response with an error has offset, timestamp and low watermark -1.",
        judges("offset", "timestamp", of=ListOffsets) | judges("low_watermark", of=DeleteRecords),
        ListOffsets(partition=1000),
        ListOffsets(leader_epoch=_EPOCH_AHEAD),
        DeleteRecords(1000),
    ),
    _requirement(
        "epochs/errors-have-no-end-offset",
        "An OffsetForLeaderEpoch response with an error has leader epoch and end offset -1.",
        judges("leader_epoch", "end_offset", of=OffsetForLeaderEpoch),
        OffsetForLeaderEpoch(leader_epoch=_EPOCH_AHEAD),
        OffsetForLeaderEpoch(partition=1000),
    ),
    Requirement(
        id="admin/errors-have-a-message",
        level=Level.SHOULD,
        text="If CreateTopics does not create a topic, or CreatePartitions adds nothing to it, the response has a "
        "message for this topic that explains the error.",
        sources=(sources.PROTOCOL, sources.KIP_195),
        check=sequential(
            script(CreateTopic(), *rejections.CREATIONS[1:3], *rejections.ADDITIONS[:2]),
            judges("explained", of=RawRequest),
        ),
        needs=frozenset({Capability.TOPIC_ADMIN}),
        since=KRAFT,
    ),
)
