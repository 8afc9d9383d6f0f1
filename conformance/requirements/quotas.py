"""Requirements of client quotas: their changes and description, and the throttle time of a client that exceeds one.

A script sets quotas only for its own client ids, and removes them at the end. A broker without the API is not judged.
"""

from typing import Any, Final

from hypothesis import strategies as st

from conformance.requirements import sources
from conformance.requirements.requirement import KRAFT, Level, Requirement
from conformance.requirements.topic_fields import fetch_fields, one_partition
from conformance.sequential.check import judges, sequential
from conformance.sequential.judging import Judges
from conformance.sequential.steps import (
    AlterClientQuotas,
    ApiKey,
    AsClient,
    Batch,
    CreateTopic,
    DescribeClientQuotas,
    DescribeConfigs,
    Eventually,
    Fetch,
    InitProducerId,
    ListOffsets,
    Metadata,
    OffsetCommit,
    OffsetFetch,
    Produce,
    RawRequest,
    Record,
)
from conformance.sequential.strategies import many, script
from fixtures.targets.target import Capability

_KEYS: Final = ("producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate")
_CLIENT: Final = "trial-client"
_REMOVED: Final = AlterClientQuotas(tuple((key, None) for key in _KEYS), _CLIENT)
_OP: Final = st.tuples(st.sampled_from(_KEYS), st.none() | st.integers(1, 2**31))
_CHANGES: Final = st.lists(_OP, min_size=1, max_size=3, unique_by=lambda op: op[0]).map(
    lambda ops: (AlterClientQuotas(tuple(ops), _CLIENT), Eventually(DescribeClientQuotas(_CLIENT)))
)
_BATCH_BYTES: Final = 20_000
_RATE: Final = 1_900
"""Bytes a second. The batch is a twentieth larger than the quota permits in its window of ten seconds, so the client is
throttled for less than a second."""
_LARGE_RECORD: Final = (Record(b"v" * _BATCH_BYTES),)
_LARGE: Final = Produce((Batch(_LARGE_RECORD, producer=0),))

_READ: Final = RawRequest(
    ApiKey.FETCH,
    fetch_fields(one_partition(fetch_offset=0, partition_max_bytes=1 << 20)),
    (),
    distinct=True,
)
"""A Fetch of which only errors and the throttle time are judged: a throttled response has no partitions (KIP-219)."""


_Entity = tuple[tuple[str, str | None], ...]
_BAD_CLIENT: Final[_Entity] = (("client-id", "trial-bad"),)


def _rejected_change(*ops: tuple[str, float], entity: _Entity = _BAD_CLIENT) -> RawRequest:
    """Return a change that is rejected with INVALID_REQUEST."""
    entry: dict[str, Any] = {
        "entity": tuple({"entity_type": type_, "entity_name": name} for type_, name in entity),
        "ops": tuple({"key": key, "value": float(value), "remove": False} for key, value in ops),
    }
    fields = {"entries": (entry,), "validate_only": False}
    return RawRequest(ApiKey.ALTER_CLIENT_QUOTAS, fields, ("INVALID_REQUEST",))


_VALID: Final = ("producer_byte_rate", 1000.0)

_CLIENT_REQUESTS: Final = (
    Metadata(),
    Produce((Batch((Record(b"a"),)),)),
    Fetch(),
    ListOffsets(),
    OffsetCommit(1),
    OffsetFetch(),
    DescribeConfigs(("retention.ms",)),
    RawRequest(ApiKey.FIND_COORDINATOR, {"key": "trial", "key_type": 0, "coordinator_keys": ("trial",)}, ()),
    RawRequest(
        ApiKey.API_VERSIONS,
        {"client_software_name": "kafkatrial", "client_software_version": "1"},
        (),
    ),
    RawRequest(ApiKey.CREATE_TOPICS, {"topics": (), "validate_only": True}, ()),
)
"""Requests of a client without a quota. The cluster may have a default quota, and throttle it nevertheless."""
_REPETITIONS: Final = 12
"""Number of times that each request is sent, because a broker may return a throttle time in some responses only."""

