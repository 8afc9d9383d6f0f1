"""Findings: permitted losses and delays of Kafka, and records that it must keep, each with a round that shows it.

Each finding fixes a configuration and the expected effect. Chaos must find the effect by itself: schedules that show it
are generated from seeds and shrunk (`search_round`, `kafkatrial chaos --find`). The round given here can be read and
run at any time. It must show the effect on Apache Kafka and on the reference broker without a violation.
"""

import difflib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from chaos.live.report import Report
from chaos.live.strategies import FENCED_SOON
from conformance.trial.trial import ClusterSettings, Topic, Trial
from conformance.trial.workloads import STEADY_MS, OneByOne, Pipelined, Retrying, Tail, Workload
from fixtures.faults import Cut, Held, HoldRequests, Isolate, Keeps, Kill, Listener, PowerCut, Reset, Role, Timed
from linearizability.operation import Outcome

ALL: Final = -1
"""The value of acks=all in the protocol."""
_HELD_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class ChaosFinding:
    """An effect of faults on a fixed configuration, and a trial that shows it.

    :ivar name: name on the command line.
    :ivar text: the effect.
    :ivar trial: a trial that shows the effect.
    :ivar is_seen: returns whether a round of this configuration without a violation has shown the effect.
    :ivar kinds: kinds of faults in the schedules that are generated for the search.
    :ivar must_be_shown: whether every round of this configuration must show the finding, because it is that nothing is
        lost. A round then counts only if all faults of its schedule were injected, because without faults nothing is
        lost anyway.
    """

    name: str
    text: str
    trial: Trial
    is_seen: Callable[[Report], bool]
    kinds: tuple[str, ...]
    must_be_shown: bool = False

    def shows(self, report: Report) -> bool:
        """Whether a round shows the finding without a violation."""
        return not report.violations and self.is_seen(report) and (not self.must_be_shown or _has_all_faults(report))


class UnknownFindingError(Exception):
    """Name that no finding has. The message is one line."""


def finding(name: str) -> ChaosFinding:
    """Return a finding by name. Raises `UnknownFindingError`."""
    if name not in FINDINGS:
        close = difflib.get_close_matches(name, FINDINGS, n=1)
        meant = f"did you mean {close[0]}?" if close else f"there are {', '.join(FINDINGS)}"
        raise UnknownFindingError(f"{name}: no finding of that name; {meant}")
    return FINDINGS[name]


def _round(
    workloads: tuple[Workload, ...],
    *schedule: Timed,
    min_insync_replicas: int = 2,
    unclean: bool = False,
    flushes: bool = False,
) -> Trial:
    properties = {
        "min.insync.replicas": str(min_insync_replicas),
        "unclean.leader.election.enable": str(unclean).lower(),
    }
    if flushes:
        properties["flush.messages"] = "1"
    return Trial(
        cluster=ClusterSettings(properties=FENCED_SOON),
        topics=(Topic(properties=tuple(properties.items())),),
        clients=workloads,
        schedule=schedule,
        steady_ms=STEADY_MS,
    )


def _has_all_faults(report: Report) -> bool:
    injected = report.facts.injected
    return len(injected) == len(report.trial.schedule) and all(each.found and not each.rejection for each in injected)


def _has_killed(report: Report) -> bool:
    return any(each.found and isinstance(each.timed.fault, Kill) for each in report.facts.injected)


def _has_lost(report: Report, acks: int) -> bool:
    return report.lost[acks] > 0


def _has_kept(report: Report, acks: int) -> bool:
    return report.lost[acks] == 0 and report.produced[acks, Outcome.OK] > 0


def _is_held(report: Report) -> bool:
    return report.silences_s.get(ALL, 0.0) > _HELD_S > report.silences_s.get(1, _HELD_S)


_NO_REPLICATION = Isolate(Role.LEADER, keeps=Keeps.NOTHING, listener=Listener.REPLICATION)
"""Followers get nothing from their leader; all other links work."""
_SUDDEN: Final = (Timed(0, _NO_REPLICATION, 1_500), Timed(1_000, Kill(Role.LEADER), 5_000))
"""The leader is killed while followers that lack its last records are still in the ISR."""
_LONELY: Final = (Timed(0, _NO_REPLICATION, 9_000), Timed(6_000, Kill(Role.LEADER), 6_000))
"""The ISR has shrunk to the leader, which is then down for longer than its session timeout."""
_BLACKOUT: Final = (Timed(3_000, PowerCut(), 1_000),)
_PRODUCE: Final = 0
"""API key of Produce."""
_UNACKNOWLEDGED: Final = (
    Timed(0, HoldRequests(Role.CLIENTS, Role.LEADER, (_PRODUCE,), held=Held.ANSWERS), 4_000),
    *(Timed(1_500, Kill(node), 2_000) for node in (1, 2, 3)),
    *(Timed(2_500, Reset(Role.CLIENTS, node)) for node in (1, 2, 3)),
)
"""All nodes are killed while the responses to the batches in flight are held, and those responses are lost."""

