"""What brokers are examined in about properties, of theirs and of topics, at the listener for clients.

Sources: `ConfigAdminManager` and `ConfigurationControlManager` of Kafka 4.3, KIP-133, KIP-226, KIP-339.
"""

from typing import Any, Final

from chaos.simulation.clients.process import Sleep
from chaos.simulation.examination.exam import (
    HEARD_MS,
    NOBODY,
    NONE,
    NOWHERE,
    Exam,
    Facts,
    Whom,
    always,
    schema_for_clients,
)
from fixtures.clients.messages import ApiKey
from fixtures.clients.requests import fitted

_TOPIC, _BROKER, _NOTHING = 2, 4, 99
_SET, _DELETE, _APPEND, _SUBTRACT = range(4)
_PROPERTY, _VALUE = "message.max.bytes", "1048588"
"""Kafka's default, so that setting it changes nothing."""
_REPLICAS: Final = "follower.replication.throttled.replicas"
"""A list of which nothing comes where nothing is throttled."""
_TOO_LONG: Final = "x" * 32_768
Change = tuple[str, int, str | None]
"""A property, what is done to it, and a value."""


def _altered(api_key: ApiKey, *resources: tuple[int, str, list[Change]], keep: bool = True) -> Any:
    schema = schema_for_clients(api_key)
    request = schema.AlterConfigsRequest if api_key == ApiKey.ALTER_CONFIGS else schema.IncrementalAlterConfigsRequest
    return request(
        resources=tuple(
            schema.AlterConfigsResource(
                resource_type=kind,
                resource_name=name,
                configs=tuple(
                    fitted(schema.AlterableConfig, name=key, config_operation=operation, value=value)
                    for key, operation, value in changes
                ),
            )
            for kind, name, changes in resources
        ),
        validate_only=keep,
    )


def _brokers_settings(api_key: ApiKey) -> Any:
    fine: list[Change] = [(_PROPERTY, _SET, _VALUE)]

    def make(facts: Facts) -> Any:
        own = str(facts.broker)
        asked: list[tuple[str, list[Change]]] = [
            ("", fine), (own, fine), (str(NOBODY), fine), ("abc", fine), ("-1", fine), (own, [("node.id", _SET, "7")]),
            (own, [("log.dirs", _SET, "/x")]), (own, [(_PROPERTY, _SET, "-5")]), (own, [(_PROPERTY, _SET, None)]),
            (own, fine * 2), (own, [("plug.in", _SET, "x")]), (own, []),
        ]  # fmt: skip
        return [
            *(_altered(api_key, (_BROKER, name, changes)) for name, changes in asked),
            _altered(api_key, *((_BROKER, own, fine),) * 2),
            _altered(api_key, (_NOTHING, own, fine), (_BROKER, own, fine)),
        ]

    return make


_OF_BROKERS_SETTINGS: Final = [
    *(NONE, NONE, *("INVALID_REQUEST",) * 3, "INVALID_REQUEST"),
    *("INVALID_REQUEST",) * 4,
    *(NONE, NONE, "INVALID_REQUEST", "INVALID_REQUEST", "INVALID_REQUEST", NONE),
]


def _operations(facts: Facts) -> Any:
    own = str(facts.broker)
    asked: list[tuple[int, str, list[Change]]] = [
        (_BROKER, own, [(_PROPERTY, _APPEND, "1")]), (_BROKER, own, [(_PROPERTY, 7, "1")]),
        (_BROKER, own, [(_PROPERTY, _DELETE, None)]), (_BROKER, own, [("log.cleanup.policy", _APPEND, "compact")]),
        (_TOPIC, facts.topic, [("cleanup.policy", _APPEND, "compact")]),
        (_TOPIC, facts.topic, [("retention.ms", _SUBTRACT, "1")]),
        (_TOPIC, facts.topic, [("no.such.property", _SET, "1")]),
        (_TOPIC, facts.topic, [("no.such.property", _DELETE, None)]),
        (_TOPIC, facts.topic, [("retention.ms", _SET, "5"), ("retention.ms", _DELETE, None)]),
        (_TOPIC, facts.topic, [("min.compaction.lag.ms", _SET, "5"), ("max.compaction.lag.ms", _SET, "4")]),
        (_TOPIC, NOWHERE, [("retention.ms", _SET, "5")]), (_TOPIC, ".", [("retention.ms", _SET, "5")]),
        (_TOPIC, "", [("retention.ms", _SET, "5")]),
        (_TOPIC, facts.topic, [(_REPLICAS, _SET, _TOO_LONG)]),
    ]  # fmt: skip
    return [_altered(ApiKey.INCREMENTAL_ALTER_CONFIGS, each) for each in asked]


_OF_OPERATIONS: Final = [
    *("INVALID_CONFIG", "INVALID_REQUEST", NONE, NONE, NONE, "INVALID_CONFIG", "INVALID_CONFIG", NONE),
    *("INVALID_REQUEST", "INVALID_CONFIG", "UNKNOWN_TOPIC_OR_PARTITION", "INVALID_TOPIC_EXCEPTION"),
    *("INVALID_REQUEST", "INVALID_CONFIG"),
]


def _lists(facts: Facts) -> Any:
    changes: list[Change] = [
        (_REPLICAS, _SET, "nobody"),
        (_REPLICAS, _SUBTRACT, "0:1"),
        (_REPLICAS, _APPEND, "0:1"),
        (_REPLICAS, _APPEND, "0:2,0:1"),
        (_REPLICAS, _SUBTRACT, "0:1,0:7"),
        (_REPLICAS, _DELETE, None),
    ]
    resources = [(_TOPIC, facts.topic, [change]) for change in changes]
    return [_altered(ApiKey.INCREMENTAL_ALTER_CONFIGS, resource, keep=False) for resource in resources]


def _set_and_unset(facts: Facts) -> Any:
    own, schema = str(facts.broker), schema_for_clients(ApiKey.DESCRIBE_CONFIGS)
    resource = schema.DescribeConfigsResource(resource_type=_BROKER, resource_name=own, configuration_keys=(_PROPERTY,))
    told = fitted(schema.DescribeConfigsRequest, resources=(resource,), include_synonyms=True)
    return [
        request
        for name in (own, "")
        for request in (
            _altered(ApiKey.INCREMENTAL_ALTER_CONFIGS, (_BROKER, name, [(_PROPERTY, _SET, _VALUE)]), keep=False),
            Sleep(HEARD_MS),
            told,
            _altered(ApiKey.ALTER_CONFIGS, (_BROKER, name, []), keep=False),
            Sleep(HEARD_MS),
            told,
        )
    ]


EXAMS: Final = (
    Exam(
        "settings of brokers",
        Whom.BROKER,
        _brokers_settings(ApiKey.INCREMENTAL_ALTER_CONFIGS),
        always(*_OF_BROKERS_SETTINGS),
    ),
    Exam(
        "all settings of brokers",
        Whom.BROKER,
        _brokers_settings(ApiKey.ALTER_CONFIGS),
        always(*_OF_BROKERS_SETTINGS),
    ),
    Exam("operations on settings", Whom.BROKER, _operations, always(*_OF_OPERATIONS)),
    Exam("lists", Whom.BROKER, _lists, always("INVALID_CONFIG", *(NONE,) * 5)),
    Exam("a setting of a broker, of all, and back", Whom.BROKER, _set_and_unset, always(*(NONE,) * 8)),
)
