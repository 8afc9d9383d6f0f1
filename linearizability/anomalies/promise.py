"""The promise table: whether, and for how long, Kafka promises to keep a committed record.

The rows of the table are `RULES`, which are shown on the page [promises](promises.md#what-is-kept): the first rule that
fits decides. The checks evaluate the table for each topic partition, again whenever a loss of content starts or ceases
to count, or unclean elections start to count.

Choices that the table leaves open. A promise ends at the first moment at or after the commit at which a rule releases
the record, so a loss shown *before* a power cut is still a violation. A loss of content on a replica counts from the
injection until `states` shows a full ISR in the response to a request that was sent after the heal (an earlier ISR may
still list the dead node). A loss counts only if the node has a replica. If a full ISR was seen, the replicas are the
nodes that any ISR listed; otherwise every node counts as a replica. The ISR is full at `replication.factor` members or,
if that is unknown, at the largest size ever seen. An unclean election counts from the first moment at which two things
had happened: it had been permitted or requested, and a fault had been injected on any node. (Elections and changes of
settings do not count as faults here.) It counts until the end of the run.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from linearizability.anomalies.faults import NEVER_NS
from linearizability.anomalies.settings import RETENTION_MS_DEFAULT, Settings

Int64s = npt.NDArray[np.int64]

ALL: Final = -1
"""The value of `acks` for all in-sync replicas."""
READ: Final = 2
"""The value in place of `acks` for a record that was read. The `acks` of its producer do not matter then."""
NOT_PROMISED: Final = -(2**63)
"""The end of a promise that was never made: before every time."""

_ANY_NODE: Final = -1
_EVERY_REPLICA: Final = 2**31
_PRODUCER_ACKS: Final = "https://kafka.apache.org/documentation/#producerconfigs_acks"
_REPLICATED_LOG: Final = "https://kafka.apache.org/documentation/#design_replicatedlog"
_UNCLEAN: Final = "https://kafka.apache.org/documentation/#topicconfigs_unclean.leader.election.enable"
_KIP_966: Final = "https://cwiki.apache.org/confluence/display/KAFKA/KIP-966%3A+Eligible+Leader+Replicas"


@dataclass(frozen=True, slots=True)
class Stake:
    """The facts at one moment that decide whether Kafka promises to keep a committed record.

    :ivar acks: the `acks` (0, 1 or ALL) of the acknowledgement that committed the record, or READ.
    :ivar lossy_replicas: how many replicas have lost content since the ISR was last full.
    :ivar unclean_election: an unclean election was permitted or requested, and any node has had a fault.
    :ivar last_in_sync_is_lossy: the last in-sync replica has lost content, in a cluster without eligible leader
        replicas. A history does not show that. The simulation detects it, and records an unclean election.
    """

    acks: int = ALL
    min_insync_replicas: int = 1
    lossy_replicas: int = 0
    unclean_election: bool = False
    last_in_sync_is_lossy: bool = False

    @property
    def replicas_certain(self) -> int:
        """The number of replicas that are certain to have had the record."""
        return 1 if self.acks == READ else max(1, self.min_insync_replicas)


@dataclass(frozen=True, slots=True)
class Rule:
    """One row of the table.

    :ivar when: the condition, as the page shows it.
    :ivar is_kept: whether Kafka promises to keep the record.
    """

    when: str
    fits: Callable[[Stake], bool]
    is_kept: bool
    why: str
    source: str


RULES: Final = (
    Rule(
        "`acks=0`",
        lambda stake: stake.acks == 0,
        False,
        "There is no response, so nothing is acknowledged; a record that the broker rejects is lost as well.",
        _PRODUCER_ACKS,
    ),
    Rule(
        "`acks=1`",
        lambda stake: stake.acks == 1,
        False,
        "Only the leader is certain to have the record. If another replica becomes leader before it has fetched the"
        " record, the record is truncated; so is a record that a deposed leader acknowledges. Once a record was read,"
        " the rules for a record that was read apply.",
        _PRODUCER_ACKS,
    ),
    Rule(
        "an unclean election is enabled (`unclean.leader.election.enable`) or was requested, and any node had a fault",
        lambda stake: stake.unclean_election,
        False,
        "A replica that is out of sync may become leader. Then the records that it lacks are truncated on all other"
        " replicas.",
        _UNCLEAN,
    ),
    Rule(
        "the last in-sync replica has lost content, and there are no eligible leader replicas (KIP-966)",
        lambda stake: stake.last_in_sync_is_lossy,
        False,
        "The replica becomes leader again, because the controller does not know that it has lost content. With KIP-966"
        " a replica whose shutdown was not clean leaves the ISR and the eligible leader replicas when its broker"
        " registers again. A history shows this case by an `election` fault with the argument `unclean`.",
        _KIP_966,
    ),
    Rule(
        "`min.insync.replicas` or more replicas have lost content since the ISR was last full (for a record that was"
        " read: one or more)",
        lambda stake: stake.lossy_replicas >= stake.replicas_certain,
        False,
        "Possibly no other replica had the record. A power cut loses data that was not flushed, and by default Kafka"
        " leaves flushing to the operating system: it relies on replication, and on the independence of faults.",
        _REPLICATED_LOG,
    ),
    Rule(
        "any other fault of any number of nodes: kills, pauses, cuts, delays, clock changes, disk errors",
        lambda _: True,
        True,
        "A committed record is in every in-sync replica, and the next leader is an in-sync replica, which has kept its"
        " log. While no in-sync replica is alive, the partition has no leader.",
        _REPLICATED_LOG,
    ),
)
"""In order: the first that fits decides."""


def rule_of(stake: Stake) -> Rule:
    """Return the rule that decides whether a record is kept."""
    return next(rule for rule in RULES if rule.fits(stake))


LASTING_ACKS: Final = tuple(acks for acks in (0, 1, ALL) if rule_of(Stake(acks)).is_kept)
"""The values of `acks` with which an acknowledgement is a promise."""


@dataclass(frozen=True, slots=True)
class Loss:
    """A node that lost content (`_ANY_NODE`: every node may have), and the times of injection and heal."""

    node: int
    inject_ns: int
    heal_ns: int


@dataclass(frozen=True, slots=True)
class TopicRules:
    """The settings and faults of a run that affect one topic."""

    min_insync_replicas: int
    replication_factor: int | None
    retention: bool
    compaction: bool
    unclean_from_ns: int
    losses: tuple[Loss, ...]


@dataclass(frozen=True, slots=True)
class FullIsr:
    """The replicas of one partition, and when `states` shows a full ISR; `replicas` is None if it never does."""

    replicas: frozenset[int] | None
    requested_ns: tuple[int, ...] = ()
    received_ns: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Promise:
    """The ends of promises in one partition: of records acknowledged with LASTING_ACKS, and of records read."""

    acknowledged: "Periods"
    read: "Periods"


@dataclass(frozen=True, slots=True)
class Periods:
    """The periods [begin, end) in which a record may be lost, in order."""

    begins_ns: Int64s
    ends_ns: Int64s

    def end_ns(self, committed_ns: Int64s) -> Int64s:
        """Return, per commit, when its promise ended: NEVER_NS if it did not, NOT_PROMISED if there was none."""
        following = np.searchsorted(self.begins_ns, committed_ns, side="right")
        until = np.append(NOT_PROMISED, self.ends_ns)[following]
        inside = (committed_ns < until) | (until == NEVER_NS)
        return np.where(inside, NOT_PROMISED, np.append(self.begins_ns, NEVER_NS)[following])


def topic_rules(settings: Settings, topic: str) -> TopicRules:
    """Return what the promise table depends on for a topic. Of several values in force, the most lenient one counts.

    For `replication.factor` the highest value counts.
    """
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
    broken = [fault.inject_ns for fault in settings.faults if fault.may_shrink_isr]
    return max(min(allowed), min(broken)) if allowed and broken else NEVER_NS


def _losses(settings: Settings, topic: str) -> Iterable[Loss]:
    flushes = settings.numbers(topic, "flush.messages")
    flushed = bool(flushes) and all(value == 1 for value in flushes)
    for fault in settings.faults:
        if fault.loses_content or (fault.is_power and not flushed):
            for node in fault.nodes() or {_ANY_NODE}:
                yield Loss(node, fault.inject_ns, fault.heal_ns)


def partition_promise(rules: TopicRules, isr: FullIsr) -> Promise:
    """Evaluate the promise table for one partition."""
    losses = [
        loss for loss in rules.losses if isr.replicas is None or loss.node == _ANY_NODE or loss.node in isr.replicas
    ]
    spans = [(loss.node, loss.inject_ns, _over_ns(loss, isr)) for loss in losses]
    return Promise(acknowledged=_periods(rules, spans, ALL), read=_periods(rules, spans, READ))


def _over_ns(loss: Loss, isr: FullIsr) -> int:
    """Return when the ISR was first reported full after a loss had healed."""
    return min(
        (received for sent, received in zip(isr.requested_ns, isr.received_ns, strict=True) if sent >= loss.heal_ns),
        default=NEVER_NS,
    )


def _periods(rules: TopicRules, spans: Sequence[tuple[int, int, int]], acks: int) -> Periods:
    """Apply the rules whenever a span of lost content (node, from, over) begins or ends, or unclean elections begin.

    :param acks: ALL or READ.
    """
    edges = {time for _, begin, over in spans for time in (begin, over)} | {rules.unclean_from_ns}
    begins: list[int] = []
    ends: list[int] = []
    for time in sorted(edges - {NEVER_NS}):
        nodes = {node for node, begin, over in spans if begin <= time < over}
        lossy = _EVERY_REPLICA if _ANY_NODE in nodes else len(nodes)
        is_kept = rule_of(Stake(acks, rules.min_insync_replicas, lossy, time >= rules.unclean_from_ns)).is_kept
        if not is_kept and len(begins) == len(ends):
            begins.append(time)
        elif is_kept and len(begins) > len(ends):
            ends.append(time)
    ends += [NEVER_NS] * (len(begins) - len(ends))
    return Periods(np.array(begins, np.int64), np.array(ends, np.int64))
