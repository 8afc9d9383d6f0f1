"""Requirements of the connection: API versions, pipelining, and bytes that are not a request."""

import struct
from typing import Final

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from conformance.requirements import sources
from conformance.requirements.requirement import Level, Requirement
from conformance.sequential.check import judges, sequential
from conformance.sequential.steps import (
    API_VERSIONS_NEWEST,
    TOPIC,
    ApiVersions,
    Batch,
    CreateTopic,
    DeleteRecords,
    Fetch,
    InitProducerId,
    ListOffsets,
    Metadata,
    OffsetCommit,
    OffsetFetch,
    OffsetForLeaderEpoch,
    Pipelined,
    Produce,
    RawBytes,
    Record,
    WithUnknownTags,
)
from conformance.sequential.strategies import every_version, many, produces, script
from fixtures.targets.target import Capability

_TOPICS: Final = frozenset({Capability.TOPIC_ADMIN})
_RANGES: Final = judges("error", "api_versions_listed", "listed_once", "ranges_in_order", of=ApiVersions)

_VERSIONS: Final = st.integers(0, 20)
"""Versions of requests, which are lowered or raised to those that a target offers."""

_IN_EVERY_VERSION: Final = tuple(
    versioned
    for step in (
        Metadata((TOPIC, "trial-none")),
        Produce((Batch((Record(b"last"),)),)),
        Fetch(),
        ListOffsets(),
        OffsetForLeaderEpoch(),
        InitProducerId(),
        OffsetCommit(7, leader_epoch=0, metadata="seven"),
        OffsetFetch(),
        OffsetFetch(group="trial-none"),
        DeleteRecords(1),
    )
    for versioned in every_version(step)
)
"""The plain steps in every version: generated steps cover few of the versions."""

_CLIENT_NAMES: Final = ("kafkatrial", "a.b-c", "", "-a", "a-", "a b", "a\nb", "größe", ".")
_CLIENT_VERSIONS: Final = ("1", "1.2.3-rc1", "", ".1", "1 ")
_REQUEST_BYTES_MAX: Final = 100 * 1024 * 1024
"""Kafka's default of `socket.request.max.bytes`."""


_UNKNOWN_API_KEYS: Final = st.integers(500, 32767) | st.integers(-(2**15), -1)
"""Apache Kafka 4.3 has keys up to 92."""


