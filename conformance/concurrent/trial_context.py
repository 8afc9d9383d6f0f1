"""Context of one trial for its clients and its nemesis: target, topic, recorder, and new processes and values."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice, takewhile

from conformance.trial.phased_clients import Trickle
from fixtures.clients.payload import SIZE_MIN, to_record
from fixtures.clients.record_batch import Record
from fixtures.clients.recorded import RecordedClient
from fixtures.clients.stage import THREADS, Event
from fixtures.clients.topic_ids import TopicIds
from fixtures.faults.places import InitialRoles, Node
from fixtures.targets.target import Target
from linearizability.history.recorder import Recorder

_RESPONSE_TIMEOUT_S = 10.0
_TOMBSTONE_EVERY = 7


class ScriptNotRunError(Exception):
    """Reason for which a script cannot run, such as a topic that was not created. The message is one line."""


@dataclass(frozen=True, slots=True)
class Replicas:
    """Leader of a partition, and its replicas in the order of the assignment."""

    leader: int
    nodes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TrialContext:
    """Context of the actors of one script."""

    target: Target
    recorder: Recorder
    topic: str
    topic_ids: TopicIds
    replicas: Mapping[int, Replicas]
    """Replicas of each partition when the script started."""
    initial_roles: InitialRoles
    processes: Iterator[int]
    """Unused process numbers."""
    values: Iterator[int]
    """Unused record values."""
    node_failed: Event = field(default_factory=THREADS.event)
    """Set when the nemesis has killed or paused a node, or has ended."""
    nemesis_done: Event = field(default_factory=THREADS.event)
    """Set when the nemesis has made its last move and healed everything, or has failed."""
    other_topics: list[str] = field(default_factory=list)
    """Topics whose creation was requested while the script ran."""
    keeps_timestamps: bool = True
    """False if the broker may replace the records' timestamps."""

    def raw_client(self, node: int | None = None, *, timeout_s: float = _RESPONSE_TIMEOUT_S) -> RecordedClient:
        """Return a client with a new process number, for one node (default: the one with the lowest id)."""
        return RecordedClient(
            self.target,
            self.recorder,
            next(self.processes),
            topic_ids=self.topic_ids,
            node=node,
            timeout_s=timeout_s,
        )

    def find_initial(self, name: Node) -> int | None:
        """Return the node that had a role at the start of the script, or None. An id is returned unchanged."""
        present = [node.id for node in self.target.nodes]
        return name if isinstance(name, int) else self.initial_roles.node(name, present)

    def node_of(self, name: Node) -> int:
        """Return the same as `find_initial`. Raises `ScriptNotRunError` if no node had the role."""
        node = self.find_initial(name)
        if node is None:
            raise ScriptNotRunError(f"no node has the role {getattr(name, 'value', name)} for the topic")
        return node

    def new_topic(self) -> str:
        """Return an unused topic name, and add it to `other_topics`."""
        name = f"{self.topic}-{len(self.other_topics) + 1}"
        self.other_topics.append(name)
        return name

    def records(self, count: int, size: int = SIZE_MIN) -> list[Record]:
        """Return `count` records with keys from `k0` to `k9`."""
        return [self._record(value, f"k{value % 10}", size) for value in islice(self.values, count)]

    def keyed_record(self, keys: int) -> Record:
        """Return a record with one of `keys` keys. Every seventh value is replaced by a tombstone."""
        value = next(self.values)
        return self._record(None if value % _TOMBSTONE_EVERY == 0 else value, f"keyed-{value % keys}", SIZE_MIN)

    def _record(self, value: int | None, key: str, size: int) -> Record:
        now_ms = int(self.target.transport.time() * 1000)
        return to_record(value, key=key, timestamp_ms=now_ms, size=size, timestamp_kept=self.keeps_timestamps)

    def while_nemesis_runs(self, step: Trickle) -> Iterator[int]:
        """Yield the numbers of a trickle's records from 0 on, until the nemesis is done or `records_max` is reached."""
        return takewhile(lambda _: not self.nemesis_done.is_set(), range(step.records_max))
