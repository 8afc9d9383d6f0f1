"""Requirements of Produce: which batches are appended, at which offsets, and which are rejected."""

from typing import Final

from hypothesis import strategies as st

from conformance.requirements import sources
from conformance.requirements.requirement import Level, Requirement
from conformance.sequential.check import judges, sequential
from conformance.sequential.model.produce import FAR_FUTURE_MS, LONG_AGO_MS
from conformance.sequential.steps import (
    Batch,
    Compression,
    CreateTopic,
    DeleteTopic,
    Fetch,
    Flaw,
    ListOffsets,
    Merged,
    Produce,
    Record,
    Step,
)
from conformance.sequential.strategies import batches, many, produces, records, script, timestamps_ms, values
from fixtures.clients.record_batch import RecordBatch, encode_batch
from fixtures.targets.target import Capability

_TOPICS: Final = frozenset({Capability.TOPIC_ADMIN})
_PRODUCED: Final = judges("error", "base_offset", of=Produce)
_LOG: Final = judges("error", "records", of=Fetch)

_FOREVER: Final = ("retention.ms", "-1")
_THIRTY_YEARS_MS: Final = str(30 * 365 * 86_400_000)
_LONG_AGO: Final = st.builds(Record, values(), timestamp_ms=st.integers(0, LONG_AGO_MS))
_CODECS: Final = st.sampled_from(Compression)
_ONE_RECORD: Final = (Record(b"x"),)
_WITH_MANY_HEADERS: Final = Record(b"headers", headers=tuple((f"h{n % 30}", b"%d" % n) for n in range(40)))
_LARGE: Final = Record(b"x" * 900_000)
"""A record of 900 kB."""
_COMPRESSED: Final = tuple(codec for codec in Compression if codec is not Compression.NONE)
_UNREADABLE: Final = (Flaw.COUNT_AND_OFFSETS, Flaw.GARBLED)
"""The flaws that a broker finds only if it decompresses the records."""
_FAR_FUTURE: Final = st.builds(Record, values(), timestamp_ms=st.just(FAR_FUTURE_MS))
_REJECTED: Final = st.one_of(
    produces(acks=st.sampled_from([2, -2, 32767])),
    produces(batches(flaw=st.sampled_from(Flaw))),
    produces(batches(compression=st.just(Compression.ZSTD)), version=st.just(6)),
)
"""Requests with invalid acks, with a malformed batch, and with a codec that their version does not support."""


def _near_size_limit(topic: str, difference: int) -> tuple[Step, ...]:
    """Return the steps that create a topic, produce one batch to it, and fetch the topic.

    The topic's max.message.bytes is the size of the batch plus `difference`.
    """
    batch = Batch((Record(b"x" * 50, b"key"),))
    limit = len(encode_batch(RecordBatch(records=batch.records))) + difference
    settings = (_FOREVER, ("max.message.bytes", f"{limit}"))
    return CreateTopic(topic, configs=settings), Produce((batch,), topic), Fetch(topic=topic)


def _oversize_when_decompressed(topic: str) -> tuple[Step, ...]:
    """Return the steps that produce a batch that exceeds max.message.bytes only while the broker recompresses it."""
    settings = (_FOREVER, ("max.message.bytes", "1000"), ("compression.type", "lz4"))
    batch = Batch((Record(b"x" * 5000),), Compression.GZIP)
    return CreateTopic(topic, configs=settings), Produce((batch,), topic), Fetch(topic=topic)


def _stored_as(codec: str) -> tuple[Step, ...]:
    """Return the steps that create a topic with a codec, produce a batch with another codec, and fetch the topic."""
    topic = f"trial-{codec}"
    batch = Batch((Record(b"x" * 50),), Compression.LZ4 if codec == "gzip" else Compression.GZIP)
    settings = (_FOREVER, ("compression.type", codec))
    return CreateTopic(topic, configs=settings), Produce((batch,), topic), Fetch(topic=topic)


