"""Requirements of a broker that is killed and started again with its disk: nothing that was acknowledged is lost.

One run of one script is judged for all of these requirements, because the restart takes seconds. The topic has one
replica, so that only the broker's own disk can have its records.
"""

from dataclasses import replace
from typing import Final

from conformance.requirements import sources
from conformance.requirements.requirement import Level, Requirement, Source
from conformance.sequential.check import SharedScript, judges, sequential
from conformance.sequential.judging import Judges
from conformance.sequential.steps import (
    EARLIEST,
    LATEST,
    Batch,
    Compression,
    DescribeConfigs,
    Eventually,
    Fetch,
    IncrementalAlterConfigs,
    InitProducerId,
    Kill,
    ListOffsets,
    Metadata,
    OffsetCommit,
    OffsetFetch,
    Operation,
    Produce,
    Record,
    Restart,
    Step,
)
from conformance.sequential.strategies import placed, script
from fixtures.targets.target import Capability

_NEVER_EXPIRES_MS: Final = 4_102_444_800_000
"""The year 2100. A producer whose batches are a day old is not restored."""
_CONFIGS: Final = (
    ("retention.ms", "-1"),
    ("message.timestamp.after.max.ms", str(2**63 - 1)),
    ("max.message.bytes", "4000"),
)
_NAMES: Final = ("max.message.bytes", "min.compaction.lag.ms", "segment.ms", "cleanup.policy")
_PLAIN: Final = Batch(
    (Record(b"a", b"key", 1, (("trace", b"1"),)), Record(None, b"", 2), Record(b"", None, 3)), Compression.LZ4
)


def _produce(sequence: int, *values: bytes) -> Produce:
    """Return a Produce of the script's first producer, with one batch that begins at this sequence number."""
    records = tuple(Record(value, None, _NEVER_EXPIRES_MS) for value in values)
    return Produce((Batch(records, producer=0, sequence=sequence),))


_BEFORE: Final[tuple[Step, ...]] = (
    replace(placed(1), configs=_CONFIGS),
    InitProducerId(),
    Produce((_PLAIN,)),
    _produce(0, b"0", b"1"),
    Produce((_PLAIN,), acks=1),
    _produce(2, b"2"),
    OffsetCommit(2, metadata="before"),
    OffsetCommit(3, metadata="kept"),
    OffsetCommit(5, group="trial-other"),
    IncrementalAlterConfigs((("max.message.bytes", Operation.SET, "3000"), ("segment.ms", Operation.SET, "700000"))),
    Metadata(),
)
_AFTER: Final[tuple[Step, ...]] = (
    InitProducerId(),
    Metadata(),
    DescribeConfigs(_NAMES),
    ListOffsets(EARLIEST),
    ListOffsets(LATEST),
    *(Fetch(offset) for offset in (0, 4, 8)),
    Eventually(OffsetFetch()),  # a coordinator of Kafka 4 may first return the offset below its high watermark
    Eventually(OffsetFetch(group="trial-other")),
    _produce(2, b"2"),
    _produce(4, b"4"),
    _produce(3, b"3"),
    Fetch(),
)
_SCRIPTS: Final = script(*_BEFORE, Kill(), Restart(), *_AFTER)
_SHARED: Final = SharedScript()


def _requirement(name: str, text: str, judged: Judges, *promised_by: Source) -> Requirement:
    return Requirement(
        id=f"storage/{name}",
        level=Level.MUST,
        text=text,
        sources=promised_by,
        check=sequential(_SCRIPTS, judged, cost=15, shared=_SHARED),
        needs=frozenset({Capability.TOPIC_ADMIN, Capability.PROCESS_CONTROL, Capability.DURABLE_STORAGE}),
        since="3.6.0",
        family="kill-and-restart",
    )


REQUIREMENTS: Final = (
    _requirement(
        "records-outlive-a-kill",
        "A broker that was killed and restarted has every record that it acknowledged, with acks=all and acks=1, at "
        "its offset, and the same log start and end.",
        judges("error", "records", of=Fetch) | judges("error", "offset", of=ListOffsets),
        sources.GUARANTEES,
    ),
    _requirement(
        "sequences-outlive-a-kill",
        "A broker that was killed and restarted recognises the last batch of an idempotent producer as a duplicate, "
        "rejects a gap in its sequence numbers, and appends the next batch.",
        judges("error", "base_offset", of=Produce),
        sources.KIP_98,
        sources.KIP_360,
    ),
    _requirement(
        "producer-ids-outlive-a-kill",
        "A producer id that was assigned before a broker was killed is never assigned again.",
        judges("error", "producer", of=InitProducerId),
        sources.KIP_730,
    ),
    _requirement(
        "commits-outlive-a-kill",
        "A broker that was killed and restarted returns the last committed offset of each group, with its metadata.",
        judges("error", "committed_offset", "metadata", of=OffsetFetch),
        sources.CONSUMER_POSITION,
    ),
    _requirement(
        "configs-outlive-a-kill",
        "A broker that was killed and restarted has each topic's settings: those of its creation and later changes.",
        judges("error", "set", "inherited", of=DescribeConfigs),
        sources.KIP_226,
        sources.KIP_339,
    ),
    _requirement(
        "topic-ids-outlive-a-kill",
        "A broker that was killed and restarted describes its topics with the same ids and partitions, and the same "
        "cluster id.",
        judges("topics", "topic_ids", "leaders", "cluster_id", of=Metadata),
        sources.KIP_516,
    ),
)
