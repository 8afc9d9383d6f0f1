"""Requirements of idempotent producers (KIP-98, KIP-360): duplicates and batches out of sequence are not appended.

Here, single requests test each decision of the broker. `conformance/concurrent` tests retries of real clients after
lost responses.
"""

from typing import Final

from hypothesis import strategies as st

from conformance.requirements import rejections, sources
from conformance.requirements.requirement import Level, Requirement
from conformance.sequential.check import judges, sequential
from conformance.sequential.model.cluster import BATCHES_REMEMBERED
from conformance.sequential.steps import (
    SEQUENCES,
    Batch,
    CreateTopic,
    DeleteTopic,
    DescribeProducers,
    Fetch,
    InitProducerId,
    Produce,
    RawRequest,
    Record,
)
from conformance.sequential.strategies import batches, every_version, many, moves, numbered, producer, script, several
from fixtures.targets.target import Capability

_TOPICS: Final = frozenset({Capability.TOPIC_ADMIN})
_JUDGED: Final = judges("error", "base_offset", of=Produce) | judges("error", "records", of=Fetch)

_REMEMBERED_AGAIN: Final = tuple(f"again {back}" for back in range(1, BATCHES_REMEMBERED + 1))
"""Moves that repeat one of the last five accepted batches."""

_FIRST_AGAIN: Final = "again 1000"
"""Move that repeats the first accepted batch, because there are fewer than 1,000."""


