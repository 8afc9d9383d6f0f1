"""Requirements of topic and broker configurations: alteration, validation and description."""

from typing import Final

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from conformance.requirements import rejections, sources
from conformance.requirements.requirement import KRAFT, Level, Requirement
from conformance.sequential.check import judges, sequential
from conformance.sequential.inheritance_rules import TOPIC_PROPERTIES
from conformance.sequential.model.configs import THROTTLED
from conformance.sequential.steps import (
    TOPIC,
    AlterConfigs,
    ApiKey,
    Batch,
    CreateTopic,
    DeleteTopic,
    DescribeConfigs,
    Eventually,
    IncrementalAlterConfigs,
    ListConfigResources,
    OffsetCommit,
    On,
    Operation,
    Produce,
    RawRequest,
    Record,
    ResourceType,
    UseDefaults,
    UseSettings,
)
from conformance.sequential.strategies import many, script
from fixtures.targets.target import Capability

Change = tuple[str, Operation, str | None]

_TOPICS: Final = frozenset({Capability.TOPIC_ADMIN})
_DESCRIBED: Final = judges("error", "set", "inherited", of=DescribeConfigs)
_ALTERED: Final = judges("error", of=IncrementalAlterConfigs)
_ERRORS: Final = judges("errors", of=RawRequest)

_NAMES: Final = ("cleanup.policy", "max.message.bytes", "retention.ms")
_SETTING_NAMES: Final = st.lists(
    st.sampled_from([*_NAMES, "no.such.property"]), min_size=1, max_size=3, unique=True
).map(tuple)
_SHOWN: Final = Eventually(DescribeConfigs(_NAMES))
_UNSET: Final = "trial-unset"


def _with_broker(topic: str) -> Eventually:
    """Return a step that describes a topic and the broker that responds.

    The step is repeated while the descriptions differ, because a setting may change between them.
    """
    return Eventually(On(1, DescribeConfigs(TOPIC_PROPERTIES, topic, broker=1)))


_INHERITED: Final = (CreateTopic(_UNSET, configs=()), _with_broker(_UNSET))
"""A topic that inherits all its settings, unless the broker has other defaults than Kafka (`pinned`)."""
_SETTINGS: Final = st.sampled_from(
    [("cleanup.policy", "compact"), ("cleanup.policy", "delete"), ("max.message.bytes", "5000"), ("retention.ms", "-1")]
)
_ONE_BY_ONE: Final = st.one_of(
    _SETTINGS.map(lambda pair: (pair[0], Operation.SET, pair[1])),
    st.sampled_from(_NAMES).map(lambda name: (name, Operation.DELETE, None)),
)
_LISTS: Final = st.sampled_from(
    [
        ("cleanup.policy", Operation.APPEND, "compact"),
        ("cleanup.policy", Operation.APPEND, "delete"),
        ("cleanup.policy", Operation.SET, "compact,delete"),
        ("cleanup.policy", Operation.SET, "delete"),
    ]
)
_INVALID: Final = st.sampled_from(
    [
        (("retention.ms", Operation.SET, "soon"),),
        (("cleanup.policy", Operation.SET, "burn"),),
        (("no.such.property", Operation.SET, "1"),),
        (("retention.ms", Operation.APPEND, "5"),),
        (("retention.ms", Operation.SET, "5"), ("retention.ms", Operation.DELETE, None)),
        (("max.message.bytes", Operation.SET, "7000"), ("no.such.property", Operation.SET, "1")),
    ]
).map(IncrementalAlterConfigs)


_PRODUCED: Final = Eventually(Produce((Batch((Record(b"x" * 300),)),)), awaited=frozenset({"error", "log_append_time"}))
"""A batch whose result depends on the settings. It is sent until a change is applied, so its offset is not judged."""
_CHANGES_IN_ORDER: Final[tuple[Change, ...]] = (
    ("max.message.bytes", Operation.SET, "200"),
    ("max.message.bytes", Operation.SET, "2000"),
    ("cleanup.policy", Operation.SET, "compact"),
    ("cleanup.policy", Operation.SET, "delete"),
    ("message.timestamp.type", Operation.SET, "LogAppendTime"),
    ("max.message.bytes", Operation.SET, "250"),
    ("max.message.bytes", Operation.DELETE, None),
    ("message.timestamp.type", Operation.SET, "CreateTime"),
)


_METRICS: Final = "trial-metrics"
_LISTED: Final = Eventually(ListConfigResources((_METRICS,)))