REQUIREMENTS: Final = (
    Requirement(
        id="quotas/altered-quotas-are-described",
        level=Level.MUST,
        text="AlterClientQuotas sets and removes the named quotas of an entity, and leaves its other quotas. With "
        "validate_only it changes nothing. DescribeClientQuotas returns the quotas of each entity that has any. With "
        "strict, it returns no entity that has a further component, such as a user besides the client id.",
        sources=(sources.KIP_546,),
        check=sequential(
            script(
                DescribeClientQuotas(_CLIENT),
                AlterClientQuotas((("producer_byte_rate", 5000), ("consumer_byte_rate", 6000)), _CLIENT),
                Eventually(DescribeClientQuotas(_CLIENT)),
                AlterClientQuotas((("producer_byte_rate", 7000),), _CLIENT, validate_only=True),
                many(_CHANGES, at_most=3),
                DescribeClientQuotas("trial-other"),
                AlterClientQuotas((("request_percentage", 50),), _CLIENT, user="trial-user"),
                Eventually(DescribeClientQuotas(_CLIENT, strict=False)),
                DescribeClientQuotas(_CLIENT),
                AlterClientQuotas((("request_percentage", None),), _CLIENT, user="trial-user"),
                Eventually(DescribeClientQuotas(_CLIENT, strict=False)),
                _REMOVED,
                Eventually(DescribeClientQuotas(_CLIENT)),
                AlterClientQuotas((("producer_byte_rate", 8000),), _CLIENT, version=0),
                AlterClientQuotas((("producer_byte_rate", 9000),), _CLIENT, validate_only=True, version=0),
                Eventually(DescribeClientQuotas(_CLIENT, version=0)),
                AlterClientQuotas((("producer_byte_rate", None), ("consumer_byte_rate", 7000)), _CLIENT),
                Eventually(DescribeClientQuotas(_CLIENT, version=0)),
                AlterClientQuotas((("consumer_byte_rate", None),), _CLIENT, version=0),
                Eventually(DescribeClientQuotas(_CLIENT)),
            ),
            judges("error", of=AlterClientQuotas) | judges("error", "quotas", "others", of=DescribeClientQuotas),
            cost=3,
        ),
    ),
    Requirement(
        id="quotas/bad-change-is-rejected",
        level=Level.MUST,
        text="AlterClientQuotas returns INVALID_REQUEST for an unknown quota, a quota that the type of the entity "
        "cannot have, a value that is not above 0, a byte rate that is not a whole number, an entity that is empty, of "
        "an unknown type or without a name, and an IP address together with a client id.",
        sources=(sources.KIP_546,),
        check=sequential(
            script(
                _rejected_change(("no.such.quota", 1)),
                _rejected_change(("producer_byte_rate", 0)),
                _rejected_change(_VALID, ("consumer_byte_rate", -1)),
                _rejected_change(("consumer_byte_rate", 10.5)),
                _rejected_change(("connection_creation_rate", 10)),
                _rejected_change(_VALID, entity=()),
                _rejected_change(_VALID, entity=(("no-such-entity", "trial-bad"),)),
                _rejected_change(_VALID, entity=(("client-id", ""),)),
                _rejected_change(
                    ("connection_creation_rate", 10), entity=(("ip", "127.0.0.1"), ("client-id", "trial-bad"))
                ),
                DescribeClientQuotas("trial-bad"),
            ),
            judges("errors", of=RawRequest) | judges("error", "quotas", of=DescribeClientQuotas),
        ),
        since=KRAFT,
    ),
    Requirement(
        id="quotas/exceeded-quota-throttles",
        level=Level.MUST,
        text="The response to a Produce of a client that exceeds its producer_byte_rate has a throttle time, and is "
        "valid nevertheless: the records are appended. Other clients are not throttled.",
        sources=(sources.KIP_219, sources.KIP_546),
        check=sequential(
            script(
                CreateTopic(partitions=2),
                InitProducerId(),
                AlterClientQuotas((("producer_byte_rate", _RATE),), _CLIENT),
                Eventually(AsClient(_CLIENT, _LARGE)),
                AsClient("trial-other", Produce((Batch(_LARGE_RECORD),), partition=1)),
                Fetch(),
                _REMOVED,
            ),
            judges("error", "base_offset", "throttled", of=Produce) | judges("error", "records", of=Fetch),
            cost=15,
        ),
        needs=frozenset({Capability.TOPIC_ADMIN}),
    ),
    Requirement(
        id="quotas/exceeded-consumer-quota-throttles",
        level=Level.MUST,
        text="The response to a Fetch of a client that exceeds its consumer_byte_rate has a throttle time, and no "
        "error. Other clients are not throttled.",
        sources=(sources.KIP_219, sources.KIP_546),
        check=sequential(
            script(
                CreateTopic(),
                Produce((Batch(_LARGE_RECORD),)),
                AsClient(_CLIENT, _READ),
                AlterClientQuotas((("consumer_byte_rate", _RATE),), _CLIENT),
                Eventually(AsClient(_CLIENT, _READ), awaited=frozenset({"throttled"})),
                AsClient("trial-other", _READ),
                _REMOVED,
            ),
            judges("errors", "throttled", of=RawRequest),
            cost=15,
        ),
        needs=frozenset({Capability.TOPIC_ADMIN}),
    ),
    Requirement(
        id="quotas/throttled-connection-is-muted",
        level=Level.SHOULD,
        text="A broker that returns a throttle time does not respond to the next request on the connection before that "
        "time has passed.",
        sources=(sources.KIP_219,),
        check=sequential(
            script(CreateTopic(), *(AsClient("trial-other", step) for step in _CLIENT_REQUESTS * _REPETITIONS)),
            Judges({type(step): frozenset({"muted"}) for step in _CLIENT_REQUESTS}),
        ),
        needs=frozenset({Capability.TOPIC_ADMIN}),
    ),
)
