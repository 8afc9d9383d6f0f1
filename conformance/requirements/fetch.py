"""Requirements of Fetch: the records and offsets that a response has, its size, and when it is returned."""

from typing import Final

from hypothesis import strategies as st

from conformance.requirements import rejections, sources
from conformance.requirements.requirement import Level, Requirement
from conformance.sequential.check import judges, sequential
from conformance.sequential.model.produce import FAR_FUTURE_MS
from conformance.sequential.steps import (
    ApiKey,
    Batch,
    Compression,
    CreateTopic,
    DeleteRecords,
    Fetch,
    LongPoll,
    Merged,
    Produce,
    RawRequest,
    Record,
    SessionFetch,
    Step,
)
from conformance.sequential.strategies import SEVERAL_PARTITIONS, batches, many, placed, produces, script, timestamps_ms
from fixtures.clients.messages import known_versions
from fixtures.clients.record_batch import RecordBatch, encode_batch
from fixtures.targets.target import Capability

_TOPICS: Final = frozenset({Capability.TOPIC_ADMIN})
_RECORDS: Final = judges("error", "records", of=Fetch)
_WATERMARKS: Final = judges("high_watermark", "last_stable_offset", "log_start_offset", of=Fetch)

_CODECS: Final = st.sampled_from(Compression)
_SINGLE_RECORDS: Final = batches(at_most=1)
_LONG_MS: Final = 60_000
"""A maximum wait above the timeout of a response: if a fetch waits to its end, its response is missing."""
_PARTITION: Final = st.integers(0, SEVERAL_PARTITIONS - 1)
_TOGETHER: Final = st.dictionaries(_PARTITION, batches(at_most=2), min_size=2, max_size=4).map(
    lambda drawn: Merged(tuple(Produce((batch,), partition=index) for index, batch in drawn.items()))
)
"""Requests with batches for several partitions of the same leader."""


def _bytes_of(produced: list[Produce]) -> int:
    """Return the size of the produced batches, which a fetch response contains unchanged."""
    produced_batches = [batch for produce in produced for batch in produce.batches]
    return sum(len(encode_batch(RecordBatch(records=batch.records))) for batch in produced_batches)


def _single_record(partition: int) -> Produce:
    """Return a request with one record, so that a fetch from any offset begins with the record at that offset."""
    return Produce((Batch((Record(b"a"),)),), partition=partition)


_SESSION_VERSIONS: Final = [version for version in known_versions(ApiKey.FETCH) if version >= 7]
"""Versions of Fetch with sessions (KIP-227)."""


def _session_in(version: int) -> tuple[Step, ...]:
    """Return the requests of a session in one version of Fetch."""
    return (
        SessionFetch(((0, 0), (1, 0), (2, 0)), epoch=0, version=version),
        _single_record(1),
        SessionFetch(version=version),
        SessionFetch(forgotten=(0, 2), version=version),
        *map(_single_record, (0, 2)),
        SessionFetch(version=version),
        SessionFetch(epoch=77, version=version),
        SessionFetch(epoch=-1, version=version),
    )


