"""Five requests to which Apache Kafka and the reference broker respond differently (docs/findings.md).

    python examples/clients/different_responses.py apache-kafka:4.3.1

Prints each request with the errors of its response. A line with `!` shows a value that differs from the expected one.
The program creates a topic and deletes it at the end. No other request changes anything.
"""

from kafkatrial.suite import activate

activate()

from conformance.sequential.program import show  # noqa: E402
from conformance.sequential.steps import ApiKey, Broker, CreateTopic, RawRequest, Script  # noqa: E402

BROKER = 4
CHANGES = ({"name": "message.max.bytes", "value": "1048588"},)
WHOLE_CLUSTER = {"resource_type": BROKER, "resource_name": "", "configs": CHANGES}
FIRST_BROKER = {"resource_type": BROKER, "resource_name": Broker(1), "configs": CHANGES}
PARTITION = {"partition_index": 0, "current_leader_epoch": -1, "timestamp": -1}
TOPIC = {"name": "trial", "partitions": (PARTITION, PARTITION)}
SESSION_OF_NO_SHARD = 2_147_483_640
FETCH = {
    "replica_id": -1,
    "max_wait_ms": 0,
    "min_bytes": 0,
    "max_bytes": 1 << 20,
    "isolation_level": 0,
    "session_id": SESSION_OF_NO_SHARD,
    "session_epoch": 1,
    "topics": (),
    "forgotten_topics_data": (),
}

SCRIPT = Script(
    (
        CreateTopic(),
        RawRequest(
            ApiKey.CREATE_PARTITIONS,
            {"topics": ({"name": "trial", "count": 10_002, "assignments": None},), "validate_only": True},
            ("POLICY_VIOLATION",),
        ),
        RawRequest(ApiKey.ALTER_CONFIGS, {"resources": (WHOLE_CLUSTER,), "validate_only": True}, ("NONE",)),
        RawRequest(
            ApiKey.ALTER_CONFIGS,
            {"resources": (FIRST_BROKER, FIRST_BROKER), "validate_only": True},
            ("INVALID_REQUEST", "INVALID_REQUEST"),
        ),
        RawRequest(
            ApiKey.LIST_OFFSETS,
            {"replica_id": -1, "isolation_level": 0, "topics": (TOPIC,)},
            ("INVALID_REQUEST",),
            version=7,
        ),
        RawRequest(ApiKey.FETCH, FETCH, ("FETCH_SESSION_ID_NOT_FOUND",), version=12),
    ),
)

if __name__ == "__main__":
    show(SCRIPT, requirement="docs/findings.md", target="reference", nodes=1)