def _metrics(operation: Operation) -> RawRequest:
    """Return a change of client metrics. A broker without client metrics rejects it, and lists none."""
    change = {"name": "interval.ms", "config_operation": int(operation), "value": "60000"}
    resource = {"resource_type": 16, "resource_name": _METRICS, "configs": (change,)}
    return RawRequest(ApiKey.INCREMENTAL_ALTER_CONFIGS, {"resources": (resource,), "validate_only": False}, ())


def _unique(changes: SearchStrategy[Change]) -> SearchStrategy[IncrementalAlterConfigs]:
    return st.lists(changes, min_size=1, max_size=3, unique_by=lambda change: change[0]).map(
        lambda found: IncrementalAlterConfigs(tuple(found))
    )


REQUIREMENTS: Final = (
    Requirement(
        id="configs/changes-leave-the-rest",
        level=Level.MUST,
        text="IncrementalAlterConfigs sets and deletes the named settings and leaves all others; a deleted setting is "
        "inherited again. A topic that is created again has none of the settings of the deleted topic.",
        sources=(sources.KIP_339,),
        check=sequential(
            script(
                CreateTopic(),
                many(_unique(_ONE_BY_ONE).map(lambda change: (change, _SHOWN)), at_most=4),
                IncrementalAlterConfigs((("max.message.bytes", Operation.SET, "6000"),)),
                _SHOWN,
                DeleteTopic(),
                CreateTopic(configs=()),
                _SHOWN,
            ),
            _ALTERED | _DESCRIBED,
            cost=3,
        ),
        needs=_TOPICS,
    ),
    Requirement(
        id="configs/changes-are-applied",
        level=Level.MUST,
        text="A change of the settings max.message.bytes, message.timestamp.type and cleanup.policy applies to later "
        "Produce requests, and a deleted setting no longer does.",
        sources=(sources.KIP_339, sources.TOPIC_CONFIGS),
        check=sequential(
            script(
                CreateTopic(),
                _PRODUCED,
                many(
                    st.sampled_from(_CHANGES_IN_ORDER).map(
                        lambda change: (IncrementalAlterConfigs((change,)), _PRODUCED)
                    ),
                    at_most=4,
                ),
                *(step for change in _CHANGES_IN_ORDER for step in (IncrementalAlterConfigs((change,)), _PRODUCED)),
            ),
            _ALTERED | judges("error", "log_append_time", of=Produce),
            cost=3,
        ),
        needs=_TOPICS,
    ),
    Requirement(
        id="configs/lists-are-appended-to",
        level=Level.MUST,
        text="IncrementalAlterConfigs with APPEND adds the items that a list does not have, and with SUBTRACT removes "
        "the first occurrence of each item. A list that is not set begins with the inherited value.",
        sources=(sources.KIP_339,),
        check=sequential(
            script(
                CreateTopic(),
                many(_unique(_LISTS).map(lambda change: (change, _SHOWN)), at_most=3),
                IncrementalAlterConfigs((("cleanup.policy", Operation.SET, "compact,delete"),)),
                IncrementalAlterConfigs((("cleanup.policy", Operation.SUBTRACT, "delete"),)),
                IncrementalAlterConfigs(((THROTTLED, Operation.APPEND, "0:1"),)),
                IncrementalAlterConfigs(((THROTTLED, Operation.SUBTRACT, "0:1"),)),
                IncrementalAlterConfigs(((THROTTLED, Operation.APPEND, "0:2,0:1"),)),
                Eventually(DescribeConfigs((THROTTLED,))),
                IncrementalAlterConfigs(((THROTTLED, Operation.SUBTRACT, "0:1,0:7"),)),
                Eventually(DescribeConfigs((THROTTLED,))),
                IncrementalAlterConfigs(((THROTTLED, Operation.SET, "0:1,0:2,0:1"),)),
                IncrementalAlterConfigs(((THROTTLED, Operation.SUBTRACT, "0:1"),)),
                Eventually(DescribeConfigs((THROTTLED,))),
                _SHOWN,
            ),
            _ALTERED | _DESCRIBED,
            cost=3,
        ),
        needs=_TOPICS,
    ),
    Requirement(
        id="configs/bad-change-changes-nothing",
        level=Level.MUST,
        text="An unknown setting, an illegal value, and a list operation on a setting that is not a list return "
        "INVALID_CONFIG. A setting that is named twice returns INVALID_REQUEST, and an unknown topic "
        "UNKNOWN_TOPIC_OR_PARTITION. No change of the request is applied.",
        sources=(sources.KIP_339, sources.PROTOCOL_ERRORS),
        check=sequential(
            script(
                CreateTopic(),
                many(_INVALID),
                IncrementalAlterConfigs((("retention.ms", Operation.SET, "5"),), topic="trial-none"),
                IncrementalAlterConfigs((("retention.ms", Operation.SET, "5"),), resource_type=ResourceType.UNKNOWN),
                IncrementalAlterConfigs((("retention.ms", Operation.SET, "soon"),)),
                *rejections.OPERATIONS,
                _SHOWN,
            ),
            _ALTERED | _DESCRIBED | _ERRORS,
            cost=2,
        ),
        needs=_TOPICS,
        since=KRAFT,
    ),
    Requirement(
        id="configs/bad-broker-change-is-rejected",
        level=Level.MUST,
        text="A change of a broker's settings returns INVALID_REQUEST if it names another broker, an unknown resource "
        "type or a read-only setting, if it names one setting or one resource twice, or if it has an illegal value.",
        sources=(sources.KIP_226, sources.KIP_339),
        check=sequential(script(CreateTopic(), *rejections.BROKER_CHANGES), _ERRORS),
        needs=_TOPICS,
        since=KRAFT,
    ),
    Requirement(
        id="configs/validate-only-changes-nothing",
        level=Level.MUST,
        text="IncrementalAlterConfigs and AlterConfigs with validate_only return the same response as without it, and "
        "change nothing.",
        sources=(sources.KIP_339, sources.KIP_133),
        check=sequential(
            script(
                CreateTopic(),
                many(
                    _SETTINGS.map(lambda pair: AlterConfigs((pair,), validate_only=True))
                    | _SETTINGS.map(
                        lambda pair: IncrementalAlterConfigs(((pair[0], Operation.SET, pair[1]),), validate_only=True)
                    ),
                    at_most=3,
                ),
                AlterConfigs((("retention.ms", "soon"),), validate_only=True),
                IncrementalAlterConfigs((("max.message.bytes", Operation.SET, "4000"),), validate_only=True),
                _SHOWN,
            ),
            _ALTERED | judges("error", of=AlterConfigs) | _DESCRIBED,
            cost=3,
        ),
        needs=_TOPICS,
        since=KRAFT,
    ),
    Requirement(
        id="configs/alter-configs-replaces-all",
        level=Level.SHOULD,
        text="AlterConfigs replaces all settings of a topic by the named ones: those that are not named are inherited "
        "again.",
        sources=(sources.KIP_133,),
        check=sequential(
            script(
                CreateTopic(),
                many(
                    st.lists(_SETTINGS, max_size=2, unique_by=lambda pair: pair[0])
                    .map(tuple)
                    .map(lambda found: (AlterConfigs(found), _SHOWN)),
                    at_most=3,
                ),
                AlterConfigs((("max.message.bytes", "3000"),)),
                _SHOWN,
                AlterConfigs((("max.message.bytes", "3000"),), topic="trial-none"),
            ),
            judges("error", of=AlterConfigs) | _DESCRIBED,
            cost=3,
        ),
        needs=_TOPICS,
    ),
    Requirement(
        id="configs/description-includes-sources",
        level=Level.MUST,
        text="DescribeConfigs returns the requested settings that exist, each with the source of its value and its "
        "synonyms by precedence down to the default, and since v3 with its type. An inherited setting has the value, "
        "source and synonyms of the broker's setting. An unknown topic returns UNKNOWN_TOPIC_OR_PARTITION.",
        sources=(sources.KIP_226, sources.KIP_133, sources.KIP_569),
        check=sequential(
            script(
                st.lists(_SETTINGS, max_size=2, unique_by=lambda pair: pair[0])
                .map(tuple)
                .map(lambda found: CreateTopic(configs=found)),
                many(_SETTING_NAMES.map(DescribeConfigs), at_most=3),
                IncrementalAlterConfigs((("max.message.bytes", Operation.SET, "6000"),)),
                _SHOWN,
                DescribeConfigs(_NAMES, topic="trial-none"),
                DescribeConfigs(_NAMES, resource_type=ResourceType.UNKNOWN),
                _with_broker(TOPIC),
                *_INHERITED,
            ),
            judges(
                "error", "set", "inherited", "synonyms_in_order", "not_inherited", "other_types", of=DescribeConfigs
            ),
            cost=2,
        ),
        needs=_TOPICS,
    ),
    Requirement(
        id="configs/documentation-is-returned-if-requested",
        level=Level.SHOULD,
        text="Since v3, DescribeConfigs returns the documentation of each setting of a topic if the request includes "
        "documentation, and otherwise null.",
        sources=(sources.KIP_569,),
        check=sequential(
            script(
                CreateTopic(),
                many(st.builds(DescribeConfigs, _SETTING_NAMES, with_documentation=st.booleans())),
                *(DescribeConfigs(_NAMES, with_documentation=wanted) for wanted in (True, False)),
            ),
            judges("error", "documented", of=DescribeConfigs),
        ),
        needs=_TOPICS,
        since="2.6.0",
    ),
    Requirement(
        id="configs/unknown-resource-is-not-described",
        level=Level.MUST,
        text="DescribeConfigs returns UNKNOWN_TOPIC_OR_PARTITION for a topic that does not exist, "
        "INVALID_TOPIC_EXCEPTION for an illegal name of a topic, and INVALID_REQUEST for a broker other than the one "
        "that receives the request. An error of one resource leaves the others. A resource type that does not exist "
        "returns INVALID_REQUEST.",
        sources=(sources.KIP_133, sources.KIP_226),
        check=sequential(script(CreateTopic(), *rejections.UNKNOWN_RESOURCES), _ERRORS),
        needs=_TOPICS,
        since=KRAFT,
    ),
    Requirement(
        id="configs/resources-are-listed",
        level=Level.MUST,
        text="ListConfigResources returns the resources of the requested types, or of all types: each topic, each "
        "broker, its loggers, and the client metrics and groups that have settings. Before v1 it returns client "
        "metrics only. A new topic and new client metrics are added, and deleted ones are removed.",
        sources=(sources.KIP_1000, sources.KIP_1142),
        check=sequential(
            script(
                CreateTopic(),
                OffsetCommit(1),
                _metrics(Operation.SET),
                _LISTED,
                _metrics(Operation.DELETE),
                DeleteTopic(),
                _LISTED,
            ),
            judges("differences", of=ListConfigResources),
        ),
        needs=_TOPICS,
    ),
    Requirement(
        id="configs/defaults-are-those-of-kafka",
        level=Level.SHOULD,
        text="A setting whose source is DEFAULT_CONFIG has the default of Apache Kafka's documentation.",
        sources=(sources.TOPIC_CONFIGS, sources.KIP_226),
        check=sequential(script(*_INHERITED), judges("error", "other_defaults", of=DescribeConfigs)),
        needs=_TOPICS,
    ),
    Requirement(
        id="configs/described-defaults-are-applied",
        level=Level.MUST,
        text="A broker applies the defaults that DescribeConfigs returns for it to every topic without settings. A "
        "batch of message.max.bytes is accepted, and a larger one is not. A record needs a key only if "
        "log.cleanup.policy contains compact. Batches are stored according to compression.type and "
        "log.message.timestamp.type. A timestamp is accepted if it is within log.message.timestamp.before.max.ms and "
        "log.message.timestamp.after.max.ms, and otherwise rejected with INVALID_TIMESTAMP. The values that "
        "DescribeConfigs returns for such a topic are applied in the same way.",
        sources=(sources.TOPIC_CONFIGS, sources.KIP_226, sources.KIP_937),
        check=sequential(script(UseDefaults()), judges("error", "not_applied", of=UseDefaults)),
        needs=_TOPICS,
    ),
    Requirement(
        id="configs/described-default-numbers-are-used",
        level=Level.SHOULD,
        text="CreateTopics with partition count -1 and replication factor -1 uses the values of num.partitions and "
        "default.replication.factor that DescribeConfigs returns for a broker. Since v5 its response has these "
        "numbers.",
        sources=(sources.KIP_464, sources.KIP_525),
        check=sequential(script(UseDefaults()), judges("error", "other_numbers", of=UseDefaults)),
        needs=_TOPICS,
    ),
    Requirement(
        id="configs/described-switches-are-applied",
        level=Level.MUST,
        text="A broker applies the values of auto.create.topics.enable and delete.topic.enable that DescribeConfigs "
        "returns for it. A Metadata request with allow_auto_topic_creation creates a topic if and only if the first "
        "value is true, and DeleteTopics returns TOPIC_DELETION_DISABLED if and only if the second value is false.",
        sources=(sources.KIP_226, sources.KIP_322, sources.KIP_4_METADATA),
        check=sequential(script(UseSettings()), judges("error", "not_applied", of=UseSettings)),
        needs=_TOPICS,
    ),
    Requirement(
        id="configs/brokers-describe-themselves",
        level=Level.SHOULD,
        text="The settings that DescribeConfigs returns for a broker are its own: node.id and broker.id are its id, "
        "advertised.listeners contains the address that Metadata returns for it, and log.dirs contains the log "
        "directories that DescribeLogDirs returns.",
        sources=(sources.KIP_226, sources.KIP_113),
        check=sequential(script(UseSettings()), judges("error", "differences", of=UseSettings)),
        needs=_TOPICS,
    ),
)
