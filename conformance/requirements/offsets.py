"""Requirements of ListOffsets and DeleteRecords: log start and end, offsets by timestamp, and deletion."""

from typing import Final

from hypothesis import strategies as st

from conformance.requirements import rejections, sources
from conformance.requirements.requirement import Level, Requirement
from conformance.sequential.check import judges, sequential
from conformance.sequential.steps import (
    EARLIEST,
    EARLIEST_LOCAL,
    LATEST,
    LATEST_TIERED,
    MAX_TIMESTAMP,
    Batch,
    Compression,
    CreateTopic,
    DeleteRecords,
    Fetch,
    ListOffsets,
    Merged,
    Produce,
    RawRequest,
    Record,
)
from conformance.sequential.strategies import SEVERAL_PARTITIONS, batches, many, produces, script, timestamps_ms
from fixtures.targets.target import Capability

_TOPICS: Final = frozenset({Capability.TOPIC_ADMIN})
_OFFSET: Final = judges("error", "offset", of=ListOffsets)
_OFFSET_AND_TIME: Final = judges("error", "offset", "timestamp", of=ListOffsets)

_WRITES: Final = produces(batches(compression=st.sampled_from([Compression.NONE, Compression.LZ4])))
_LIST_ENDS: Final = st.builds(ListOffsets, st.sampled_from([EARLIEST, LATEST]), read_committed=st.booleans())

