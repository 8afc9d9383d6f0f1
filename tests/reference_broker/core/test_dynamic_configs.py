"""Dynamic configurations. The responses are those of Apache Kafka 4.3.1 to the same requests."""

import pytest
from kio.schema.errors import ErrorCode

from tests.reference_broker.cluster import CONTROLLER, Cluster

SET, DELETE, APPEND, SUBTRACT = range(4)
TOPIC, BROKER = 2, 4
PROPAGATION_MS = 100


@pytest.fixture(scope="module")
def cluster():
    cluster = Cluster(3, min_insync_replicas="2")
    cluster.run_until(lambda: all(node.is_ready for node in cluster.nodes.values()))
    cluster.request(1, "CreateTopics", 7, topics=[{"name": "orders", "num_partitions": 1, "replication_factor": 3}])
    return cluster


def alter(cluster, resources, node_id=1, api="IncrementalAlterConfigs", validate_only=False, **fields):
    """Alter the properties of resources, and return (error, message) of each resource.

    :param resources: (type, name, changes) of each resource; each change is (property, operation, value).
    """
    requested = [
        {
            "resource_type": kind,
            "resource_name": name,
            "configs": [
                {"name": config, "value": value}
                | ({"config_operation": operation} if api == "IncrementalAlterConfigs" else {})
                for config, operation, value in changes
            ],
        }
        for kind, name, changes in resources
    ]
    response = cluster.request(node_id, api, 1, resources=requested, validate_only=validate_only, **fields)
    cluster.run(PROPAGATION_MS)
    return [(result.error_code, result.error_message) for result in response.responses]


def described(cluster, kind, resource, *names, node_id=1):
    """Return the properties with `value source`, followed by `synonym=value source` in order of precedence.

    The sources are those of DescribeConfigs: 1 topic, 2 broker, 3 default of all brokers, 4 static, 5 default of Kafka.
    """
    requested = {"resource_type": kind, "resource_name": resource, "configuration_keys": names or None}
    [result] = cluster.request(node_id, "DescribeConfigs", 4, resources=[requested], include_synonyms=True).results
    assert result.error_code == ErrorCode.none
    return {
        entry.name: [
            f"{entry.value} {entry.config_source}",
            *(f"{synonym.name}={synonym.value} {synonym.source}" for synonym in entry.synonyms),
        ]
        for entry in result.configs
    }


OK = (ErrorCode.none, None)


def bad_config(message):
    return ErrorCode.invalid_config, message


def bad_request(message):
    return ErrorCode.invalid_request, message


def read_only(name):
    return bad_request(f"Cannot update these configs dynamically: [{name}]")


def invalid(name, value, reason):
    return bad_config(f"Invalid value {value} for configuration {name}: {reason}")