REQUIREMENTS: Final = (
    Requirement(
        id="fetch/log-is-read-in-append-order",
        level=Level.MUST,
        text="A fetch returns a partition's records in the order in which they were appended, with rising offsets, "
        "none left out and none repeated, even if records are appended to other partitions in between. A request for "
        "several partitions returns the same as one request for each.",
        sources=(sources.GUARANTEES,),
        check=sequential(
            script(
                CreateTopic(partitions=SEVERAL_PARTITIONS),
                many(produces(partition=_PARTITION) | _TOGETHER, at_most=8),
                Merged(tuple(Fetch(partition=index) for index in (2, 0, 5, 4, 1, 3))),
                *(Fetch(partition=index) for index in range(SEVERAL_PARTITIONS)),
            ),
            _RECORDS | judges("responses", of=Merged),
        ),
        needs=_TOPICS,
    ),
    Requirement(
        id="fetch/max-timestamp-is-that-of-newest-record",
        level=Level.MUST,
        text="The maximum timestamp of a batch with CreateTime is that of its newest record, whatever the codec "
        "and the maximum timestamp that the producer wrote.",
        sources=(sources.RECORD_BATCH, sources.KIP_32),
        check=sequential(
            script(
                CreateTopic(),
                many(produces(batches(compression=_CODECS, max_timestamp_ms=st.none() | timestamps_ms()))),
                *(produces(batches(compression=_CODECS, max_timestamp_ms=st.just(ms))) for ms in (-1, FAR_FUTURE_MS)),
                Fetch(),
            ),
            judges("error", "max_timestamps", of=Fetch),
        ),
        needs=_TOPICS,
    ),
    Requirement(
        id="fetch/out-of-range-offset-is-rejected",
        level=Level.MUST,
        text="A fetch below the log start offset or above the log end offset returns OFFSET_OUT_OF_RANGE without "
        "records; a fetch at the log end offset returns NONE without records.",
        sources=(sources.PROTOCOL_ERRORS, sources.CONSUMER_POSITION),
        check=sequential(
            script(
                CreateTopic(),
                many(produces(), at_most=3),
                st.integers(0, 3).map(DeleteRecords),
                many(st.integers(0, 14).map(Fetch)),
                Fetch(1000),
            ),
            _RECORDS | _WATERMARKS,
        ),
        needs=_TOPICS,
    ),
    Requirement(
        id="fetch/watermarks-are-those-of-the-log",
        level=Level.MUST,
        text="A fetch returns the partition's high watermark, last stable offset and log start offset. With all "
        "replicas in sync and without an ongoing transaction, the first two equal the log end offset.",
        sources=(sources.PROTOCOL, sources.KIP_107),
        check=sequential(
            script(
                CreateTopic(),
                many(st.one_of(produces(), st.just(Fetch(1)), st.integers(0, 3).map(DeleteRecords)), at_most=6),
                DeleteRecords(),  # advances the log start offset: the fetches may be out of range
                produces(),
                st.integers(0, 12).map(Fetch),
                Fetch(1),
            ),
            judges("error", of=Fetch) | _WATERMARKS,
        ),
        needs=_TOPICS,
    ),
    Requirement(
        id="fetch/mid-batch-offset-returns-its-batch",
        level=Level.MUST,
        text="A fetch from an offset inside a batch returns that whole batch first, because the client skips the "
        "records below the fetch offset.",
        sources=(sources.RECORD_BATCH, sources.PROTOCOL),
        check=sequential(
            script(
                CreateTopic(),
                many(produces(batches(at_most=5)), at_most=3),
                many(st.integers(0, 2).map(Fetch)),
            ),
            _RECORDS,
        ),
        needs=_TOPICS,
    ),
    Requirement(
        id="fetch/size-limits-are-soft",
        level=Level.MUST,
        text="max_bytes and partition_max_bytes limit a response, but the first batch is returned whole whatever its "
        "size, so that a large batch never blocks a consumer.",
        sources=(sources.KIP_74,),
        check=sequential(
            script(
                CreateTopic(),
                many(produces(), at_least=2),
                many(
                    st.builds(
                        Fetch,
                        offset=st.integers(0, 1),
                        partition_max_bytes=st.sampled_from([1, 70, 150, 1000]),
                        max_bytes=st.sampled_from([1, 100, 200, 1000]),
                    )
                ),
                Fetch(partition_max_bytes=1),
            ),
            _RECORDS,
        ),
        needs=_TOPICS,
    ),
    Requirement(
        id="fetch/unknown-topic-is-rejected",
        level=Level.MUST,
        text="A fetch from a topic or partition that does not exist returns UNKNOWN_TOPIC_OR_PARTITION "
        "(UNKNOWN_TOPIC_ID in the versions that name topics by id) without records. Other partitions of the same "
        "request are read.",
        sources=(sources.PROTOCOL_ERRORS, sources.KIP_516),
        check=sequential(
            script(
                CreateTopic(),
                produces(),
                many(
                    st.builds(
                        Fetch,
                        topic=st.sampled_from(["trial", "trial-none"]),
                        partition=st.sampled_from([0, 1, 1000]),
                        version=st.sampled_from([None, 12, 11, 4]),
                    )
                ),
                Fetch(topic="trial-none", version=12),
                Merged((Fetch(partition=1000), Fetch())),
            ),
            _RECORDS | judges("responses", of=Merged),
        ),
        needs=_TOPICS,
    ),
    Requirement(
        id="fetch/unknown-session-is-rejected",
        level=Level.MUST,
        text="A fetch in a session that the broker does not have returns FETCH_SESSION_ID_NOT_FOUND.",
        sources=(sources.KIP_227,),
        check=sequential(
            script(CreateTopic(), many(produces(), at_most=2), *rejections.UNKNOWN_SESSIONS),
            judges("errors", of=RawRequest),
        ),
        needs=_TOPICS,
    ),
    Requirement(
        id="fetch/session-returns-changed-partitions",
        level=Level.MUST,
        text="The first response of a fetch session has every requested partition. A later response has only the "
        "partitions with records from their fetch offset on, and those with a changed high watermark or log start "
        "offset. A request may add, update and remove partitions. A request with another epoch than the next one is "
        "rejected with INVALID_FETCH_SESSION_EPOCH, and changes nothing. Epoch -1 ends the session. A broker need not "
        "create sessions.",
        sources=(sources.KIP_227, sources.PROTOCOL_ERRORS),
        check=sequential(
            script(
                placed(1, partitions=3),
                _single_record(0),
                SessionFetch(((0, 0), (1, 0)), epoch=0),
                SessionFetch(((0, 1),)),
                many(
                    st.integers(0, 2).map(_single_record)
                    | st.integers(0, 2).map(lambda index: SessionFetch(((index, 0),)))
                    | st.just(SessionFetch())
                ),
                SessionFetch(epoch=77),
                SessionFetch(((2, 0),)),
                SessionFetch(),
                _single_record(1),
                _single_record(1),
                SessionFetch(((1, 1),), forgotten=(2,)),
                _single_record(2),
                SessionFetch(((1, 2),)),
                SessionFetch(((2, 0), (0, 0)), epoch=-1),
                SessionFetch(),
                *(st.sampled_from(_SESSION_VERSIONS).map(_session_in),) * 2,
            ),
            judges("error", "partitions", of=SessionFetch),
        ),
        needs=_TOPICS,
    ),
    Requirement(
        id="fetch/without-wait-returns-what-is-there",
        level=Level.MUST,
        text="A fetch with max_wait_ms 0 returns the available records of the requested partition at once, even if "
        "their size is below min_bytes.",
        sources=(sources.PROTOCOL_FETCH,),
        check=sequential(
            script(
                CreateTopic(),
                many(produces(), at_most=2),
                st.builds(
                    Fetch, offset=st.integers(0, 1), max_wait_ms=st.just(0), min_bytes=st.sampled_from([1, 1 << 20])
                ),
                Fetch(max_wait_ms=0),
            ),
            _RECORDS,
        ),
        needs=_TOPICS,
    ),
    Requirement(
        id="fetch/waiting-fetch-completes-when-data-arrives",
        level=Level.MUST,
        text="If the available records have fewer bytes than min_bytes, a fetch waits. It returns as soon as min_bytes "
        "are available, long before max_wait_ms has passed.",
        sources=(sources.PROTOCOL_FETCH, sources.PROTOCOL),
        check=sequential(
            script(
                st.sampled_from([CreateTopic(), CreateTopic(replication_factor=-1)]),
                # Apache Kafka applies min_bytes only to an empty log: at the end of any other log, one batch is enough.
                st.lists(produces(_SINGLE_RECORDS), min_size=3, max_size=3).map(
                    lambda drawn: LongPoll(Fetch(max_wait_ms=_LONG_MS, min_bytes=_bytes_of(drawn)), tuple(drawn))
                ),
                produces(_SINGLE_RECORDS).map(
                    lambda produce: LongPoll(Fetch(3, max_wait_ms=_LONG_MS, min_bytes=1), (produce,))
                ),
                Fetch(),
            ),
            judges("error", "records", of=LongPoll) | _RECORDS,
            cost=5,
        ),
        needs=_TOPICS,
    ),
)