_EVERY: Final = (
    ChaosFinding(
        "acks-1-lost-at-a-leader-kill",
        "Records that a leader acknowledged with acks=1 are lost when it is killed before its followers have them.",
        _round((OneByOne(acks=1, pause_ms=20), Tail()), *_SUDDEN),
        lambda report: _has_lost(report, 1) and _has_killed(report),
        ("lonely-leader", "kill"),
    ),
    ChaosFinding(
        "acks-all-kept-at-a-leader-kill",
        "Records acknowledged with acks=all are not lost when the leader is killed.",
        _round((OneByOne(pause_ms=20), Tail()), *_SUDDEN),
        lambda report: _has_kept(report, ALL) and _has_killed(report) and report.coverage["leader elected"] > 0,
        ("lonely-leader", "kill"),
        must_be_shown=True,
    ),
    ChaosFinding(
        "unclean-election-loses",
        "With unclean.leader.election.enable, records acknowledged with acks=all are lost when a replica that"
        " was out of sync becomes the leader.",
        _round((OneByOne(), Tail()), *_LONELY, min_insync_replicas=1, unclean=True),
        lambda report: _has_lost(report, ALL),
        ("lonely-leader",),
    ),
    ChaosFinding(
        "clean-election-keeps",
        "Without unclean.leader.election.enable, a partition whose ISR is down has no leader until a replica of the ISR"
        " is back, and nothing is lost.",
        _round((OneByOne(), Tail()), *_LONELY, min_insync_replicas=1),
        lambda report: _has_kept(report, ALL) and report.coverage["partition without a leader"] > 0,
        ("lonely-leader",),
        must_be_shown=True,
    ),
    ChaosFinding(
        "too-few-in-sync",
        "With fewer replicas in sync than min.insync.replicas, acks=all is rejected with NOT_ENOUGH_REPLICAS.",
        _round((OneByOne(), Tail()), Timed(0, Kill(Role.FOLLOWER), 6_000), min_insync_replicas=3),
        lambda report: report.errors[ALL, "NOT_ENOUGH_REPLICAS"] > 0 and _has_kept(report, ALL),
        ("kill", "pause"),
    ),
    ChaosFinding(
        "acks-all-waits-for-a-follower",
        "While a follower that is in sync is cut off, acks=all waits until the ISR has shrunk; acks=1 does not.",
        _round(
            (OneByOne(), OneByOne(acks=1)),
            Timed(0, Cut(Role.FOLLOWER, Role.LEADER, keeps=Keeps.NOTHING, listener=Listener.REPLICATION), 8_000),
        ),
        lambda report: _is_held(report) and report.coverage["ISR shrunk"] > 0,
        ("cut", "isolate"),
    ),
    ChaosFinding(
        "deposed-leader",
        "A leader that is cut off from the cluster and does not know that it is deposed acknowledges records with"
        " acks=1, which are truncated when it is back (permitted), but none with acks=all.",
        _round((OneByOne(), OneByOne(acks=1)), Timed(0, Isolate(Role.LEADER, keeps=Keeps.NOTHING), 10_000)),
        lambda report: _has_lost(report, 1) and _has_kept(report, ALL) and report.coverage["leader elected"] > 0,
        ("deposed-leader", "isolate"),
    ),
    ChaosFinding(
        "power-cut-of-all-loses",
        "A power cut of all replicas at once loses records acknowledged with acks=all: by default nothing is flushed.",
        _round((OneByOne(), Pipelined(), Tail()), *_BLACKOUT),
        lambda report: _has_lost(report, ALL),
        ("blackout",),
    ),
    ChaosFinding(
        "power-cut-of-all-with-flush-keeps",
        "With flush.messages=1, a power cut of all replicas at once loses no record acknowledged with acks=all.",
        _round((OneByOne(), Pipelined(), Tail()), *_BLACKOUT, flushes=True),
        lambda report: _has_kept(report, ALL),
        ("blackout",),
        must_be_shown=True,
    ),
    ChaosFinding(
        "idempotent-duplicate-after-restart",
        "An idempotent producer with several requests in flight writes records twice when the leader restarts before it"
        " has acknowledged them: a producer snapshot holds the last batch alone, and the client bumps its epoch.",
        _round((Retrying(), Tail()), *_UNACKNOWLEDGED),
        lambda report: report.permitted.get("duplicate", 0) > 0 and _has_killed(report) and _has_kept(report, ALL),
        ("hold-requests", "kill", "reset"),
    ),
)
FINDINGS: Final = {each.name: each for each in _EVERY}


def search_round(sought: ChaosFinding, drawn: Trial) -> Trial:
    """Return the finding's cluster, topic and clients, with the seed and the schedule of a generated round."""
    return replace(sought.trial, seed=drawn.seed, schedule=drawn.schedule)
