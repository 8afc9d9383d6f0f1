"""The promise table: how long Kafka promises to keep a committed record, by topic, partition and time of commit.

| what was in play | acknowledged by acks=all | read, whatever its acks |
|---|---|---|
| nothing; kill, pause, cut, delay, clock; disk errors | promised | promised |
| lost content | while fewer replicas than min.insync.replicas lost it since the ISR was last full | while none did |
| unclean election on or asked for, with a fault of a replica | no | no |

Choices where the table leaves one. A promise has an end: the first moment at or after the commit at which the row no
longer holds, so that a loss shown *before* a power cut is still a violation. A replica that lost content counts from
the injection until `states` shows a full ISR in answer to a question asked after the heal (an ISR seen before that may
still list the dead node). A node counts only if it is a replica: where a full ISR was seen, one that some ISR listed;
else any. The ISR is full at `replication.factor` members, or, where that is not known, at the most ever seen. "Read" is
counted in the same way with a threshold of one replica. The unclean row ends every promise from the moment at which
both an unclean election was allowed and a replica's fault had been injected.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from linearizability.anomalies.faults import NEVER_NS
from linearizability.anomalies.settings import RETENTION_MS_DEFAULT, Settings

Int64s = npt.NDArray[np.int64]

NOT_PROMISED: Final = -(2**63)
"""The end of a promise that never was: before every time."""

_ANY_NODE: Final = -1


@dataclass(frozen=True, slots=True)
class Loss:
    """A node (`_ANY_NODE`: every one) that lost content, from a time until it had surely healed."""

    node: int
    inject_ns: int
    heal_ns: int


@dataclass(frozen=True, slots=True)
class TopicRules:
    """What the settings and faults of a run mean for one topic."""

    min_insync_replicas: int
    replication_factor: int | None
    retention: bool
    compaction: bool
    unclean_from_ns: int
    losses: tuple[Loss, ...]


@dataclass(frozen=True, slots=True)
class FullIsr:
    """What `states` says of one partition's ISR: its replicas, if it was ever full, and when it was."""

    replicas: frozenset[int] | None
    asked_ns: tuple[int, ...] = ()
    answered_ns: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Promise:
    """The ends of promises in one partition, for both columns of the table."""

    acknowledged: "Column"
    read: "Column"


@dataclass(frozen=True, slots=True)
class Column:
    """One column: the intervals [begin, end) in which too many replicas had lost content, and the unclean start."""

    begins_ns: Int64s
    ends_ns: Int64s
    unclean_from_ns: int

    def end_ns(self, committed_ns: Int64s) -> Int64s:
        """For each commit, when its promise ended: NEVER_NS if it did not, NOT_PROMISED if there was none."""
        following = np.searchsorted(self.begins_ns, committed_ns, side="right")
        begins = np.append(self.begins_ns, NEVER_NS)
        end = np.minimum(begins[following], self.unclean_from_ns)
        inside = (following > 0) & (committed_ns < np.append(NOT_PROMISED, self.ends_ns)[following])
        unclean = (committed_ns >= self.unclean_from_ns) & (self.unclean_from_ns != NEVER_NS)
        return np.where(inside | unclean, NOT_PROMISED, end)


def topic_rules(settings: Settings, topic: str) -> TopicRules:
    """What was in force for a topic, at its most lenient."""
    policies = {
        part.strip() for setting in settings.in_force(topic, "cleanup.policy") for part in setting.value.split(",")
    }
    retention_ms = [value for value in settings.numbers(topic, "retention.ms") if 0 <= value < RETENTION_MS_DEFAULT]
    retention_bytes = [value for value in settings.numbers(topic, "retention.bytes") if value >= 0]
    factors = settings.numbers(topic, "replication.factor") or settings.numbers(topic, "default.replication.factor")
    return TopicRules(
        min_insync_replicas=min(settings.numbers(topic, "min.insync.replicas"), default=1),
        replication_factor=max(factors, default=None),
        retention=(not policies or "delete" in policies) and bool(retention_ms or retention_bytes),
        compaction="compact" in policies,
        unclean_from_ns=_unclean_from_ns(settings, topic),
        losses=tuple(_losses(settings, topic)),
    )


def _unclean_from_ns(settings: Settings, topic: str) -> int:
    allowed = [
        NOT_PROMISED if setting.from_ns is None else setting.from_ns
        for setting in settings.in_force(topic, "unclean.leader.election.enable")
        if setting.value.strip().lower() == "true"
    ]
    allowed += [fault.inject_ns for fault in settings.faults if fault.is_unclean_election]
    broken = [fault.inject_ns for fault in settings.faults if fault.is_of_a_replica]
    return max(min(allowed), min(broken)) if allowed and broken else NEVER_NS


def _losses(settings: Settings, topic: str) -> Iterable[Loss]:
    flushes = settings.numbers(topic, "flush.messages")
    flushed = bool(flushes) and all(value == 1 for value in flushes)
    for fault in settings.faults:
        if fault.loses_content or (fault.is_power and not flushed):
            for node in fault.nodes() or {_ANY_NODE}:
                yield Loss(node, fault.inject_ns, fault.heal_ns)


def partition_promise(rules: TopicRules, isr: FullIsr) -> Promise:
    """The promise table of one partition."""
    losses = [
        loss for loss in rules.losses if isr.replicas is None or loss.node == _ANY_NODE or loss.node in isr.replicas
    ]
    spans = [(loss.node, loss.inject_ns, _over_ns(loss, isr)) for loss in losses]
    return Promise(
        acknowledged=_column(spans, max(1, rules.min_insync_replicas), rules.unclean_from_ns),
        read=_column(spans, 1, rules.unclean_from_ns),
    )


def _over_ns(loss: Loss, isr: FullIsr) -> int:
    """When the ISR was first seen full after a loss had healed."""
    return min(
        (answered for asked, answered in zip(isr.asked_ns, isr.answered_ns, strict=True) if asked >= loss.heal_ns),
        default=NEVER_NS,
    )


def _column(spans: Sequence[tuple[int, int, int]], threshold: int, unclean_from_ns: int) -> Column:
    """Sweep over the spans (node, from, over) and keep where at least `threshold` distinct nodes are inside one."""
    times = sorted({time for _, begin, over in spans for time in (begin, over)})
    begins: list[int] = []
    ends: list[int] = []
    for time in times:
        nodes = {node for node, begin, over in spans if begin <= time < over}
        broken = _ANY_NODE in nodes or len(nodes) >= threshold
        if broken and len(begins) == len(ends):
            begins.append(time)
        elif not broken and len(begins) > len(ends):
            ends.append(time)
    return Column(np.array(begins, np.int64), np.array(ends, np.int64), unclean_from_ns)