def _frame(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def _header(api_key: int, version: int) -> bytes:
    """Return a request header v1, with key, version, correlation id and a null client id."""
    return struct.pack(">hhih", api_key, version, 1, -1)


def _hostile_bytes() -> SearchStrategy[bytes]:
    """Return a strategy for invalid bytes that a broker can distinguish from a slow client.

    These are whole frames, or begin with a length that is negative or above the limit.
    """
    return st.one_of(
        st.integers(-(2**31), -1).map(lambda length: struct.pack(">i", length)),
        st.integers(_REQUEST_BYTES_MAX + 1, 2**31 - 1).map(lambda length: struct.pack(">i", length)),
        st.sampled_from(
            [b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", b"SSH-2.0-OpenSSH_9.2\r\n", b"\x16\x03\x01\x02\x00"]
        ),
        st.integers(1000, 32767).map(lambda version: _frame(_header(3, version))),
        st.binary(min_size=1, max_size=7).map(_frame),
        st.sampled_from([1, 2, 3]).map(lambda key: _frame(_header(key, 4) + b"\x00\x00")),
    )


REQUIREMENTS: Final = (
    Requirement(
        id="negotiation/every-version-is-served",
        level=Level.MUST,
        text="Each version of a request that ApiVersions lists is served, and has the same effect as the other "
        "versions of the API.",
        sources=(sources.KIP_35, sources.PROTOCOL),
        check=sequential(
            script(
                CreateTopic(),
                produces(version=_VERSIONS),
                many(
                    st.one_of(
                        produces(version=_VERSIONS),
                        st.builds(Fetch, version=_VERSIONS),
                        st.builds(ListOffsets, version=_VERSIONS),
                        st.builds(OffsetForLeaderEpoch, version=_VERSIONS),
                        st.builds(DeleteRecords, st.just(0), version=_VERSIONS),
                        st.builds(InitProducerId, version=_VERSIONS),
                        st.builds(Metadata, version=_VERSIONS),
                        st.builds(OffsetCommit, st.integers(0, 9), version=_VERSIONS),
                        st.builds(OffsetFetch, version=_VERSIONS),
                        st.builds(ApiVersions, st.integers(0, 4)),
                    ),
                    at_least=3,
                    at_most=10,
                ),
                *_IN_EVERY_VERSION,
            ),
            judges("error", "base_offset", of=Produce)
            | judges("error", "records", "high_watermark", of=Fetch)
            | judges("error", "offset", of=ListOffsets)
            | judges("error", "end_offset", of=OffsetForLeaderEpoch)
            | judges("error", "low_watermark", of=DeleteRecords)
            | judges("error", "producer_epoch", of=InitProducerId)
            | judges("topics", "leaders", of=Metadata)
            | judges("error", of=OffsetCommit)
            | judges("error", "committed_offset", "committed_leader_epoch", "metadata", of=OffsetFetch)
            | _RANGES,
            cost=2,
        ),
        needs=_TOPICS,
    ),
    Requirement(
        id="negotiation/api-versions-falls-back-to-version-0",
        level=Level.MUST,
        text="ApiVersions in a version above the broker's highest returns a response of version 0 with "
        "UNSUPPORTED_VERSION and the list of ranges, which has each API once, so that any client can continue with a "
        "version from this list.",
        sources=(sources.KIP_35, sources.KIP_511),
        check=sequential(
            script(
                many(st.integers(0, 4).map(ApiVersions) | st.integers(API_VERSIONS_NEWEST, 32767).map(ApiVersions)),
                ApiVersions(API_VERSIONS_NEWEST),
            ),
            _RANGES,
        ),
    ),
    Requirement(
        id="negotiation/malformed-client-name-is-rejected",
        level=Level.MUST,
        text="Since v3 ApiVersions returns INVALID_REQUEST for a client name or version that has other characters than "
        "letters, digits, dots and dashes, or that does not begin and end with a letter or digit.",
        sources=(sources.KIP_511,),
        check=sequential(
            script(
                many(
                    st.builds(
                        ApiVersions,
                        st.sampled_from([3, 4]),
                        st.sampled_from(_CLIENT_NAMES),
                        st.sampled_from(_CLIENT_VERSIONS),
                    )
                ),
                ApiVersions(3, software_name="no name!"),
                *(ApiVersions(3, software_name=name) for name in _CLIENT_NAMES),
                *(ApiVersions(3, software_version=version) for version in _CLIENT_VERSIONS),
            ),
            judges("error", of=ApiVersions),
        ),
    ),
    Requirement(
        id="negotiation/responses-are-in-request-order",
        level=Level.MUST,
        text="Requests that are pipelined on one connection are processed in the order in which they were sent, and "
        "their responses are in the same order.",
        sources=(sources.PROTOCOL_NETWORK,),
        check=sequential(
            script(
                CreateTopic(),
                many(
                    st.lists(produces() | st.builds(Fetch) | st.builds(ListOffsets), min_size=2, max_size=8)
                    .map(tuple)
                    .map(Pipelined),
                    at_most=3,
                ),
                Fetch(),
            ),
            judges("in_order", "responses", of=Pipelined) | judges("error", "records", of=Fetch),
        ),
        needs=_TOPICS,
    ),
    Requirement(
        id="negotiation/unknown-tagged-fields-are-ignored",
        level=Level.MUST,
        text="A request of a flexible version with tagged fields that the broker does not know, in its header and in "
        "its body, is served as without them.",
        sources=(sources.KIP_482,),
        check=sequential(
            script(
                CreateTopic(),
                many(
                    st.builds(
                        WithUnknownTags,
                        produces() | st.sampled_from([Fetch(), ListOffsets(), Metadata(), InitProducerId()]),
                    ),
                    at_least=3,
                ),
                WithUnknownTags(Metadata()),
                Fetch(),
            ),
            judges("error", "base_offset", of=Produce)
            | judges("error", "records", of=Fetch)
            | judges("error", "offset", of=ListOffsets)
            | judges("error", "producer_epoch", of=InitProducerId)
            | judges("topics", of=Metadata),
            cost=2,
        ),
        needs=_TOPICS,
    ),
    Requirement(
        id="negotiation/unknown-api-key-closes-one-connection",
        level=Level.MUST,
        text="A connection with a request of an API key that Kafka does not have is closed; the broker continues to "
        "serve all others.",
        sources=(sources.PROTOCOL_NETWORK,),
        check=sequential(
            script(many(_UNKNOWN_API_KEYS.map(lambda key: RawBytes(_frame(_header(key, 0)))), at_most=1)),
            judges("connection", "broker", of=RawBytes),
        ),
    ),
    Requirement(
        id="negotiation/malformed-bytes-close-one-connection",
        level=Level.MUST,
        text="A connection with a negative or oversized length, a request that does not parse, an unknown version of "
        "an API, or another protocol's bytes is closed; the broker continues to serve all others.",
        sources=(sources.PROTOCOL_NETWORK, sources.REQUEST_MAX),
        check=sequential(
            script(many(_hostile_bytes().map(RawBytes), at_most=1)),
            judges("connection", "broker", of=RawBytes),
        ),
    ),
)
