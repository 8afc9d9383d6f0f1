"""The values that the symbols of a script have in one run: names, ids of topics, producers and members, brokers."""

import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from conformance.sequential.real_values import IdSymbol
from fixtures.clients.topic_ids import topic_id_text
from fixtures.targets.target import Node

SESSION_TIMEOUT_MS: Final = 30_000
"""Session timeout of members, unless the brokers do not accept it."""
SHORT_SESSION_TIMEOUT_MS: Final = 6_000
"""Session timeout of members whose session is to end within the script, unless the brokers' minimum is higher. It is
Kafka's default of `group.min.session.timeout.ms`."""
TRANSACTION_TIMEOUT_MS: Final = 60_000
"""Transaction timeout of producers, unless the brokers' maximum is lower."""
_UNKNOWN_TOPIC_ID = uuid.UUID(int=2**64 + 1)


class ScriptSymbols:
    """Symbols of one run in both directions: `layout.Names` for requests, `response.Symbols` for responses.

    :param unique: suffix that makes the real names of this run unique.
    :param nodes: the target's brokers by ascending id.
    :param session_timeout_ms: session timeout of members that the brokers accept.
    :param short_session_timeout_ms: session timeout that the brokers accept, of members whose session is to end.
    :param transaction_timeout_ms: transaction timeout that the brokers accept.
    """

    def __init__(
        self,
        unique: str,
        nodes: Sequence[Node] = (),
        session_timeout_ms: int = SESSION_TIMEOUT_MS,
        short_session_timeout_ms: int = SHORT_SESSION_TIMEOUT_MS,
        transaction_timeout_ms: int = TRANSACTION_TIMEOUT_MS,
    ) -> None:
        self.session_timeout_ms = session_timeout_ms
        self.short_session_timeout_ms = short_session_timeout_ms
        self.transaction_timeout_ms = transaction_timeout_ms
        self._suffix = f"-{unique}"
        self._nodes = tuple(nodes)
        self._cluster_ids: list[str] = []
        self._racks: list[str] = []
        self._created_configs: dict[str, Mapping[str, Any]] = {}
        self._config_errors: dict[str, int] = {}
        self._topic_ids: list[uuid.UUID] = []
        self._topic_id_by_name: dict[str, uuid.UUID] = {}
        self._producer_ids: list[int] = []
        self._member_ids: list[str] = []
        self.fetch_session = (0, 0)
        self._append_times: dict[tuple[str, int, int], int] = {}
        self._log_sizes: dict[tuple[str, int], int] = {}

    def real(self, name: str) -> str:
        """Return the name on the wire: the script's name, with a unique suffix if it begins with `trial`."""
        return f"{name}{self._suffix}" if name.startswith("trial") else name

    def script_name(self, name: str) -> str | None:
        """Return the script's name for a name on the wire; None for a topic or group that is not this run's."""
        return name.removesuffix(self._suffix) if name.endswith(self._suffix) else None

    def topic_id(self, name: str) -> uuid.UUID:
        """Return the id of a topic by its name in the script; the zero id while unknown."""
        return self._topic_id_by_name.get(name, uuid.UUID(int=0))

    def nth_topic_id(self, n: int) -> uuid.UUID:
        """Return the nth id seen; for -1, and if fewer were seen, an id that no topic has."""
        return self._topic_ids[n] if 0 <= n < len(self._topic_ids) else _UNKNOWN_TOPIC_ID

    def saw_topic_id(self, name: str | None, topic_id: uuid.UUID | None) -> int | None:
        """Record an id; return its index in the order in which ids were first seen, None for no id or the zero id."""
        if topic_id is None or topic_id.int == 0:
            return None
        if topic_id not in self._topic_ids:
            self._topic_ids.append(topic_id)
        if name is not None:
            self._topic_id_by_name[name] = topic_id
        return IdSymbol(self._topic_ids.index(topic_id), tuple(str(topic_id_text(each)) for each in self._topic_ids))

    def remove_topic(self, name: str) -> None:
        """Remove a deleted topic. Its id keeps its index."""
        self._topic_id_by_name.pop(name, None)

    def producer_id(self, producer: int) -> int:
        """Return the nth producer id that was assigned; -1 if fewer were."""
        return self._producer_ids[producer] if 0 <= producer < len(self._producer_ids) else -1

    def saw_producer_id(self, producer_id: int) -> int:
        """Record an assigned id; return its index in the order of the first assignments, -1 for none."""
        if producer_id < 0:
            return -1
        if producer_id not in self._producer_ids:
            self._producer_ids.append(producer_id)
        return self.producer(producer_id)

    def producer(self, producer_id: int) -> int:
        """Return the index of a producer id among those that were assigned; the id itself if it was not assigned."""
        if producer_id not in self._producer_ids:
            return producer_id
        return IdSymbol(self._producer_ids.index(producer_id), tuple(map(str, self._producer_ids)))

    def saw_fetch_session(self, session_id: int, epoch: int) -> None:
        """Record the id of the script's fetch session, and the epoch of the next request in it."""
        self.fetch_session = (session_id, epoch)

    def member_id(self, member: int | str) -> str:
        """Return the nth member id that was assigned, "unknown" if fewer were; a text unchanged."""
        if isinstance(member, str):
            return member
        return self._member_ids[member] if member < len(self._member_ids) else "unknown"

    def saw_member_id(self, member_id: str) -> int:
        """Record a member id; return its index in the order in which ids were first seen, -1 for the empty id."""
        if not member_id:
            return -1
        if member_id not in self._member_ids:
            self._member_ids.append(member_id)
        return IdSymbol(self._member_ids.index(member_id), tuple(self._member_ids))

    def saw_append_time(self, step: Any, base_offset: int, time_ms: int) -> None:
        """Record the time that a Produce response has for a batch, in the partition of the step."""
        self._append_times[step.topic, step.partition, base_offset] = time_ms

    def append_time(self, step: Any, base_offset: int) -> int | None:
        """Return the recorded time of a batch; None if no response had one."""
        return self._append_times.get((step.topic, step.partition, base_offset))

    def saw_log_size(self, step: Any, size: int) -> None:
        """Record the size of all batches of the step's partition, as a Fetch response has them."""
        self._log_sizes[step.topic, step.partition] = size

    def log_size(self, step: Any) -> int | None:
        """Return the recorded size of the log of the step's partition; None if no Fetch returned all of it."""
        return self._log_sizes.get((step.topic, step.partition))

    def topic_name(self, n: int) -> str | None:
        """Return the script's name of the topic that has the nth id; None after its deletion."""
        return self.name_of_topic(self.nth_topic_id(n))

    def name_of_topic(self, topic_id: uuid.UUID | None) -> str | None:
        """Return the script's name of the topic that has the id; None if the script has no such topic."""
        return next((name for name, known in self._topic_id_by_name.items() if known == topic_id), None)

    def saw_cluster_id(self, cluster_id: str | None) -> int | None:
        """Record a cluster's id; return its index in the order in which ids were first seen, None for no id."""
        if cluster_id is None:
            return None
        if cluster_id not in self._cluster_ids:
            self._cluster_ids.append(cluster_id)
        return IdSymbol(self._cluster_ids.index(cluster_id), tuple(self._cluster_ids))

    def saw_created_configs(self, topic: str, configs: Iterable[Any], error_code: int) -> None:
        """Record the settings that a CreateTopics response has for a topic, or the error code in their place."""
        self._created_configs[topic] = {str(config.name): config for config in configs}
        self._config_errors[topic] = error_code

    def created_configs(self, topic: str) -> Mapping[str, Any]:
        """Return the recorded settings of a topic by name; empty if no response had them."""
        return self._created_configs.get(topic, {})

    def config_error(self, topic: str) -> int:
        """Return the recorded error code in place of the settings of a topic; 0 for none."""
        return self._config_errors.get(topic, 0)

    def saw_racks(self, racks: str) -> int:
        """Record the racks of all brokers; return their index in the order in which such texts were first seen."""
        if racks not in self._racks:
            self._racks.append(racks)
        return IdSymbol(self._racks.index(racks), tuple(self._racks))

    @property
    def brokers(self) -> tuple[int, ...]:
        """The ids of the target's brokers, ascending."""
        return tuple(node.id for node in self._nodes)

    def broker(self, place: int) -> int:
        """Return the id of a broker by its place, from 1 on; the number itself if the target has fewer brokers."""
        return self._nodes[place - 1].id if 1 <= place <= len(self._nodes) else place

    def place(self, broker: int) -> int:
        """Return the place of a broker; the id itself if the target has no such broker."""
        return next((place for place, node in enumerate(self._nodes, start=1) if node.id == broker), broker)

    def is_address(self, broker: int, host: str, port: int) -> bool:
        """Whether the target's broker has this address."""
        return Node(broker, host, port) in self._nodes
