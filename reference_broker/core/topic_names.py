"""Validation of topic names, and collisions of names in metrics (KAFKA-1481).

Follows: org.apache.kafka.common.internals.Topic.
"""

import string

TOPIC_NAME_LENGTH_MAX = 249
_LEGAL = frozenset(string.ascii_letters + string.digits + "._-")

CLUSTER_METADATA_TOPIC = "__cluster_metadata"
CONSUMER_OFFSETS_TOPIC = "__consumer_offsets"
TRANSACTION_STATE_TOPIC = "__transaction_state"
INTERNAL_TOPICS = frozenset({CONSUMER_OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC})


def illegal_topic_name(name: str) -> str | None:
    """Return Kafka's message for an invalid name; null for a valid name."""
    reason = None
    if not name:
        reason = "the empty string is not allowed"
    elif name in {".", ".."}:
        reason = f"'{name}' is not allowed"
    elif len(name) > TOPIC_NAME_LENGTH_MAX:
        reason = f"the length of '{name}' is longer than the max allowed length {TOPIC_NAME_LENGTH_MAX}"
    elif not _LEGAL.issuperset(name):
        reason = f"'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
    return None if reason is None else f"Topic name is invalid: {reason}"


def collision_key(name: str) -> str:
    """Return the name with underscores for periods, as in metric names. Topics with equal keys collide."""
    return name.replace(".", "_")
