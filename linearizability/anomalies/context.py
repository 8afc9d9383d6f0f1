"""What a shard needs to know of the rest of the run: small, picklable, the same for every shard.

A topic id that is null stands for the name's only one. Where a name had several, or was deleted and never had one, rows
without an id may be of any incarnation: they form an *ambiguous* log, in which only what needs no offset is judged
(phantom-read, corrupt-record), and whose sends explain reads in the name's other logs.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from linearizability.anomalies.faults import NEVER_NS, healed_after_ns
from linearizability.anomalies.groups import Groups
from linearizability.anomalies.healing import Schedule
from linearizability.anomalies.promise import TopicRules, topic_rules
from linearizability.anomalies.settings import Settings
from linearizability.anomalies.transactions import Transactions

Int64s = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Deletion:
    """A topic that was, or may have been, deleted: not before `invoke_ns`, and, where it is known, by `complete_ns`."""

    topic: str
    topic_id: str | None
    invoke_ns: int
    complete_ns: int


@dataclass(frozen=True, slots=True)
class LogStartRequest:
    """A delete_records that did not certainly fail: records below `offset` may go from `invoke_ns` on."""

    topic: str
    topic_id: str | None
    partition: int
    offset: int
    invoke_ns: int


@dataclass(frozen=True, slots=True)
class Context:
    """The rest of the run."""

    complete: bool
    settings: Settings
    transactions: Transactions
    topic_ids: Mapping[str, tuple[str, ...]]
    """Per topic name, the ids that any row gave it, sorted."""
    deletions: tuple[Deletion, ...] = ()
    log_start_requests: tuple[LogStartRequest, ...] = ()
    moves_ns: Mapping[int, Int64s] = field(default_factory=dict)
    """Per process, sorted, when it was assigned or sought."""
    producers_opened: Mapping[int, Int64s] = field(default_factory=dict)
    """Per process, sorted, the op_ids of its init_producer_id: what it sends afterwards is of another producer."""
    derives_positions: bool = False
    """The table `positions` is absent: what a read covered follows from what it returned."""
    clients: Mapping[int, Mapping[str, str]] = field(default_factory=dict)
    """Per process, its client properties: what a row leaves open (acks, isolation) they may say."""
    groups: Groups = field(default_factory=Groups)
    moved: frozenset[str | None] = frozenset()
    """Topics of which replicas may have been moved or removed on request; None stands for any."""
    _rules: dict[str, TopicRules] = field(default_factory=dict)
    _schedule: list[Schedule] = field(default_factory=list)

    def rules(self, topic: str) -> TopicRules:
        """The promise table's inputs for a topic."""
        if topic not in self._rules:
            self._rules[topic] = topic_rules(self.settings, topic)
        return self._rules[topic]

    @property
    def schedule(self) -> Schedule:
        """When what was broken, made once."""
        if not self._schedule:
            self._schedule.append(Schedule(self.settings))
        return self._schedule[0]

    def keeps_content(self, topic: str) -> bool:
        """Whether no fault of the run could make a topic, an internal one too, forget what it holds."""
        rules = self.rules(topic)
        return not rules.losses and rules.unclean_from_ns == NEVER_NS

    def may_move_replicas(self, topic: str) -> bool:
        """Whether a topic may lawfully have fewer replicas than it had."""
        return topic in self.moved or None in self.moved

    @property
    def healed_after_ns(self) -> int | None:
        """As `faults.healed_after_ns` has it."""
        return healed_after_ns(self.settings.faults)

    def resolve(self, topic: str, topic_id: str | None) -> str | None:
        """The id that a row's topic id stands for."""
        ids = self.topic_ids.get(topic, ())
        return ids[0] if topic_id is None and len(ids) == 1 else topic_id

    def is_ambiguous(self, topic: str, topic_id: str | None) -> bool:
        """Whether rows of a resolved id may belong to more than one incarnation of the name."""
        if topic_id is not None:
            return False
        ids = self.topic_ids.get(topic, ())
        return len(ids) > 1 or any(deletion.topic == topic for deletion in self.deletions)

    def deleted_from_ns(self, topic: str, topic_id: str | None, first_ns: int) -> int:
        """From when a topic may have been deleted, NEVER_NS if it was not; `first_ns`: its log's first operation.

        A deletion by name alone is of every incarnation that was in use before it was done.
        """
        return min(
            (
                deletion.invoke_ns
                for deletion in self.deletions
                if deletion.topic == topic
                and (first_ns <= deletion.complete_ns if deletion.topic_id is None else deletion.topic_id == topic_id)
            ),
            default=NEVER_NS,
        )