THROTTLED = "leader.replication.throttled.replicas"
CODECS = "uncompressed, zstd, lz4, snappy, gzip, producer"


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("retention.ms", "abc", invalid("retention.ms", "abc", "Not a number of type LONG")),
        ("retention.ms", "1.5", invalid("retention.ms", "1.5", "Not a number of type LONG")),
        ("retention.ms", "1_000", invalid("retention.ms", "1_000", "Not a number of type LONG")),
        ("retention.ms", "\u2003 5", invalid("retention.ms", "\u2003 5", "Not a number of type LONG")),
        ("retention.ms", "", invalid("retention.ms", "", "Not a number of type LONG")),
        ("retention.ms", "-2", invalid("retention.ms", "-2", "Value must be at least -1")),
        ("retention.ms", None, bad_request("Null value not supported for : retention.ms")),
        ("min.insync.replicas", "0", invalid("min.insync.replicas", "0", "Value must be at least 1")),
        ("min.insync.replicas", f"{2**31}", invalid("min.insync.replicas", 2**31, "Not a number of type INT")),
        ("segment.bytes", "14", invalid("segment.bytes", "14", "Value must be at least 1048576")),
        ("min.cleanable.dirty.ratio", "2", invalid("min.cleanable.dirty.ratio", "2.0", "Value must be no more than 1")),
        ("preallocate", "yes", invalid("preallocate", "yes", "Expected value to be either true or false")),
        ("compression.type", "GZIP", invalid("compression.type", "GZIP", f"String must be one of: {CODECS}")),
        ("cleanup.policy", "delete,x", invalid("cleanup.policy", "x", "String must be one of: compact, delete")),
        ("cleanup.policy", "delete,", bad_config("Configuration 'cleanup.policy' values must not be empty.")),
        (
            "compression.gzip.level",
            "0",
            invalid("compression.gzip.level", "0", "Value must be between 1 and 9 or equal to -1"),
        ),
        (
            THROTTLED,
            "x",
            invalid(
                THROTTLED,
                "[x]",
                f"{THROTTLED} must be the literal '*' or a list of replicas in the following format: "
                "[partitionId]:[brokerId],[partitionId]:[brokerId],...",
            ),
        ),
        ("no.such", "1", bad_config("Unknown topic config name: no.such")),
        (
            "remote.storage.enable",
            "true",
            bad_config(
                "Tiered Storage functionality is disabled in the broker. Topic cannot be configured with remote log "
                "storage."
            ),
        ),
    ],
)
def test_invalid_topic_values_are_rejected(cluster, name, value, expected):
    assert alter(cluster, [(TOPIC, "orders", [(name, SET, value)])]) == [expected]


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("retention.ms", " 5 ", "5"),
        ("retention.ms", "\x005\x1f", "5"),
        ("segment.ms", "+7", "7"),
        ("segment.ms", "0010", "10"),
        ("preallocate", "TRUE", "true"),
        ("cleanup.policy", " delete , compact ", "delete,compact"),
        ("cleanup.policy", "delete,delete", "delete"),
        ("cleanup.policy", "", ""),
        ("min.cleanable.dirty.ratio", "1e-1", "0.1"),
        (THROTTLED, "0:1,1:2", "0:1,1:2"),
        (THROTTLED, "*", "*"),
    ],
)
def test_values_are_described_in_canonical_form(cluster, name, value, shown):
    assert alter(cluster, [(TOPIC, "orders", [(name, SET, value)])]) == [OK]
    assert described(cluster, TOPIC, "orders", name)[name][:2] == [f"{shown} 1", f"{name}={shown} 1"]
    assert alter(cluster, [(TOPIC, "orders", [(name, DELETE, None)])]) == [OK]


def test_lists_are_appended_to_and_subtracted_from(cluster):
    def policy(operation, value):
        assert alter(cluster, [(TOPIC, "orders", [("cleanup.policy", operation, value)])]) == [OK]
        return described(cluster, TOPIC, "orders", "cleanup.policy")["cleanup.policy"][0]

    assert policy(APPEND, "compact") == "delete,compact 1"  # the list starts with the default
    assert policy(APPEND, "compact") == "delete,compact 1"
    assert policy(SUBTRACT, "delete") == "compact 1"
    assert policy(DELETE, None) == "delete 5"
    assert alter(cluster, [(TOPIC, "orders", [("retention.ms", APPEND, "5")])]) == [
        bad_config("Can't APPEND to key retention.ms because its type is not LIST.")
    ]


def test_properties_are_validated_together(cluster):
    lags = [("min.compaction.lag.ms", SET, "6"), ("max.compaction.lag.ms", SET, "5")]
    conflict = bad_config("conflict topic config setting min.compaction.lag.ms (6) > max.compaction.lag.ms (5)")
    assert alter(cluster, [(TOPIC, "orders", lags)]) == [conflict]
    assert alter(cluster, [(TOPIC, "orders", lags[:1])]) == [OK]
    assert alter(cluster, [(TOPIC, "orders", lags[1:])]) == [conflict]
    assert alter(cluster, [(TOPIC, "orders", [("min.compaction.lag.ms", DELETE, None)])]) == [OK]


