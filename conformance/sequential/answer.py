"""An answer as plain values: what it is, and what every API's answers are made with.

An `Answer` maps Kafka's field names to plain values. What is nobody's promise is dropped (throttle times, correlation
ids, hosts and ports, session ids); what differs by run is replaced by what it stands for (topic ids and producer ids
by the order in which they were seen, brokers by their place, real names by the script's); errors are spelt as Kafka
spells them. A field that the version at hand does not have is absent.

Where there was no answer, the only field is `connection`: closed, or silent. Bytes that are no answer are `malformed`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias

Answer: TypeAlias = Mapping[str, Any]
"""Field name to plain value: numbers, strings, tuples of `ReadRecord`."""

CLOSED: Final[Answer] = {"connection": "closed"}
SILENT: Final[Answer] = {"connection": "silent"}
"""No answer within the time that a step has."""

NO_OPERATIONS: Final = -(2**31)
"""Instead of the permitted operations where they were not requested (KIP-430)."""
NO_ANSWER_FIELDS: Final = frozenset({"connection", "malformed"})


@dataclass(frozen=True, slots=True)
class ReadRecord:
    """A record as a fetch returned it. The timestamp is null where the broker set it (LogAppendTime)."""

    offset: int
    value: bytes | None
    key: bytes | None = None
    timestamp_ms: int | None = 0
    headers: tuple[tuple[str, bytes | None], ...] = ()


class Symbols(Protocol):
    """What stands for the values that differ by run."""

    def script_name(self, name: str) -> str | None:
        """The script's name of a topic or group; null for one that is not the script's."""
        ...

    def saw_topic_id(self, name: str | None, topic_id: Any) -> int | None:
        """The place of a topic id in the order in which they were seen; null for the zero id."""
        ...

    def saw_producer_id(self, producer_id: int) -> int:
        """The place of a producer id in the order in which they were handed out; -1 for none."""
        ...

    def saw_cluster_id(self, cluster_id: str | None) -> int | None:
        """The place of a cluster id in the order in which they were seen; null for none."""
        ...

    @property
    def brokers(self) -> tuple[int, ...]:
        """The ids of the target's brokers, ascending."""
        ...

    def place(self, broker: int) -> int:
        """The place of a broker among the target's; the id itself for one that is not there."""
        ...

    def is_address(self, broker: int, host: str, port: int) -> bool:
        """Whether clients reach the broker there."""
        ...


def malformed(error: Exception) -> Answer:
    """The answer that bytes of no meaning stand for."""
    return {"malformed": str(error)}


def error_of(code: Any) -> str:
    """The error as Kafka spells it, NONE included."""
    return str(code.name.upper())


def plain_fields(source: Any, *names: str) -> dict[str, Any]:
    """Those of the named fields that this version has."""
    return {name: int(getattr(source, name)) for name in names if hasattr(source, name)}


def only_partition(topics: Any, partitions: str = "partitions") -> Any | None:
    """The one partition that was asked about; null where the answer leaves it out."""
    found = [partition for topic in topics for partition in getattr(topic, partitions)]
    return found[0] if len(found) == 1 else None


MISSING: Final[Answer] = {"malformed": "the answer does not have the one partition that was asked about"}
