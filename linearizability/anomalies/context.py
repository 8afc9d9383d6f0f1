"""Context of a shard: the data about the whole run that its checks need.

It is small, picklable and the same for every shard.

A null topic id stands for the only id of the topic's name. If a name had several ids, or was deleted and never had one,
rows without an id may belong to any incarnation. These rows form an *ambiguous* log. It is judged only for anomalies
that need no offset (phantom-read, corrupt-record), and its sends explain reads in the other logs of the name.
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
    """A deletion, certain or possible, of a topic: after `invoke_ns` and, where known, before `complete_ns`."""

    topic: str
    topic_id: str | None
    invoke_ns: int
    complete_ns: int


@dataclass(frozen=True, slots=True)
class LogStartRequest:
    """A delete_records that may have succeeded: records below `offset` may be removed from `invoke_ns` on.

    An `offset` of -1 stands for the high watermark.
    """

    topic: str
    topic_id: str | None
    partition: int
    offset: int
    invoke_ns: int


@dataclass(frozen=True, slots=True)
class Context:
    """Data about the run for the checks of one shard."""

    complete: bool
    settings: Settings
    transactions: Transactions
    topic_ids: Mapping[str, tuple[str, ...]]
    """Per topic name, the ids that any row gave it, sorted."""
    deletions: tuple[Deletion, ...] = ()
    log_start_requests: tuple[LogStartRequest, ...] = ()
    moves_ns: Mapping[int, Int64s] = field(default_factory=dict)
    """Per process, sorted, the times of its operations in `positions.MOVES` and of its assignment events."""
    producers_opened: Mapping[int, Int64s] = field(default_factory=dict)
    """Per process, sorted, the op_ids of its init_producer_id. Each of them begins another producer of the process."""
    derives_positions: bool = False
    """Whether the table `positions` is absent, so that a read's coverage is derived from what it returned."""
    clients: Mapping[int, Mapping[str, str]] = field(default_factory=dict)
    """Per process, its client properties, which may set what a row leaves open (acks, isolation)."""
    groups: Groups = field(default_factory=Groups)
    moved_topics: frozenset[str | None] = frozenset()
    """Topics whose replicas may have been moved or removed on request; None stands for any topic."""
    _rules: dict[str, TopicRules] = field(default_factory=dict)
    _schedule: list[Schedule] = field(default_factory=list)

    def rules(self, topic: str) -> TopicRules:
        """Return the inputs of the promise table for a topic."""
        if topic not in self._rules:
            self._rules[topic] = topic_rules(self.settings, topic)
        return self._rules[topic]

    @property
    def schedule(self) -> Schedule:
        """The times of the run's faults; built once."""
        if not self._schedule:
            self._schedule.append(Schedule(self.settings))
        return self._schedule[0]

    def keeps_content(self, topic: str) -> bool:
        """Whether no fault of the run could lose content of a topic, which may be an internal topic."""
        rules = self.rules(topic)
        return not rules.losses and rules.unclean_from_ns == NEVER_NS

    def may_move_replicas(self, topic: str) -> bool:
        """Whether replicas of a topic may have been moved or removed on request."""
        return topic in self.moved_topics or None in self.moved_topics

    @property
    def healed_after_ns(self) -> int | None:
        """When the last fault was healed: None if there was no fault, NEVER_NS while one has not healed."""
        return healed_after_ns(self.settings.faults)

    def resolve(self, topic: str, topic_id: str | None) -> str | None:
        """Return the id that a row's topic id stands for; None if that is unknown."""
        ids = self.topic_ids.get(topic, ())
        return ids[0] if topic_id is None and len(ids) == 1 else topic_id

    def is_ambiguous(self, topic: str, topic_id: str | None) -> bool:
        """Whether rows of a resolved id may belong to more than one incarnation of the name."""
        if topic_id is not None:
            return False
        ids = self.topic_ids.get(topic, ())
        return len(ids) > 1 or any(deletion.topic == topic for deletion in self.deletions)

    def deleted_from_ns(self, topic: str, topic_id: str | None, first_ns: int) -> int:
        """Return the earliest time at which a topic may have been deleted; NEVER_NS if it cannot have been.

        `first_ns` is the time of the first operation on the topic's log, or of the first request whose response showed
        its state. A deletion by name alone applies to every incarnation that was known before the deletion completed.
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