def test_alter_configs_replaces_all_properties(cluster):
    assert alter(cluster, [(TOPIC, "orders", [("retention.ms", SET, "1"), ("segment.ms", SET, "2")])]) == [OK]
    assert alter(cluster, [(TOPIC, "orders", [("retention.ms", SET, "3")])], api="AlterConfigs") == [OK]
    found = described(cluster, TOPIC, "orders")
    assert {name for name, shown in found.items() if shown[0].endswith(" 1")} == {"retention.ms"}
    assert alter(cluster, [(TOPIC, "orders", [])], api="AlterConfigs") == [OK]


@pytest.mark.parametrize("api", ["IncrementalAlterConfigs", "AlterConfigs"])
def test_validate_only_changes_nothing(cluster, api):
    before = [node.metadata.image.records() for node in cluster.nodes.values()]
    changes = [("retention.ms", SET, "77")]
    assert alter(cluster, [(TOPIC, "orders", changes)], api=api, validate_only=True) == [OK]
    assert [node.metadata.image.records() for node in cluster.nodes.values()] == before


RETENTION = [("retention.ms", SET, "5")]


@pytest.mark.parametrize(
    ("resource", "expected"),
    [
        ((TOPIC, "nowhere", RETENTION), (ErrorCode.unknown_topic_or_partition, "The topic 'nowhere' does not exist.")),
        ((TOPIC, "", RETENTION), bad_request("Default topic resources are not allowed.")),
        ((TOPIC, "nowhere", [("no.such", SET, "1")]), bad_config("Unknown topic config name: no.such")),
        ((TOPIC, "orders", RETENTION * 2), bad_request("Error due to duplicate config keys")),
        ((TOPIC, "orders", [("retention.ms", 9, "5")]), (ErrorCode.unknown_server_error, None)),
        ((BROKER, "2", RETENTION), bad_request("Unexpected broker id, expected 1, but received 2")),
        ((BROKER, "x", RETENTION), bad_request("Node id must be an integer, but it is: x")),
        ((3, "c", RETENTION), bad_request("Unknown resource type 3")),
        ((BROKER, "1", [("node.id", SET, "4")]), read_only("node.id")),
        ((BROKER, "1", [("broker.id", SET, "4")]), read_only("broker.id")),
        ((BROKER, "", [("queued.max.requests", SET, "4")]), read_only("queued.max.requests")),
        ((BROKER, "", [("num.partitions", SET, "3")]), read_only("num.partitions")),
        (
            (BROKER, "1", [("log.retention.ms", SET, "x")]),
            bad_request("Invalid value x for configuration log.retention.ms: Not a number of type LONG"),
        ),
        (
            (BROKER, "1", [("log.retention.ms", APPEND, "5")]),
            bad_config("Config value append is not allowed for config key: log.retention.ms"),
        ),
    ],
)
def test_invalid_changes_are_rejected(cluster, resource, expected):
    assert alter(cluster, [resource]) == [expected]


def test_errors_of_broker_and_controller_are_in_one_response(cluster):
    assert alter(
        cluster,
        [
            (BROKER, "2", RETENTION),
            (TOPIC, "orders", [("retention.ms", SET, "8")]),
            (TOPIC, "nowhere", RETENTION),
            (BROKER, "1", [("node.id", SET, "4")]),
        ],
    ) == [
        bad_request("Unexpected broker id, expected 1, but received 2"),
        OK,
        (ErrorCode.unknown_topic_or_partition, "The topic 'nowhere' does not exist."),
        read_only("node.id"),
    ]
    assert described(cluster, TOPIC, "orders", "retention.ms")["retention.ms"][0] == "8 1"
    assert alter(cluster, [(TOPIC, "orders", [("retention.ms", DELETE, None)])]) == [OK]


@pytest.mark.parametrize("api", ["IncrementalAlterConfigs", "AlterConfigs"])
def test_a_response_without_a_controller_covers_every_resource(api):
    """Kafka's `ConfigAdminManager` combines the error of the forwarded request with those of the broker."""
    cluster = Cluster(2, roles={1: "broker", 2: "controller"})
    cluster.run_until(lambda: all(node.is_ready for node in cluster.nodes.values()))
    cluster.kill(2)
    resources = [(TOPIC, "orders", RETENTION), (BROKER, "2", RETENTION), (TOPIC, "others", RETENTION)]
    assert alter(cluster, resources, api=api, within_ms=120_000) == [
        (ErrorCode.request_timed_out, None),
        bad_request("Unexpected broker id, expected 1, but received 2"),
        (ErrorCode.request_timed_out, None),
    ]


