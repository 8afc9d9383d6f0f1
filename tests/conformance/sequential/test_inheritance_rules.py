"""Rules for described settings of a topic and its broker: inherited values, Kafka's defaults and Kafka's types.

A contradiction is named; the settings of a correct broker have none.
"""

from types import SimpleNamespace

import pytest
from kio.schema.errors import ErrorCode

from conformance.sequential.admin_responses import NORMALISERS
from conformance.sequential.inheritance_rules import (
    BROKER_PROPERTIES,
    TOPIC_PROPERTIES,
    is_same_value,
    not_inherited,
    other_defaults,
    other_types,
)
from conformance.sequential.steps import DescribeConfigs, ResourceType
from reference_broker.core.configuration.configuration import BrokerConfiguration
from reference_broker.core.configuration.keys import BROKER_CONFIG_KEYS, TOPIC_CONFIG_KEYS

TOPIC, DYNAMIC, STATIC = 1, 3, 4
"""Values of `config_source`: DYNAMIC is DYNAMIC_DEFAULT_BROKER_CONFIG."""


def setting(name, value, source, synonyms):
    return SimpleNamespace(
        name=name,
        value=value,
        config_source=source,
        synonyms=tuple(SimpleNamespace(name=n, value=v, source=s) for n, v, s in synonyms),
    )


def entries(names, of):
    found = [(of.entry(name), of.synonyms(name)) for name in names]
    return [
        setting(entry.name, entry.value, entry.source, [(each.name, each.value, each.source) for each in synonyms])
        for entry, synonyms in found
    ]


def described(properties, dynamic=(), overrides=()):
    """Return the settings of a topic and of its broker, as the reference broker describes them."""
    configuration = BrokerConfiguration(properties)
    configuration.set_dynamic({}, dict(dynamic))
    return entries(TOPIC_PROPERTIES, configuration.topic(dict(overrides))), entries(BROKER_PROPERTIES, configuration)


CONFIGURATIONS = [
    {},
    {"log.retention.hours": "24"},
    {"log.retention.minutes": "5", "log.retention.hours": "24"},
    {"log.retention.ms": "1000", "log.retention.minutes": "5"},
    {"log.retention.hours": "-1"},
    {"log.roll.hours": "1", "log.roll.jitter.hours": "1"},
    {"log.roll.ms": "1000", "log.roll.jitter.ms": "10", "log.flush.interval.ms": "1000"},
    {"log.flush.scheduler.interval.ms": "3000"},
    {"log.cleanup.policy": "compact,delete", "compression.type": "zstd", "min.insync.replicas": "2"},
    {"log.cleaner.min.cleanable.ratio": "0.50", "log.preallocate": "true", "log.segment.bytes": "1048576"},
]


@pytest.mark.parametrize("properties", CONFIGURATIONS, ids=str)
@pytest.mark.parametrize(
    "overrides", [{}, {"retention.ms": "5", "segment.ms": "7", "cleanup.policy": "compact"}], ids=str
)
@pytest.mark.parametrize("dynamic", [{}, {"log.retention.ms": "77", "log.segment.bytes": "2097152"}], ids=str)
def test_no_configuration_of_a_correct_broker_is_a_contradiction(properties, overrides, dynamic):
    topic, broker = described(properties, dynamic, overrides)
    assert not_inherited(topic, broker) == ()
    assert other_defaults(topic, broker) == ()


def test_every_property_of_the_rules_is_a_property_of_a_broker():
    assert BROKER_CONFIG_KEYS.keys() >= {*BROKER_PROPERTIES}


