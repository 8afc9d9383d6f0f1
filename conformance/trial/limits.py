"""Limits for the values of a saved trial. Values beyond them would fail in a run, or cause unbounded work."""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Final

from conformance.trial.phased_clients import PipelinedProducer
from conformance.trial.trial import Trial
from conformance.trial.workloads import Pipelined
from conformance.value_json import NotAValueError, printed
from fixtures.clients.core.descriptions import SUBJECTS
from fixtures.clients.record_batch import Compression
from fixtures.clients.responses import ISOLATION_LEVELS
from fixtures.clients.topic_names import INTERNAL_TOPICS, METADATA_TOPIC, is_legal_name
from fixtures.faults import RestartWith

NUMBER_MAX: Final = 2**31 - 1
DURATION_MAX_MS: Final = 3_600_000
"""Limit for one field, and for all phases together.

In virtual time, a workload has as many steps as fit into the phases, so this also limits its steps.
"""
STEPS_MAX: Final = 100_000
"""Limit for the steps of clients, each counted as often as it is repeated."""
PARTITIONS_MAX: Final = 1_000
"""Limit for all topics together."""
_SIGNED: Final = frozenset({"acks", "api_key", "api_version", "before", "by_ms", "epoch_ahead", "epochs_ago", "offset"})
"""Fields that may be negative. Offsets may have up to 64 bits."""
_SIGNED_64: Final = frozenset({"seed", "timestamp", "rate_ppm"})
_LEAST: Final = dict.fromkeys(
    ("nodes", "partitions", "replication_factor", "records", "total", "in_flight_max", "batch_records_max"), 1
)
_BYTES_MAX: Final = 64 << 20
_MOST: Final[Mapping[str, int]] = {
    "nodes": 9,
    "partitions": PARTITIONS_MAX,
    "replication_factor": 9,
    "records": 100_000,
    "records_max": 100_000,
    "in_flight_max": 1_000_000,
    "batch_records_max": 1_000_000,
    "linger_ms": 900_000,
    "topics_max": 1_000,
    "size": _BYTES_MAX,
    "value_bytes": _BYTES_MAX,
}
"""The ranges of `in_flight_max`, `batch_records_max` and `linger_ms` are librdkafka's."""
_IDEMPOTENT_IN_FLIGHT_MAX: Final = 5
_LENGTH_MAX: Final[Mapping[str, int]] = {"clients": 1_000, "schedule": 10_000, "moves": 10_000}
_CHOICES: Final[Mapping[str, Collection[str]]] = {
    "compression": tuple(each.name.lower() for each in Compression),
    "isolation": tuple(ISOLATION_LEVELS),
    "subject": SUBJECTS,
}
_REPEATED: Final = ("times", "batches", "copies")
_CONTROL_CHARACTER: Final = re.compile(r"[\x00-\x1f\x7f]")
_ROLES: Final = frozenset({"broker", "controller"})
_PROPERTIES_OF_TARGET: Final = frozenset(
    {
        "advertised.listeners",
        "broker.id",
        "controller.listener.names",
        "controller.quorum.bootstrap.servers",
        "controller.quorum.voters",
        "inter.broker.listener.name",
        "listener.security.protocol.map",
        "listeners",
        "log.dir",
        "log.dirs",
        "metadata.log.dir",
        "node.id",
        "process.roles",
    }
)
"""Broker properties of which every node needs its own value, or which must fit its addresses."""


def check_limits(trial: Trial) -> None:
    """Raise `NotAValueError` for the first value that no run can use."""
    for at, name, value in _values(trial, "trial"):
        _check_value(at, name, value)
    _check_roles(trial)
    _check_topics(trial)
    _check_properties(trial)
    _check_work(trial)
    _check_partitions(trial)
    _check_idempotence(trial)


def _check_value(at: str, name: str, value: object) -> None:
    if isinstance(value, str) and not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise NotAValueError(f"{at}: {printed(value)} is not valid Unicode") from None
    if name in _CHOICES and value not in _CHOICES[name]:
        raise NotAValueError(f"{at}: {printed(value)} is not one of {', '.join(_CHOICES[name])}")
    if isinstance(value, int) and not isinstance(value, bool):
        least, most = _range(at, name)
        if not least <= value <= most:
            raise NotAValueError(f"{at} is {printed(value)}; it must be between {least} and {most}")
    if name == "partitions" and value == ():
        raise NotAValueError(f"{at}: a consumer has at least one partition")
    if isinstance(value, tuple) and len(value) > _LENGTH_MAX.get(name, STEPS_MAX):
        raise NotAValueError(f"{at} has {len(value)} elements, at most {_LENGTH_MAX.get(name, STEPS_MAX)} are accepted")


def _check_roles(trial: Trial) -> None:
    nodes = Counter(node for node, _ in trial.cluster.roles)
    for number, (node, text) in enumerate(trial.cluster.roles):
        at = f"trial.cluster.roles[{number}]"
        if nodes[node] > 1:
            raise NotAValueError(f"{at}: node {node} has other roles, too")
        if not set(text.split(",")) <= _ROLES:
            raise NotAValueError(f"{at}: {printed(text)} is not broker, controller or both, separated by a comma")
    if not any("controller" in text for text in _roles(trial).values()):
        raise NotAValueError("trial.cluster.roles: a cluster has at least one controller")