def test_the_controller_rejects_duplicate_resources(cluster):
    controller = cluster.active_controller
    resources = [(TOPIC, "orders", RETENTION)] * 2
    assert alter(cluster, resources, controller, listener=CONTROLLER) == [bad_request("Duplicate resource.")]
    once_each = bad_request("Each resource must appear at most once.")
    assert alter(cluster, resources) == [once_each] * 2


@pytest.mark.parametrize("name", ["x", "0_1", " 1", str(2**32)])
def test_the_controller_rejects_a_broker_name_that_is_no_integer(cluster, name):
    resources = [(BROKER, name, [("log.retention.ms", SET, "5")])]
    expected = [bad_request("Unable to parse broker name as a base 10 number.")]
    assert alter(cluster, resources, cluster.active_controller, listener=CONTROLLER) == expected


def test_properties_of_one_broker_take_precedence_over_those_of_all(cluster):
    assert alter(cluster, [(BROKER, "", [("log.retention.ms", SET, "111")])]) == [OK]
    assert alter(cluster, [(BROKER, "1", [("log.retention.ms", SET, "222")])]) == [OK]
    everywhere = ["log.retention.ms=111 3", "log.retention.hours=168 5"]
    of_1, of_2 = (described(cluster, BROKER, str(node), "log.retention.ms", node_id=node) for node in (1, 2))
    assert of_1["log.retention.ms"] == ["222 2", "log.retention.ms=222 2", *everywhere]
    assert of_2["log.retention.ms"] == ["111 3", *everywhere]
    assert described(cluster, BROKER, "")["log.retention.ms"] == ["111 3", "log.retention.ms=111 3"]
    assert described(cluster, TOPIC, "orders", "retention.ms")["retention.ms"][0] == "222 2"
    for name in ("", "1"):
        assert alter(cluster, [(BROKER, name, [("log.retention.ms", DELETE, None)])]) == [OK]
    assert described(cluster, BROKER, "") == {}


def test_unknown_properties_are_sensitive(cluster):
    assert alter(cluster, [(BROKER, "1", [("my.plugin.password", SET, "hush")])]) == [OK]
    assert described(cluster, BROKER, "1", "my.plugin.password") == {
        "my.plugin.password": ["None 2", "my.plugin.password=None 2"]
    }
    assert alter(cluster, [(BROKER, "1", [("my.plugin.password", DELETE, None)])]) == [OK]


def test_changes_apply_to_partitions_at_once(cluster):
    def min_insync_replicas():
        found = {cluster.nodes[node].broker.replicas.get("orders", 0).min_insync_replicas for node in (1, 2, 3)}
        return found.pop() if len(found) == 1 else found

    assert min_insync_replicas() == 2
    assert alter(cluster, [(BROKER, "", [("min.insync.replicas", SET, "1")])]) == [OK]
    assert min_insync_replicas() == 1
    assert alter(cluster, [(TOPIC, "orders", [("min.insync.replicas", SET, "3")])]) == [OK]
    assert min_insync_replicas() == 3
    assert alter(cluster, [(TOPIC, "orders", [("min.insync.replicas", DELETE, None)])]) == [OK]
    assert alter(cluster, [(BROKER, "", [("min.insync.replicas", DELETE, None)])]) == [OK]
    assert min_insync_replicas() == 2


def test_dynamic_properties_survive_a_restart(cluster):
    assert alter(cluster, [(BROKER, "3", [("log.retention.ms", SET, "333")])], node_id=3) == [OK]
    cluster.stop(3)
    cluster.start(3)
    cluster.run_until(lambda: cluster.nodes[3].is_ready)
    assert described(cluster, BROKER, "3", "log.retention.ms", node_id=3)["log.retention.ms"][0] == "333 2"
