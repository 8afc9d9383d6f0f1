"""Form of a response as plain values, and the helpers of the modules that convert responses to it.

A `Response` maps Kafka's field names to plain values. Values that Kafka does not promise are dropped (throttle times,
correlation ids, hosts and ports, session ids). Values that differ between runs are replaced by symbols (ids of topics,
producers and members by the order in which they were seen, brokers by their place, names of topics and groups by the
names in the script). Errors are spelt as Kafka spells them. A field that the version does not have is absent.

If there was no response, the only field is `connection`: closed or silent. Bytes that cannot be decoded are
`malformed`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias

from conformance.sequential.layout import Names, topic_id

Response: TypeAlias = Mapping[str, Any]
"""Field name to plain value: numbers, strings, tuples of `ReadRecord`."""

CLOSED: Final[Response] = {"connection": "closed"}
SILENT: Final[Response] = {"connection": "silent"}
"""No response within the timeout of a step."""

NO_OPERATIONS: Final = -(2**31)
"""Value of `authorized_operations` if the request did not include them (KIP-430)."""
DESCRIBE: Final = 1 << 8
"""Bit of `AclOperation.DESCRIBE` in `authorized_operations`."""
DEAD: Final = "Dead"
"""State of a group that does not exist."""
CLASSIC: Final = "classic"
"""Type of a group whose members use JoinGroup and SyncGroup (KIP-848)."""
INVALID_FIELDS: Final = "invalid_fields"
"""Field that is present if a response has fields that break a rule of `field_rules`."""
NOT_READY: Final = "not_ready"
"""Field of the response to a CreateTopic: the reason why a partition could not be used until the timeout."""
NO_RESPONSE_FIELDS: Final = frozenset({"connection", "malformed"})
ERROR_FIELDS: Final = frozenset({"error", "errors"})
"""The error of a response, or the errors of the response to a raw request."""


@dataclass(frozen=True, slots=True)
class ReadRecord:
    """A record as a fetch returned it. The timestamp is None where the broker set it (LogAppendTime)."""

    offset: int
    value: bytes | None
    key: bytes | None = None
    timestamp_ms: int | None = 0
    headers: tuple[tuple[str, bytes | None], ...] = ()


class Symbols(Names, Protocol):
    """The symbols of values that differ between runs."""

    def script_name(self, name: str) -> str | None:
        """Return the script's name of a topic or group; None for one that is not the script's."""
        ...

    def name_of_topic(self, topic_id: Any) -> str | None:
        """Return the script's name of the topic that has the id; None if the script has no such topic."""
        ...

    def saw_topic_id(self, name: str | None, topic_id: Any) -> int | None:
        """Record a topic id; return its index in the order in which ids were first seen, None for the zero id."""
        ...

    def saw_producer_id(self, producer_id: int) -> int:
        """Record a producer id; return its index in the order in which ids were assigned, -1 for none."""
        ...

    def producer(self, producer_id: int) -> int:
        """Return the index of a producer id among those that were assigned; the id itself if it was not assigned."""
        ...

    def saw_fetch_session(self, session_id: int, epoch: int) -> None:
        """Record the id of the script's fetch session, and the epoch of the next request in it."""
        ...

    def saw_member_id(self, member_id: str) -> int:
        """Record a member id; return its index in the order in which ids were first seen, -1 for the empty id."""
        ...

    def saw_append_time(self, step: Any, base_offset: int, time_ms: int) -> None:
        """Record the time that a Produce response has for a batch, in the partition of the step."""
        ...

    def append_time(self, step: Any, base_offset: int) -> int | None:
        """Return the recorded time of a batch; None if no response had one."""
        ...

    def saw_log_size(self, step: Any, size: int) -> None:
        """Record the size of all batches of the step's partition, as a Fetch response has them."""
        ...

    def log_size(self, step: Any) -> int | None:
        """Return the recorded size of the log of the step's partition; None if no Fetch returned all of it."""
        ...

    def saw_cluster_id(self, cluster_id: str | None) -> int | None:
        """Record a cluster id; return its index in the order in which ids were first seen, None for no id."""
        ...

    def saw_created_configs(self, topic: str, configs: Iterable[Any], error_code: int) -> None:
        """Record the settings that a CreateTopics response has for a topic, or the error code in their place."""
        ...

    def created_configs(self, topic: str) -> Mapping[str, Any]:
        """Return the recorded settings of a topic by name; empty if no response had them."""
        ...

    def config_error(self, topic: str) -> int:
        """Return the recorded error code in place of the settings of a topic; 0 for none."""
        ...

    def saw_racks(self, racks: str) -> int:
        """Record the racks of all brokers; return their index in the order in which such texts were first seen."""
        ...

    @property
    def brokers(self) -> tuple[int, ...]:
        """The ids of the target's brokers, ascending."""
        ...

    def place(self, broker: int) -> int:
        """Return the place of a broker (see `steps`); the id itself for a broker that the target does not have."""
        ...

    def is_address(self, broker: int, host: str, port: int) -> bool:
        """Whether this is the broker's address for clients."""
        ...


class WrongPartitionsError(ValueError):
    """A response that does not have exactly the one partition that was requested."""


def malformed(error: Exception) -> Response:
    """Return the response for bytes that cannot be decoded."""
    return {"malformed": str(error)}


def error_of(code: Any) -> str:
    """Return the name of the error as in Kafka's `Errors`, such as NONE."""
    return str(code.name.upper())


def racks(brokers: Sequence[Any], symbols: Symbols) -> int:
    """Return the symbol of the racks of the brokers that a response lists, by ascending id."""
    found = sorted((int(first_field(one, ("node_id", "broker_id"))), one.rack) for one in brokers)
    return symbols.saw_racks(", ".join(f"{broker}: {rack}" for broker, rack in found))


def plain_fields(source: Any, *names: str) -> dict[str, Any]:
    """Return those of the named fields that this version has."""
    return {name: int(getattr(source, name)) for name in names if hasattr(source, name)}


def only_partition(step: Any, topics: Any, symbols: Symbols, partitions: str = "partitions") -> Any:
    """Return the partition that a step requested. Raises `WrongPartitionsError` for another, none, or several."""
    found = [(topic, partition) for topic in topics for partition in getattr(topic, partitions)]
    if len(found) != 1:
        raise WrongPartitionsError(
            f"the response has {len(found) or 'no'} partition{'s' if found else ''}; one was requested"
        )
    topic, partition = found[0]
    if not is_topic(step, topic, symbols) or first_field(partition, INDEXES) != step.partition:
        raise WrongPartitionsError("the response has another partition or topic than the requested one")
    return partition


TOPIC_NAMES: Final = ("name", "topic", "topic_name")
INDEXES: Final = ("partition_index", "index", "partition", "partition_id")
"""The names that responses have for the name of a topic and for the index of a partition."""


def is_topic(step: Any, topic: Any, symbols: Symbols) -> bool:
    """Whether an entry has the name or the id that a step requested. If the topic's id is unknown, any id is accepted.

    A step can request an empty name, if a broker has created a topic with this invalid name.
    """
    name = first_field(topic, TOPIC_NAMES)
    if name or not hasattr(topic, "topic_id"):
        return bool(name == symbols.real(step.topic))
    known = topic_id(step, symbols)
    return known.int == 0 or topic.topic_id == known


def first_field(source: Any, names: tuple[str, ...]) -> Any:
    """Return the first of these fields that a part of a response has; None if it has none of them."""
    return next((getattr(source, name) for name in names if hasattr(source, name)), None)