def _roles(trial: Trial) -> dict[int, str]:
    """Return `process.roles` of each node, with the additional nodes that only `roles` has."""
    return dict.fromkeys(range(1, trial.cluster.nodes + 1), "broker,controller") | dict(trial.cluster.roles)


def _check_topics(trial: Trial) -> None:
    if not trial.topics:
        raise NotAValueError("trial.topics: a trial has at least one topic")
    names = Counter(topic.name.replace(".", "_") for topic in trial.topics)
    brokers = sum("broker" in role for role in _roles(trial).values())
    for number, topic in enumerate(trial.topics):
        at = f"trial.topics[{number}]"
        if not is_legal_name(topic.name):
            raise NotAValueError(f"{at}.name: {printed(topic.name)} is not a topic name")
        if topic.name in INTERNAL_TOPICS | {METADATA_TOPIC}:
            raise NotAValueError(f"{at}.name: {printed(topic.name)} is an internal topic")
        if names[topic.name.replace(".", "_")] > 1:
            raise NotAValueError(
                f"{at}.name: {printed(topic.name)} is the name of another topic, too, or differs only in . and _"
            )
        if topic.replication_factor > brokers:
            raise NotAValueError(f"{at}.replication_factor is {topic.replication_factor}; there are {brokers} brokers")


def _check_properties(trial: Trial) -> None:
    """Reject properties that the target sets, and control characters, because properties become lines of a file."""
    restarts = (timed.fault for timed in trial.schedule if isinstance(timed.fault, RestartWith))
    for name, value in (*trial.cluster.properties, *((fault.name, fault.value) for fault in restarts)):
        if name.strip() in _PROPERTIES_OF_TARGET:
            raise NotAValueError(f"broker property {printed(name)}: its value is set by the target")
        if _CONTROL_CHARACTER.search(name + value):
            raise NotAValueError(f"broker property {printed(name)}: {printed(value)} has a control character")


def _check_work(trial: Trial) -> None:
    if trial.steady_ms + trial.end_ms + trial.healed_ms > DURATION_MAX_MS:
        raise NotAValueError(f"the phases of a trial last at most {DURATION_MAX_MS} ms together")
    if (partitions := sum(topic.partitions for topic in trial.topics)) > PARTITIONS_MAX:
        raise NotAValueError(f"the topics of a trial have at most {PARTITIONS_MAX} partitions, not {partitions}")
    steps = sum(_repetitions(step) for client in trial.stepping for step in client.steps)
    if steps > STEPS_MAX:
        raise NotAValueError(
            f"the clients of a trial have at most {STEPS_MAX} steps, repetitions included, not {steps}"
        )


def _check_partitions(trial: Trial) -> None:
    partitions = trial.topic.partitions
    for number, client in enumerate(trial.clients):
        if (partition := getattr(client, "partition", 0)) >= partitions:
            raise NotAValueError(
                f"trial.clients[{number}].partition is {partition}; the topic has {partitions} partitions"
            )


def _check_idempotence(trial: Trial) -> None:
    """Check that librdkafka accepts the settings of its idempotent producers."""
    for number, client in enumerate(trial.clients):
        if isinstance(client, Pipelined | PipelinedProducer) and client.idempotent:
            if client.acks != -1:
                raise NotAValueError(f"trial.clients[{number}].acks is {client.acks}; an idempotent producer has -1")
            if client.in_flight_max > _IDEMPOTENT_IN_FLIGHT_MAX:
                raise NotAValueError(
                    f"trial.clients[{number}].in_flight_max is {client.in_flight_max}; "
                    f"an idempotent producer has at most {_IDEMPOTENT_IN_FLIGHT_MAX}"
                )


def _range(at: str, name: str) -> tuple[int, int]:
    """Return the lowest and the highest value of a field. Raw steps may have invalid acks, and pauses of 0 ms."""
    if name in _SIGNED_64:
        return -(2**63), 2**63 - 1
    if name == "acks" and ".steps" not in at:
        return -1, 1
    if name in _SIGNED:
        return -NUMBER_MAX - 1, 2**63 - 1
    least = 1 if name == "pause_ms" and ".steps" not in at else _LEAST.get(name, 0)
    return least, _MOST.get(name, DURATION_MAX_MS if name.endswith("_ms") else NUMBER_MAX)


def _values(value: object, at: str, name: str = "") -> Iterator[tuple[str, str, object]]:
    """Yield path, field name and value for a value and for every value inside it."""
    yield at, name, value
    if isinstance(value, tuple):
        for place, part in enumerate(value):
            yield from _values(part, f"{at}[{place}]")
    elif is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            yield from _values(getattr(value, field.name), f"{at}.{field.name}", field.name)


def _repetitions(step: object) -> int:
    return max(1, *(getattr(step, name, 1) for name in _REPEATED))