REQUIREMENTS: Final = (
    Requirement(
        id="produce/offsets-are-dense",
        level=Level.MUST,
        text="Each acknowledged record takes exactly one offset: the base offset of a batch is the partition's log end "
        "before it, and no offset is skipped or assigned twice.",
        sources=(sources.KIP_98, sources.RECORD_BATCH),
        check=sequential(
            script(
                CreateTopic(),
                many(produces(acks=st.sampled_from([-1, 1]))),
                Produce((Batch(_ONE_RECORD * 600),)),
                produces(),
                Fetch(),
                ListOffsets(),
            ),
            _PRODUCED | _LOG | judges("error", "offset", of=ListOffsets),
        ),
        needs=_TOPICS,
    ),
    Requirement(
        id="produce/corrupt-batch-is-rejected",
        level=Level.MUST,
        text="A batch whose CRC does not match its bytes is rejected with CORRUPT_MESSAGE and base offset -1, and none "
        "of its records is appended.",
        sources=(sources.RECORD_BATCH, sources.PROTOCOL_ERRORS),
        check=sequential(
            script(
                CreateTopic(),
                many(produces(batches(flaw=st.none() | st.just(Flaw.WRONG_CRC)))),
                produces(batches(flaw=st.just(Flaw.WRONG_CRC))),
                Fetch(),
            ),
            _PRODUCED | _LOG,
        ),
        needs=_TOPICS,
    ),
    Requirement(
        id="produce/malformed-batch-is-rejected",
        level=Level.MUST,
        text="Since Produce v3 a partition's records must be exactly one whole batch of magic 2, and otherwise nothing "
        "is appended. The error is INVALID_RECORD for several batches, no batch, an older magic, a control batch, a "
        "truncated batch, a wrong number of records or offsets, and a producer id without a sequence number. It is "
        "CORRUPT_MESSAGE for an unknown magic, and TRANSACTIONAL_ID_AUTHORIZATION_FAILED for a transactional batch "
        "without a transactional id. Records that cannot be decompressed may have another error.",
        sources=(sources.KIP_98, sources.RECORD_BATCH),
        check=sequential(
            script(
                CreateTopic(),
                many(
                    produces(batches(flaw=st.sampled_from([Flaw.MAGIC_1, Flaw.TRUNCATED, Flaw.COUNT_TOO_HIGH])))
                    | st.lists(batches(), max_size=3).filter(lambda found: len(found) != 1).map(tuple).map(Produce)
                ),
                *(Produce((Batch(_ONE_RECORD, flaw=flaw),)) for flaw in Flaw),
                *(Produce((Batch(_ONE_RECORD, codec, flaw=flaw),)) for codec in _COMPRESSED for flaw in _UNREADABLE),
                produces(),
                Fetch(),
            ),
            _PRODUCED | _LOG,
        ),
        needs=_TOPICS,
    ),
    Requirement(
        id="produce/invalid-acks-are-rejected",
        level=Level.MUST,
        text="A Produce with acks other than -1, 0 and 1 is rejected with INVALID_REQUIRED_ACKS and base offset -1, "
        "and nothing is appended.",
        sources=(sources.PRODUCER_ACKS, sources.PROTOCOL_ERRORS),
        check=sequential(
            script(
                CreateTopic(),
                many(produces(acks=st.sampled_from([-1, 1, 2, -2, 3, 32767]))),
                produces(acks=st.integers(2, 32767)),
                Fetch(),
            ),
            _PRODUCED | _LOG,
        ),
        needs=_TOPICS,
    ),
    Requirement(
        id="produce/acks-zero-has-no-response",
        level=Level.MUST,
        text="A Produce with acks=0 has no response: the next response on the connection is that of the next request. "
        "Its records are appended nevertheless.",
        sources=(sources.PRODUCER_ACKS, sources.PROTOCOL),
        check=sequential(
            script(CreateTopic(), many(produces(acks=st.sampled_from([0, 1]))), produces(acks=st.just(0)), Fetch()),
            judges("has_response", "error", "base_offset", of=Produce) | _LOG,
        ),
        needs=_TOPICS,
    ),
    Requirement(
        id="produce/oversize-batch-is-rejected",
        level=Level.MUST,
        text="A batch whose size, as compressed by the producer, exceeds the topic's max.message.bytes is rejected "
        "with MESSAGE_TOO_LARGE, and nothing is appended. A batch of exactly that size is accepted.",
        sources=(sources.TOPIC_MAX_MESSAGE_BYTES, sources.PROTOCOL_ERRORS),
        check=sequential(
            script(
                st.integers(70, 160).map(
                    lambda size: CreateTopic(configs=(_FOREVER, ("max.message.bytes", f"{size}")))
                ),
                many(
                    produces(
                        batches(
                            st.builds(Record, st.integers(0, 120).map(lambda size: b"x" * size)),
                            at_most=2,
                            compression=st.sampled_from([Compression.NONE, Compression.GZIP]),
                        )
                    )
                ),
                produces(batches(st.just(Record(b"x" * 160)))),
                Fetch(),
                *_near_size_limit("trial-exact", 0),
                *_near_size_limit("trial-less", -1),
                *_oversize_when_decompressed("trial-packed"),
            ),
            _PRODUCED | _LOG,
            cost=2,
        ),
        needs=_TOPICS,
    ),
    Requirement(
        id="produce/compacted-topic-needs-keys",
        level=Level.MUST,
        text="In a topic with cleanup.policy=compact a batch with a record without a key is rejected with "
        "INVALID_RECORD, and none of its records is appended.",
        sources=(sources.KIP_135, sources.COMPACTION),
        check=sequential(
            script(
                CreateTopic(configs=(("cleanup.policy", "compact"),)),
                many(produces(batches(records()))),
                produces(batches(records(keys=st.none()))),
                Fetch(),
            ),
            _PRODUCED | _LOG,
        ),
        needs=_TOPICS,
    ),
    Requirement(
        id="produce/invalid-records-are-named",
        level=Level.SHOULD,
        text="Since Produce v8 the response to a batch that is rejected because of invalid records lists their indexes "
        "in the batch.",
        sources=(sources.KIP_467,),
        check=sequential(
            script(
                CreateTopic(configs=(("cleanup.policy", "compact"),)), many(produces(batches(records(), at_most=6)))
            ),
            judges("record_errors", of=Produce),
        ),
        needs=_TOPICS,
    ),
    Requirement(
        id="produce/unknown-topic-is-rejected",
        level=Level.MUST,
        text="Produce to a topic or partition that does not exist is rejected with UNKNOWN_TOPIC_OR_PARTITION and base "
        "offset -1 (UNKNOWN_TOPIC_ID in the versions that name topics by id); existing partitions do not change. "
        "Batches for other partitions of the same request are appended.",
        sources=(sources.PROTOCOL_ERRORS, sources.KIP_516),
        check=sequential(
            script(
                CreateTopic(),
                many(produces(topic=st.sampled_from(["trial", "trial-none"]), partition=st.sampled_from([0, 1, 1000]))),
                produces(topic=st.just("trial-none")),
                Merged((Produce((Batch(_ONE_RECORD),), partition=1000), Produce((Batch(_ONE_RECORD),)))),
                Fetch(),
            ),
            _PRODUCED | _LOG | judges("responses", of=Merged),
        ),
        needs=_TOPICS,
    ),
    Requirement(
        id="produce/late-timestamp-is-rejected",
        level=Level.MUST,
        text="A batch with a record whose timestamp is ahead of the broker's clock by more than "
        "message.timestamp.after.max.ms is rejected with INVALID_TIMESTAMP, and nothing is appended.",
        sources=(sources.KIP_937, sources.KIP_32),
        check=sequential(
            script(
                CreateTopic(configs=(_FOREVER, ("message.timestamp.after.max.ms", "3600000"))),
                many(produces(batches(st.one_of(records(), _FAR_FUTURE)))),
                produces(batches(_FAR_FUTURE)),
                Fetch(),
            ),
            _PRODUCED | _LOG,
        ),
        needs=_TOPICS,
        since="3.6.0",
    ),
    Requirement(
        id="produce/early-timestamp-is-rejected",
        level=Level.MUST,
        text="A batch with a record whose timestamp is behind the broker's clock by more than "
        "message.timestamp.before.max.ms is rejected with INVALID_TIMESTAMP, and nothing is appended.",
        sources=(sources.KIP_937, sources.KIP_32),
        check=sequential(
            script(
                CreateTopic(configs=(_FOREVER, ("message.timestamp.before.max.ms", _THIRTY_YEARS_MS))),
                many(produces(batches(st.one_of(records(), _LONG_AGO)))),
                produces(batches(_LONG_AGO)),
                Fetch(),
            ),
            _PRODUCED | _LOG,
            cost=2,
        ),
        needs=_TOPICS,
        since="3.6.0",
    ),
    Requirement(
        id="produce/log-append-time-is-set-by-the-broker",
        level=Level.MUST,
        text="With message.timestamp.type=LogAppendTime the broker replaces the producer's timestamps by its own time, "
        "sets the batch's timestamp type, and returns this time in the Produce response; with CreateTime the "
        "producer's timestamps stay.",
        sources=(sources.KIP_32, sources.TOPIC_TIMESTAMP_TYPE),
        check=sequential(
            script(
                st.sampled_from(["LogAppendTime", "CreateTime"]).map(
                    lambda kind: CreateTopic(configs=(_FOREVER, ("message.timestamp.type", kind)))
                ),
                many(produces(batches(compression=st.sampled_from([Compression.NONE, Compression.GZIP])))),
                Fetch(),
            ),
            judges("error", "log_append_time", of=Produce) | judges("error", "records", "append_times", of=Fetch),
        ),
        needs=_TOPICS,
    ),
    Requirement(
        id="produce/every-codec-round-trips",
        level=Level.MUST,
        text="Batches of every codec (none, gzip, snappy, lz4, zstd) are accepted, and read back with keys, values, "
        "headers, timestamps and offsets as they were sent.",
        sources=(sources.RECORD_BATCH, sources.KIP_110, sources.KIP_82),
        check=sequential(
            script(
                CreateTopic(),
                many(
                    produces(
                        st.builds(
                            Batch,
                            st.lists(
                                st.builds(
                                    Record,
                                    st.integers(0, 300).map(lambda size: b"ab" * size)
                                    | st.sampled_from([5_000, 70_000]).map(lambda size: b"x" * size),
                                    st.none() | values(),
                                    timestamps_ms(),
                                )
                                | records(),
                                min_size=1,
                                max_size=8,
                            ).map(tuple),
                            _CODECS,
                        )
                    )
                ),
                _CODECS.map(lambda codec: Produce((Batch((_WITH_MANY_HEADERS, _LARGE), codec),))),
                Fetch(),
                Fetch(partition_max_bytes=1 << 21),
            ),
            judges("error", of=Produce) | _LOG,
        ),
        needs=_TOPICS,
    ),
    Requirement(
        id="produce/topic-compression-type-is-applied",
        level=Level.MUST,
        text="With compression.type=producer batches keep the producer's codec. With any other value, the broker "
        "stores batches with the codec of this value, whatever the producer used. The records stay the same.",
        sources=(sources.TOPIC_COMPRESSION_TYPE, sources.KIP_110),
        check=sequential(
            script(
                st.sampled_from(["gzip", "producer", "uncompressed", "snappy", "lz4", "zstd"]).map(
                    lambda codec: CreateTopic(configs=(_FOREVER, ("compression.type", codec)))
                ),
                many(produces(batches(compression=_CODECS))),
                produces(batches(compression=st.sampled_from([Compression.NONE, Compression.LZ4]))),
                Fetch(),
                *(step for codec in ("uncompressed", "gzip", "snappy", "lz4", "zstd") for step in _stored_as(codec)),
            ),
            judges("error", of=Produce) | judges("error", "records", "codecs", of=Fetch),
            cost=4,
        ),
        needs=_TOPICS,
    ),
    Requirement(
        id="produce/zstd-needs-a-new-version",
        level=Level.MUST,
        text="A batch that is compressed with zstd in a Produce before v7 is rejected with "
        "UNSUPPORTED_COMPRESSION_TYPE, and nothing is appended.",
        sources=(sources.KIP_110,),
        check=sequential(
            script(
                CreateTopic(),
                many(
                    produces(
                        batches(compression=st.sampled_from([Compression.ZSTD, Compression.GZIP])),
                        version=st.sampled_from([3, 6, 7, None]),
                    )
                ),
                produces(batches(compression=st.just(Compression.ZSTD)), version=st.just(6)),
                Fetch(),
            ),
            _PRODUCED | _LOG,
            cost=2,
        ),
        needs=_TOPICS,
    ),
    Requirement(
        id="produce/deleted-topic-id-is-rejected",
        level=Level.MUST,
        text="Produce (since v13) and Fetch with the id of a topic that was deleted, or never existed, are rejected "
        "with UNKNOWN_TOPIC_ID, even if there is a new topic with the same name. With the id of the new topic they are "
        "served.",
        sources=(sources.KIP_516,),
        check=sequential(
            script(
                CreateTopic(),
                produces(),
                DeleteTopic(),
                CreateTopic(),
                many(
                    produces(topic_id=st.sampled_from([-1, 0, 1]))
                    | st.builds(Fetch, topic_id=st.sampled_from([-1, 0, 1])),
                ),
                produces(topic_id=st.just(0)),
                Fetch(topic_id=0),
                produces(topic_id=st.just(1)),
                Fetch(),
            ),
            _PRODUCED | _LOG,
            cost=3,
        ),
        needs=_TOPICS,
        since="4.1.0",
    ),
    Requirement(
        id="produce/rejected-request-leaves-no-record",
        level=Level.MUST,
        text="A Produce that is rejected because of its acks, its codec or its batch leaves the log as it was: the log "
        "end offset does not change, and the next batch is appended there.",
        sources=(sources.PROTOCOL_ERRORS, sources.PRODUCER_ACKS, sources.RECORD_BATCH),
        check=sequential(
            script(
                CreateTopic(),
                many(st.tuples(_REJECTED | produces(), st.just(ListOffsets()))),
                produces(acks=st.just(2)),
                ListOffsets(),
                produces(),
                ListOffsets(),
            ),
            judges("base_offset", of=Produce) | judges("error", "offset", of=ListOffsets),
            cost=2,
        ),
        needs=_TOPICS,
    ),
)
