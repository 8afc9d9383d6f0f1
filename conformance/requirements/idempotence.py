"""Requirements of idempotent producers (KIP-98, KIP-360): no duplicate and no gap in the sequence is appended.

Retries of real clients and lost responses are covered by `conformance/concurrent`; here, single requests test each
decision of the broker.
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
    DescribeProducers,
    Fetch,
    InitProducerId,
    Produce,
    RawRequest,
    Record,
)
from conformance.sequential.strategies import batches, every_version, many, moves, producer, script, several
from fixtures.targets.target import Capability

_TOPICS: Final = frozenset({Capability.TOPIC_ADMIN})
_JUDGED: Final = judges("error", "base_offset", of=Produce) | judges("error", "records", of=Fetch)

_AGAIN: Final = tuple(f"again {back}" for back in range(1, BATCHES_REMEMBERED + 1))
"""The last batch again, or one of the four before it."""

_OLDEST: Final = "again 1000"
"""The first accepted batch again."""


def _numbered(sequence: int) -> Produce:
    """Return a step that produces one record with this sequence number to a separate topic."""
    return Produce((Batch((Record(b"%d" % sequence),), producer=0, sequence=sequence),), topic="trial-five")


REQUIREMENTS: Final = (
    Requirement(
        id="idempotence/duplicate-is-acknowledged-once",
        level=Level.MUST,
        text="A batch with the producer id, epoch and sequence numbers of one of the producer's last five batches in "
        "the partition returns NONE with the base offset of the first time, and is not appended again.",
        sources=(sources.KIP_98,),
        check=sequential(
            script(
                CreateTopic(),
                InitProducerId(),
                producer(several("next", *_AGAIN, at_most=10), moves("next"), moves("again 1")),
                Fetch(),
                CreateTopic("trial-five"),
                *(_numbered(sequence) for sequence in (*range(7), *range(2, 7))),
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
        text="A fetch returns each batch with the producer id, the producer epoch and the base sequence with which it "
        "was produced, and a batch of a producer without an id with -1 for each.",
        sources=(sources.KIP_98, sources.RECORD_BATCH),
        check=sequential(
            script(
                CreateTopic(),
                InitProducerId(),
                InitProducerId(),
                producer(moves("next"), several("next", at_most=4)),
                Produce((Batch((Record(b"other"),), producer=1),)),
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
        "sequence number and the maximum timestamp of its last batch. A producer without a transactional id has no "
        "transaction.",
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
        text="A batch that is sent again after five or more others is rejected with OUT_OF_ORDER_SEQUENCE_NUMBER, and "
        "is not appended.",
        sources=(sources.KIP_98,),
        check=sequential(
            script(
                CreateTopic(),
                InitProducerId(),
                producer(several("next", at_least=BATCHES_REMEMBERED + 1, at_most=8), moves(_OLDEST)),
                Fetch(),
            ),
            _JUDGED,
        ),
        needs=_TOPICS,
    ),
    Requirement(
        id="idempotence/sequence-gap-is-rejected",
        level=Level.MUST,
        text="Once a producer has a batch in the partition, a batch whose first sequence number does not follow its "
        "last one is rejected with OUT_OF_ORDER_SEQUENCE_NUMBER, nothing is appended, and the batch that is next in "
        "sequence is accepted afterwards.",
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
        text="The first batch of a newer producer epoch has sequence number 0: any other is rejected with "
        "OUT_OF_ORDER_SEQUENCE_NUMBER, and the older epoch stays current.",
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
        text="Once a batch of a newer epoch was appended, a batch of an older epoch of the same producer id is "
        "rejected with INVALID_PRODUCER_EPOCH, and nothing is appended.",
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
        text="Since v3 an InitProducerId with a producer id and no epoch, or with an epoch and no id, returns "
        "INVALID_REQUEST.",
        sources=(sources.KIP_360,),
        check=sequential(script(*rejections.INCOMPLETE_PRODUCERS), judges("errors", of=RawRequest)),
    ),
)
