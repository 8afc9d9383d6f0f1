"""Requirements that equal requests have equal responses: in each version, repeatedly, and from each broker.

Each row is for one API that only reads. While nothing changes, its response depends neither on the version nor on what
was requested before. If it is about the whole cluster, it does not depend on the broker either. A broker that does not
advertise the API is not judged.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from conformance.requirements import sources
from conformance.requirements.requirement import KRAFT, Level, Requirement, requirement_of
from conformance.requirements.topic_fields import TOPICS, every_index, every_partition, fetch_fields
from conformance.sequential.check import judges, sequential
from conformance.sequential.steps import (
    AlterClientQuotas,
    AlterScramCredential,
    ApiKey,
    Batch,
    Broker,
    CreateTopic,
    Eventually,
    InitProducerId,
    JoinGroup,
    OffsetCommit,
    Produce,
    RawRequest,
    Record,
    Repeated,
    Step,
    SyncGroup,
)
from conformance.sequential.strategies import placed, script
from fixtures.clients.messages import api_name
from fixtures.targets.target import Capability


@dataclass(frozen=True, slots=True)
class _Row:
    """One API with its request.

    :ivar of_cluster: whether each broker returns the same.
    :ivar varying: fields that may change although nothing else does.
    :ivar rising: fields that may increase although nothing else changes.
    :ivar broker: the place of the broker that receives the request; None for the one that a client selects.
    :ivar before: steps before the request.
    :ivar after: steps that undo those effects of `before` that the deletion of the script's topics does not undo.
    """

    api: ApiKey
    request: Mapping[str, Any]
    of_cluster: bool = False
    varying: tuple[str, ...] = ()
    rising: tuple[str, ...] = ()
    is_steady: bool = False
    """Whether nothing but requests can change the response: once all are the same, each later one is the same."""
    broker: int | None = None
    before: tuple[Step, ...] = ()
    after: tuple[Step, ...] = ()


_CONFIGS: Final = (("retention.ms", "-1"), ("cleanup.policy", "delete"))
_PARTITIONS: Final = tuple((name, index) for name, count in TOPICS for index in range(count))
_REPLICATED: Final = tuple(
    CreateTopic(name, partitions=count, configs=_CONFIGS, replication_factor=-1) for name, count in TOPICS
)
_CREATED: Final = (CreateTopic(configs=_CONFIGS), CreateTopic("trial-two", configs=(("retention.ms", "86400000"),)))
_PRODUCED: Final = (
    *(replace(placed(1, topic=name, partitions=count), configs=_CONFIGS) for name, count in TOPICS),
    InitProducerId(),
    Produce((Batch((Record(b"a"), Record(b"b")), producer=0),)),
    Produce((Batch((Record(b"c"),), producer=0, sequence=2),)),
    *(
        Produce((Batch((Record(b"d"),) * place, producer=0),), topic=name, partition=index)
        for place, (name, index) in enumerate(_PARTITIONS)
        if place
    ),
)
_STABLE_GROUP: Final = (*_CREATED, OffsetCommit(5), JoinGroup(), JoinGroup(0), SyncGroup(0))
_CLIENT: Final = "trial-client"
_USER: Final = "trial-user"
_CLIENT_METRICS: Final = 16
"""Type of the only config resources that ListConfigResources v0 returns (KIP-1142)."""


_ROWS: Final = (
    _Row(
        ApiKey.FETCH,
        fetch_fields(every_partition(fetch_offset=0, partition_max_bytes=1 << 20), isolation_level=1),
        varying=("records",),
        before=_PRODUCED,
        is_steady=True,
    ),
    _Row(
        ApiKey.LIST_OFFSETS,
        {"replica_id": -1, "isolation_level": 0, "topics": every_partition(timestamp=-1)},
        before=_PRODUCED,
        is_steady=True,
    ),
    _Row(
        ApiKey.OFFSET_FOR_LEADER_EPOCH,
        {"replica_id": -1, "topics": every_partition(leader_epoch=0)},
        before=_PRODUCED,
        is_steady=True,
    ),
    _Row(
        ApiKey.METADATA,
        {
            "topics": tuple({"name": name, "topic_id": None} for name, _ in TOPICS),
            "allow_auto_topic_creation": False,
            "include_cluster_authorized_operations": False,
            "include_topic_authorized_operations": True,
        },
        of_cluster=True,
        varying=("controller_id",),
        before=_REPLICATED,
    ),
    _Row(
        ApiKey.DESCRIBE_TOPIC_PARTITIONS,
        {"topics": tuple({"name": name} for name, _ in TOPICS), "cursor": None},
        of_cluster=True,
        before=_REPLICATED,
    ),
    _Row(
        ApiKey.DESCRIBE_CLUSTER,
        {"include_cluster_authorized_operations": True, "include_fenced_brokers": False},
        of_cluster=True,
        varying=("controller_id",),
    ),
    _Row(
        ApiKey.DESCRIBE_QUORUM,
        {"topics": ({"topic_name": "__cluster_metadata", "partitions": ({"partition_index": 0},)},)},
        of_cluster=True,
        rising=("high_watermark",),
        varying=(
            "log_end_offset",
            "last_fetch_timestamp",
            "last_caught_up_timestamp",
            "replica_directory_id",
            "observers",
        ),
    ),
    _Row(
        ApiKey.FIND_COORDINATOR,
        {"key": "trial", "key_type": 0, "coordinator_keys": ("trial",)},
        of_cluster=True,
        varying=("error_message",),
        is_steady=True,
    ),
    _Row(
        ApiKey.API_VERSIONS,
        {"client_software_name": "kafkatrial", "client_software_version": "1"},
        varying=("supported_features",),
        rising=("finalized_features_epoch",),
        is_steady=True,
    ),
    _Row(
        ApiKey.OFFSET_FETCH,
        {
            "group_id": "trial",
            "topics": every_index(field="partition_indexes"),
            "groups": ({"group_id": "trial", "topics": every_index(field="partition_indexes")},),
        },
        before=(
            *(CreateTopic(name, partitions=count) for name, count in TOPICS),
            *(
                OffsetCommit(5 + place, topic=name, partition=index, metadata="m" * place)
                for place, (name, index) in enumerate(_PARTITIONS)
            ),
        ),
        is_steady=True,
    ),
    _Row(
        ApiKey.DESCRIBE_CONFIGS,
        {
            "resources": (
                *({"resource_type": 2, "resource_name": name, "configuration_keys": None} for name, _ in TOPICS),
                {"resource_type": 4, "resource_name": Broker(1), "configuration_keys": None},
            ),
            "include_synonyms": True,
            "include_documentation": False,
        },
        broker=1,
        before=_CREATED,
        is_steady=True,
    ),
    _Row(
        ApiKey.DESCRIBE_LOG_DIRS,
        {"topics": every_index()},
        varying=("total_bytes", "usable_bytes"),
        before=_PRODUCED,
    ),
    _Row(
        ApiKey.DESCRIBE_PRODUCERS,
        {"topics": every_index(field="partition_indexes")},
        before=_PRODUCED,
    ),
    _Row(
        ApiKey.DESCRIBE_GROUPS,
        {"groups": ("trial",), "include_authorized_operations": True},
        before=_STABLE_GROUP,
    ),
    _Row(ApiKey.LIST_GROUPS, {"states_filter": (), "types_filter": ()}, before=_STABLE_GROUP),
    _Row(
        ApiKey.DESCRIBE_CLIENT_QUOTAS,
        {"components": ({"entity_type": "client-id", "match_type": 0, "match": _CLIENT},), "strict": True},
        of_cluster=True,
        before=(AlterClientQuotas((("producer_byte_rate", 5000), ("consumer_byte_rate", 6000)), _CLIENT),),
        after=(AlterClientQuotas((("producer_byte_rate", None), ("consumer_byte_rate", None)), _CLIENT),),
    ),
    _Row(ApiKey.LIST_CONFIG_RESOURCES, {"resource_types": (_CLIENT_METRICS,)}, of_cluster=True),
    _Row(
        ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
        {"users": ({"name": _USER},)},
        of_cluster=True,
        before=(AlterScramCredential(4096, user=_USER),),
        after=(AlterScramCredential(None, user=_USER),),
    ),
)


def _requirement(row: _Row) -> Requirement:
    request = RawRequest(row.api, row.request, (), distinct=True)
    repeated = Repeated(request, row.of_cluster, row.varying, row.rising, row.broker)
    brokers = " and from each broker" if row.of_cluster else ""
    rising = "".join(f" On each broker, {name} does not decrease." for name in row.rising)
    return Requirement(
        id=requirement_of("consistency", row.api),
        level=Level.MUST,
        text=f"While nothing changes, {api_name(row.api)} returns the same in each version that ApiVersions lists"
        f"{brokers}, however often it is repeated.{rising} Times, addresses of brokers and groups of other clients are "
        "not compared.",
        sources=(sources.PROTOCOL, sources.KIP_35),
        check=sequential(
            script(
                *row.before,
                Eventually(repeated, awaited=frozenset({"errors", "differing"})),
                *([repeated] if row.is_steady else []),
                *row.after,
            ),
            judges("errors", "differing", "decreased", of=Repeated),
            cost=3,
        ),
        needs=frozenset({Capability.TOPIC_ADMIN} if row.before else ()),
        since=KRAFT if row.of_cluster else None,
    )


REQUIREMENTS: Final = tuple(map(_requirement, _ROWS))
