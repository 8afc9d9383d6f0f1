"""Nodes of a live cluster under faults: those that ended on their own, and those that lost content."""

import threading
from collections.abc import Collection
from dataclasses import dataclass, field

from chaos.live.watch import PartitionSeen, TopicPartition, View
from fixtures.faults.context import FaultContext, Losses, record_unclean_election
from fixtures.targets.controls import SupervisedTarget
from linearizability.anomalies.faults import NEVER_NS
from linearizability.history.recorder import Recorder


@dataclass(slots=True)
class Nodes:
    """The nodes of one cluster, with the restart of those that have ended."""

    target: SupervisedTarget
    context: FaultContext
    view: View
    deaths: dict[int, str] = field(default_factory=dict)
    """Nodes that ended although no fault could be the reason, with the last line of their log."""

    def start_all(self) -> None:
        """Start the nodes that do not run, as an operator does."""
        self.note_deaths()
        self.context.start_all()

    def restart_missing(self) -> None:
        """Kill and start the nodes that are missing from an ISR.

        A late request may unregister a node while it runs. Such a node does not register again until an operator
        restarts it.
        """
        missing = {node for seen in self.view.partitions.values() for node in set(seen.replicas) - set(seen.isr)}
        for node in sorted(missing.intersection(self.context.nodes)):
            with self.context.row(("kill", "started again, as it may have been unregistered"), node):
                self.target.processes.kill(node)
                self.context.start(node)

    def note_deaths(self) -> None:
        """Note the nodes that ended on their own, unless a fault may be the reason."""
        for node, last_line in self.target.processes.ended().items():
            if not self.context.is_kept_down(node) and node not in self.context.frail_nodes:
                self.deaths.setdefault(node, last_line)


class ObservedLosses(Losses):
    """`Losses` of a live cluster, with the ISRs of the newest responses.

    :param flushed_topics: topics whose acknowledged records survive a power cut.
    """

    def __init__(self, recorder: Recorder, view: View, flushed_topics: Collection[str]) -> None:
        self._recorder = recorder
        self._view = view
        self._flushed_topics = flushed_topics
        self._lossy: dict[tuple[str, int], int] = {}
        """For each topic and node that has lost records of it: time of the node's latest start since, or `NEVER_NS`."""
        self._whole_ns: dict[TopicPartition, int] = {}
        """Time of the newest request whose response had a full ISR: nodes that started earlier have caught up."""
        self._recorded: set[tuple[TopicPartition, int, int]] = set()
        self._lock = threading.Lock()
        view.on_change = self._note_partition

    def note(self, node: int, topic: str | None = None) -> None:
        """Note that a node has lost records of a topic, or of all topics."""
        self._note(node, self._view.topics if topic is None else (topic,))

    def note_power_cut(self, node: int) -> None:
        """Note that a node has lost its unflushed records."""
        self._note(node, [topic for topic in self._view.topics if topic not in self._flushed_topics])

    def before_start(self, node: int) -> None:
        """Record an unclean election if the node has lost records and is the last in-sync replica of a partition."""
        for place, seen in self._view.partitions.items():
            if seen.isr == (node,):
                self._note_partition(place, seen)

    def after_start(self, node: int) -> None:
        """Note that a node has started: a full ISR after this time shows that it has its records again."""
        now_ns = self._recorder.now_ns()
        with self._lock:
            self._lossy |= {key: now_ns for key in self._lossy if key[1] == node}

    def _note(self, node: int, topics: Collection[str]) -> None:
        with self._lock:
            self._lossy |= {(topic, node): NEVER_NS for topic in topics}
        self.before_start(node)

    def _note_partition(self, place: TopicPartition, seen: PartitionSeen) -> None:
        """Record an unclean election if the last in-sync replica has lost records and was not restored since."""
        with self._lock:
            if seen.is_whole:
                self._whole_ns[place] = seen.at_ns
            if len(seen.isr) != 1:
                return
            (node,) = seen.isr
            started_ns = self._lossy.get((place.topic, node))
            key = (place, seen.epoch, node)
            if started_ns is None or started_ns < self._whole_ns.get(place, 0) or key in self._recorded:
                return
            self._recorded.add(key)
        record_unclean_election(self._recorder, place.topic)