REQUIREMENTS: Final = (
    Requirement(
        id="idempotence/duplicate-is-acknowledged-once",
        level=Level.MUST,
        text="A batch that repeats one of the producer's last five batches in the partition (same producer id, epoch "
        "and sequence numbers) returns NONE with the base offset of the original batch, and is not appended again. "
        "A topic that is created again has no batches to repeat.",
        sources=(sources.KIP_98,),
        check=sequential(
            script(
                CreateTopic(),
                InitProducerId(),
                producer(several("next", *_REMEMBERED_AGAIN, at_most=10), moves("next"), moves("again 1")),
                Fetch(),
                CreateTopic("trial-five"),
                *(numbered(sequence, "trial-five") for sequence in (*range(7), *range(2, 7))),
                Fetch(topic="trial-five"),
                DeleteTopic("trial-five"),
                CreateTopic("trial-five"),
                numbered(0, "trial-five"),
                Fetch(topic="trial-five"),
            ),
            _JUDGED,
            cost=2,
        ),
        needs=_TOPICS,
    ),
    Requirement(
        id="idempotence/batches-keep-their-producer",
        level=Level.MUST,
        text="A fetch returns each batch with the producer id, producer epoch and base sequence number with which it "
        "was produced. If it was produced without a producer id, all three are -1.",
        sources=(sources.KIP_98, sources.RECORD_BATCH),
        check=sequential(
            script(
                CreateTopic(),
                InitProducerId(),
                InitProducerId(),
                producer(moves("next"), several("next", "new epoch", at_most=4)),
                Produce((Batch((Record(b"other"),), producer=1),)),
                Produce((Batch((Record(b"new epoch"),), producer=1, epoch=3),)),
                Produce((Batch((Record(b"none"),)),)),
                Fetch(),
            ),
            judges("error", "producers", of=Fetch),
        ),
        needs=_TOPICS,
    ),
    Requirement(
        id="idempotence/active-producers-are-described",
        level=Level.MUST,
        text="DescribeProducers returns each producer that has a batch in the partition, with the epoch, the last "
        "sequence number and the maximum timestamp of its last batch. For a producer without a transactional id, the "
        "start offset of the transaction is -1.",
        sources=(sources.KIP_664, sources.KIP_98),
        check=sequential(
            script(
                CreateTopic(),
                DescribeProducers(),
                InitProducerId(),
                InitProducerId(),
                producer(moves("next"), several("next", "gap", "again 1", "new epoch", at_most=4)),
                Produce((Batch((Record(b"other"), Record(b"other", timestamp_ms=5)), producer=1, sequence=3),)),
                Produce((Batch((Record(b"none"),)),)),
                DescribeProducers(),
                DescribeProducers(partition=1),
            ),
            judges("error", "producers", of=DescribeProducers),
        ),
        needs=_TOPICS,
    ),
    Requirement(
        id="idempotence/evicted-duplicate-is-rejected",
        level=Level.MUST,
        text="A batch that is sent again after five or more newer batches of its producer is rejected with "
        "OUT_OF_ORDER_SEQUENCE_NUMBER, and is not appended.",
        sources=(sources.KIP_98,),
        check=sequential(
            script(
                CreateTopic(),
                InitProducerId(),
                producer(several("next", at_least=BATCHES_REMEMBERED + 1, at_most=8), moves(_FIRST_AGAIN)),
                Fetch(),
            ),
            _JUDGED,
        ),
        needs=_TOPICS,
    ),
    Requirement(
        id="idempotence/sequence-gap-is-rejected",
        level=Level.MUST,
        text="If a producer has a batch in the partition, a batch whose base sequence number is not the next one is "
        "rejected with OUT_OF_ORDER_SEQUENCE_NUMBER, and is not appended. The batch that is next in sequence is "
        "accepted afterwards.",
        sources=(sources.KIP_98,),
        check=sequential(
            script(
                CreateTopic(),
                InitProducerId(),
                producer(moves("next"), several("next", "gap"), moves("gap"), moves("next")),
                Fetch(),
            ),
            _JUDGED,
        ),
        needs=_TOPICS,
    ),
    Requirement(
        id="idempotence/new-epoch-begins-at-zero",
        level=Level.MUST,
        text="The first batch of a newer producer epoch must have the base sequence number 0. With any other, it is "
        "rejected with OUT_OF_ORDER_SEQUENCE_NUMBER, and the older epoch remains current.",
        sources=(sources.KIP_360, sources.KIP_98),
        check=sequential(
            script(
                CreateTopic(),
                InitProducerId(),
                producer(
                    moves("next"),
                    several("next", "new epoch", "new epoch late"),
                    moves("new epoch late"),
                    moves("next"),
                    moves("new epoch"),
                ),
                Fetch(),
            ),
            _JUDGED,
        ),
        needs=_TOPICS,
    ),
    Requirement(
        id="idempotence/older-epoch-is-fenced",
        level=Level.MUST,
        text="After a batch of a newer epoch has been appended, a batch of an older epoch of the same producer id is "
        "rejected with INVALID_PRODUCER_EPOCH, and is not appended.",
        sources=(sources.KIP_98, sources.KIP_360),
        check=sequential(
            script(
                CreateTopic(),
                InitProducerId(),
                producer(
                    moves("next"), moves("new epoch"), several("next", "new epoch", "old epoch"), moves("old epoch")
                ),
                Fetch(),
            ),
            _JUDGED,
        ),
        needs=_TOPICS,
    ),
    Requirement(
        id="idempotence/producer-ids-are-unique",
        level=Level.MUST,
        text="Each InitProducerId without a transactional id returns a producer id that was never assigned before, at "
        "epoch 0.",
        sources=(sources.KIP_98, sources.KIP_730),
        check=sequential(
            script(
                InitProducerId(),
                many(st.builds(InitProducerId, version=st.sampled_from([None, 4, 3, 2, 1, 0]))),
                *every_version(InitProducerId()),
            ),
            judges("error", "producer", "producer_epoch", of=InitProducerId),
        ),
    ),
    Requirement(
        id="idempotence/sequences-wrap-to-zero",
        level=Level.MUST,
        text="Sequence number 2147483647 is followed by 0, both between two batches and inside a batch.",
        sources=(sources.KIP_98,),
        check=sequential(
            script(
                CreateTopic(partitions=2),
                InitProducerId(),
                many(batches().map(lambda batch: Produce((batch,))), at_most=2),
                *(
                    Produce((Batch((Record(b"x"),) * count, producer=0, sequence=sequence),), partition=partition)
                    for partition, sequence, count in (
                        (0, SEQUENCES - 1, 1),
                        (0, 0, 2),
                        (0, 0, 2),
                        (0, 2, 1),
                        (1, SEQUENCES - 2, 3),
                        (1, 1, 1),
                    )
                ),
                Fetch(),
                Fetch(partition=1),
            ),
            _JUDGED,
        ),
        needs=_TOPICS,
    ),
    Requirement(
        id="idempotence/incomplete-producer-id-is-rejected",
        level=Level.MUST,
        text="Since v3 an InitProducerId request with a producer id but no epoch, or with an epoch but no producer id, "
        "returns INVALID_REQUEST.",
        sources=(sources.KIP_360,),
        check=sequential(script(*rejections.INCOMPLETE_PRODUCERS), judges("errors", of=RawRequest)),
    ),
)