@pytest.mark.parametrize(
    ("properties", "name", "changes", "expected"),
    [
        ({}, "retention.ms", {"value": "86400000"}, "retention.ms 86400000, but log.retention.ms is None"),
        (
            {"log.roll.hours": "1"},
            "segment.ms",
            {"value": "604800000"},
            "segment.ms 604800000, but log.roll.ms is None",
        ),
        ({}, "cleanup.policy", {"value": "compact"}, "cleanup.policy compact, but log.cleanup.policy is delete"),
        ({}, "preallocate", {"config_source": STATIC}, "source of preallocate STATIC_BROKER_CONFIG, but that of"),
        ({}, "segment.bytes", {"synonyms": ()}, "synonyms of segment.bytes [], but those of log.segment.bytes are ["),
    ],
)
def test_a_setting_that_is_not_that_of_the_broker_is_named(properties, name, changes, expected):
    topic, broker = described(properties)
    altered = [SimpleNamespace(**vars(each) | changes) if each.name == name else each for each in topic]
    (text,) = not_inherited(altered, broker)
    assert text.startswith(expected)


def test_the_synonyms_of_a_setting_of_the_topic_are_compared_too():
    topic, broker = described({}, overrides={"segment.bytes": "2097152"})
    (own,) = (each for each in topic if each.name == "segment.bytes")
    assert own.config_source == TOPIC
    own.synonyms = own.synonyms[:1]
    (text,) = not_inherited(topic, broker)
    assert text.startswith("synonyms of segment.bytes []")


def test_a_setting_that_the_broker_does_not_describe_is_not_judged():
    topic, broker = described({})
    topic[0].value, topic[0].config_source = "any", DYNAMIC
    assert not_inherited(topic, [each for each in broker if each.name != "log.cleanup.policy"]) == ()


def test_a_default_that_is_not_that_of_kafka_is_named():
    topic, broker = described({})
    for config in [*topic, *broker]:
        if config.name in {"retention.ms", "log.retention.hours"}:
            config.value = "24"
    assert other_defaults(topic, broker) == (
        "log.retention.hours 24 DEFAULT_CONFIG, but the default is 168",
        "retention.ms 24 DEFAULT_CONFIG, but the default is 604800000",
    )


@pytest.mark.parametrize(
    ("text", "other", "same"),
    [
        ("5", " 5 ", True),
        ("-5", "-1", True),
        ("0.5", "0.50", True),
        ("TRUE", "true", True),
        ("compact,delete", "compact, delete", True),
        ("delete,compact", "compact,delete", False),
        (str(2**63 - 1), str(2**63 - 2), False),
        (None, "0", False),
        (None, None, True),
    ],
)
def test_the_same_value_may_be_written_in_several_ways(text, other, same):
    assert is_same_value(text, other) is same


@pytest.mark.parametrize(
    ("name", "number", "found"),
    [
        ("retention.ms", 5, ()),
        ("retention.ms", 2, ("retention.ms of type STRING, not LONG",)),
        ("cleanup.policy", 99, ("cleanup.policy of type 99, not LIST",)),
        ("no.such.property", 99, ()),
    ],
)
def test_each_setting_has_kafkas_type(name, number, found):
    assert other_types([SimpleNamespace(name=name, config_type=number), SimpleNamespace(name=name)]) == found


def test_each_topic_property_of_the_reference_broker_has_kafkas_type():
    types = [SimpleNamespace(name=name, config_type=key.type) for name, key in TOPIC_CONFIG_KEYS.items()]
    assert {*TOPIC_PROPERTIES} <= {each.name for each in types}
    assert other_types(types) == ()


def result(kind, error=ErrorCode.none):
    return SimpleNamespace(resource_type=int(kind), error_code=error, configs=())


@pytest.mark.parametrize(
    ("results", "expected"),
    [
        (
            [result(ResourceType.TOPIC), result(ResourceType.BROKER)],
            {"error": "NONE", "not_inherited": (), "other_defaults": (), "other_types": ()},
        ),
        (
            [result(ResourceType.TOPIC), result(ResourceType.BROKER, ErrorCode.cluster_authorization_failed)],
            {"error": "NONE"},
        ),
        (
            [result(ResourceType.TOPIC)],
            {"malformed": "1 results in the response, where a topic and a broker were requested"},
        ),
    ],
    ids=["both", "not authorised", "topic alone"],
)
def test_a_response_has_the_topic_and_the_broker(results, expected):
    step = DescribeConfigs(TOPIC_PROPERTIES, broker=1)
    assert NORMALISERS[DescribeConfigs](step, SimpleNamespace(results=results), None) == expected