REQUIREMENTS: Final = (
    Requirement(
        id="offsets/earliest-and-latest-are-the-logs-ends",
        level=Level.MUST,
        text="ListOffsets returns the log start for -2 and the high watermark for -1 (the last stable offset for "
        "read_committed). In a partition that never had a record, both are 0. A request for several partitions "
        "returns the same as one request for each.",
        sources=(sources.KIP_79, sources.PROTOCOL),
        check=sequential(
            script(
                CreateTopic(partitions=SEVERAL_PARTITIONS),
                many(_LIST_ENDS | _WRITES | st.integers(0, 3).map(DeleteRecords), at_most=8),
                ListOffsets(EARLIEST),
                ListOffsets(LATEST),
                *(
                    Produce((Batch((Record(b"a"),) * index),), partition=index)
                    for index in range(1, SEVERAL_PARTITIONS)
                ),
                Merged(tuple(ListOffsets(partition=index) for index in range(SEVERAL_PARTITIONS))),
            ),
            _OFFSET | judges("responses", of=Merged),
        ),
        needs=_TOPICS,
    ),
    Requirement(
        id="offsets/ends-have-no-timestamp",
        level=Level.SHOULD,
        text="ListOffsets for -2 (earliest) and -1 (latest) returns timestamp -1.",
        sources=(sources.KIP_79, sources.PROTOCOL),
        check=sequential(
            script(CreateTopic(), many(_WRITES), many(_LIST_ENDS), ListOffsets(EARLIEST), ListOffsets(LATEST)),
            judges("error", "timestamp", of=ListOffsets),
        ),
        needs=_TOPICS,
    ),
    Requirement(
        id="offsets/by-timestamp-is-the-first-not-earlier",
        level=Level.MUST,
        text="ListOffsets by timestamp returns the offset and timestamp of the first record, by offset, whose "
        "timestamp is equal or later. If there is no such record, it returns offset -1 and timestamp -1.",
        sources=(sources.KIP_79, sources.KIP_32),
        check=sequential(
            script(
                CreateTopic(),
                many(_WRITES, at_most=4),
                many(timestamps_ms().map(ListOffsets)),
                st.integers(0, 4).map(DeleteRecords),
                many(timestamps_ms().map(ListOffsets)),
            ),
            _OFFSET_AND_TIME,
        ),
        needs=_TOPICS,
    ),
    Requirement(
        id="offsets/max-timestamp-is-the-newest-record",
        level=Level.MUST,
        text="ListOffsets for -3 returns the timestamp and the offset of a record with the partition's newest "
        "timestamp. If the partition has no records, it returns timestamp -1 and offset -1.",
        sources=(sources.KIP_734,),
        check=sequential(
            script(CreateTopic(), ListOffsets(MAX_TIMESTAMP), many(_WRITES, at_most=4), ListOffsets(MAX_TIMESTAMP)),
            _OFFSET_AND_TIME,
        ),
        needs=_TOPICS,
        since="3.0.0",
    ),
    Requirement(
        id="offsets/untiered-log-is-local",
        level=Level.SHOULD,
        text="Without tiered storage ListOffsets returns the log start for -4 (earliest local) and offset -1 for -5 "
        "(latest tiered).",
        sources=(sources.KIP_405, sources.KIP_1005),
        check=sequential(
            script(
                CreateTopic(),
                many(_WRITES, at_most=3),
                st.integers(0, 3).map(DeleteRecords),
                many(st.sampled_from([EARLIEST_LOCAL, LATEST_TIERED]).map(ListOffsets), at_most=2),
            ),
            _OFFSET,
        ),
        needs=_TOPICS,
        since="3.9.0",
    ),
    Requirement(
        id="offsets/unknown-timestamp-is-rejected",
        level=Level.SHOULD,
        text="ListOffsets returns UNSUPPORTED_VERSION for a special timestamp that does not exist, or that the version "
        "of the request does not have.",
        sources=(sources.KIP_734, sources.KIP_405),
        check=sequential(script(CreateTopic(), *rejections.UNKNOWN_TIMESTAMPS), judges("errors", of=RawRequest)),
        needs=_TOPICS,
        since="3.9.0",
    ),
    Requirement(
        id="offsets/unknown-partition-is-rejected",
        level=Level.MUST,
        text="ListOffsets of a topic or partition that does not exist returns UNKNOWN_TOPIC_OR_PARTITION, with offset "
        "-1.",
        sources=(sources.PROTOCOL_ERRORS,),
        check=sequential(
            script(
                CreateTopic(),
                many(
                    st.builds(
                        ListOffsets,
                        st.sampled_from([EARLIEST, LATEST]),
                        st.sampled_from(["trial", "trial-none"]),
                        st.sampled_from([0, 1, 1000]),
                    )
                ),
                ListOffsets(topic="trial-none"),
            ),
            _OFFSET,
        ),
        needs=_TOPICS,
    ),
    Requirement(
        id="offsets/delete-records-moves-log-start",
        level=Level.MUST,
        text="DeleteRecords advances the log start to the given offset (-1: the high watermark), never moves it back, "
        "and returns it as low watermark. Records below the log start cannot be read, and later Produce responses have "
        "the new log start.",
        sources=(sources.KIP_107,),
        check=sequential(
            script(
                CreateTopic(),
                produces(),
                many(_WRITES | st.integers(-1, 3).map(DeleteRecords), at_most=8),
                DeleteRecords(1),
                Fetch(0),
                ListOffsets(EARLIEST),
                produces(),
            ),
            judges("error", "low_watermark", of=DeleteRecords)
            | _OFFSET
            | judges("error", of=Fetch)
            | judges("log_start_offset", of=Produce),
        ),
        needs=_TOPICS,
    ),
    Requirement(
        id="offsets/delete-records-stops-at-high-watermark",
        level=Level.MUST,
        text="DeleteRecords returns OFFSET_OUT_OF_RANGE for an offset beyond the high watermark, and POLICY_VIOLATION "
        "for a topic that is only compacted. Both responses have low watermark -1, and nothing is deleted.",
        sources=(sources.KIP_107, sources.PROTOCOL_ERRORS),
        check=sequential(
            script(
                CreateTopic(),
                many(_WRITES, at_most=3),
                many(st.integers(0, 20).map(DeleteRecords), at_most=3),
                DeleteRecords(1000),
                DeleteRecords(-2),
                ListOffsets(EARLIEST),
                CreateTopic("trial-compacted", configs=(("cleanup.policy", "compact"),)),
                DeleteRecords(0, topic="trial-compacted"),
            ),
            judges("error", "low_watermark", of=DeleteRecords) | _OFFSET,
        ),
        needs=_TOPICS,
    ),
)
