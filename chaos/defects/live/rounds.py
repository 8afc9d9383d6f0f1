"""Rounds that detect the defects on real processes: clients, and the faults under which a defect has an effect.

A round is a trial that is the same for every target. On the clean broker each round must show no violation:
`python -m chaos.defects.live` runs it with the defect and on the clean broker. The rounds that `kafkatrial chaos`
generates from seeds can run with a defect, too: `kafkatrial chaos --target defective:NAME --minutes 10`.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from conformance.trial.trial import ClusterSettings, Topic, Trial
from conformance.trial.workloads import OneByOne, Pipelined, Tail, Workload
from fixtures.faults import (
    ClockJump,
    DiskError,
    Elect,
    FileKind,
    Isolate,
    Keeps,
    Kill,
    Operation,
    PowerCut,
    Reassign,
    Reset,
    Role,
    ShutDown,
    Timed,
)

_NODES: Final = (1, 2, 3)
_LOAD: Final = (OneByOne(pause_ms=20), OneByOne(idempotent=True, pause_ms=50), Tail())
_QUICK: Final = (
    ("broker.heartbeat.interval.ms", "300"),
    ("broker.session.timeout.ms", "2000"),
    ("replica.lag.time.max.ms", "3000"),
    ("controller.quorum.fetch.timeout.ms", "1000"),
)
"""These properties shorten the time allowed for recovery (`linearizability.anomalies.healing`) to 46 seconds."""


_LATER: Final = Timed(9_000, Elect())
"""A late election of the preferred leader: it prolongs the round, so that clients observe the healed node."""


def _round(*schedule: Timed, flushes: bool = False, rolls: bool = False, load: tuple[Workload, ...] = _LOAD) -> Trial:
    properties = [("min.insync.replicas", "2")]
    if flushes:
        properties.append(("flush.messages", "1"))
    if rolls:
        properties.append(("segment.ms", "300"))
    return Trial(
        cluster=ClusterSettings(properties=_QUICK),
        topics=(Topic(properties=tuple(properties)),),
        clients=load,
        schedule=schedule,
        steady_ms=1_000,
        healed_ms=500,
    )


def _rejects_writes(node: Role) -> DiskError:
    return DiskError(node, operation=Operation.APPEND, files=FileKind.LOG)


BLACKOUT: Final = _round(Timed(2_000, PowerCut(), 500), flushes=True)
"""Power cut of all nodes at once; the topic requires a flush of each batch."""
BLACKOUT_OF_SEGMENTS: Final = _round(Timed(2_000, PowerCut(), 500), flushes=True, rolls=True)
"""The same, with a new segment three times a second."""
BLACKOUT_OF_BROKEN_DISKS: Final = _round(
    *(Timed(1_500, DiskError(node, operation=Operation.FLUSH), 2_500) for node in _NODES),
    Timed(3_500, PowerCut(), 1_000),
    flushes=True,
)
"""Power cut while every flush fails."""
MANY_KILLED: Final = _round(*(Timed(2_000, Kill(node), 500) for node in _NODES))
"""All processes are killed at the same moment, without a power cut."""
KILLS: Final = _round(Timed(500, Kill(Role.LEADER), 3_000), Timed(7_000, Kill(Role.LEADER), 3_000))
"""The leader is killed, and then the next one."""
FOLLOWERS_WITHOUT_DISKS: Final = _round(
    *(Timed(1_500, _rejects_writes(role), 2_500) for role in (Role.FOLLOWER, Role.LAST_FOLLOWER)),
    Timed(3_000, Kill(Role.LEADER), 9_000),
)
"""Followers cannot write; meanwhile the leader is killed, and is down for nine seconds."""
TORN_ONE_BY_ONE: Final = _round(
    *(Timed(500 + 4_000 * number, PowerCut((node,)), 500) for number, node in enumerate((*_NODES, *_NODES)))
)
"""Power cuts of single nodes, one after the other. Each cut loses a part of the unflushed bytes of its node only."""
REASSIGNED_AND_BACK: Final = _round(Timed(500, Reassign((1, 2))), Timed(3_500, Reassign((1, 2, 3))), _LATER)
"""The partition is reassigned without the replica on node 3, and then with it again."""
DEPOSED: Final = _round(
    Timed(500, Isolate(Role.LEADER, keeps=Keeps.NOTHING), 6_000), load=(OneByOne(pause_ms=20), OneByOne(acks=1), Tail())
)
"""A leader is isolated from the other nodes but not from clients; later it must truncate what it appended meanwhile."""
STOPS_AND_BLACKOUT: Final = _round(
    *(Timed(500 + 4_000 * number, ShutDown(node), 1_500) for number, node in enumerate(_NODES)),
    Timed(14_000, PowerCut(), 500),
)
"""Every node is shut down and restarted, one after the other; then a power cut of all nodes."""
RESETS: Final = _round(
    *(Timed(500 * number, Reset(Role.CLIENTS, node), 0) for number in range(1, 9) for node in _NODES)
)
"""Connections of clients are reset repeatedly."""
CLOCK_SET: Final = _round(Timed(1_000, ClockJump(Role.LEADER, 3_600_000), 3_000), _LATER)
"""The wall clock of the leader is an hour ahead for 3 s."""

LEADER_GONE: Final = _round(Timed(500, Kill(Role.LEADER), 70_000), load=(Pipelined(), *_LOAD))
"""The leader is killed, and is down for longer than Kafka may take to elect another one."""

ROUNDS: Final[Mapping[str, Trial]] = MappingProxyType(
    {
        "take-a-write-for-durable": BLACKOUT,
        "flush-no-directory": BLACKOUT_OF_SEGMENTS,
        "rename-before-the-flush": BLACKOUT,
        "write-checkpoints-in-place": BLACKOUT,
        "write-the-identity-without-a-flush": BLACKOUT,
        "swallow-a-failed-append": FOLLOWERS_WITHOUT_DISKS,
        "swallow-a-failed-flush": BLACKOUT_OF_BROKEN_DISKS,
        "write-where-the-descriptor-stands": KILLS,
        "keep-deleted-logs-open": REASSIGNED_AND_BACK,
        "pass-over-truncation": DEPOSED,
        "append-to-a-buffered-stream": MANY_KILLED,
        "keep-the-marker-of-a-clean-stop": STOPS_AND_BLACKOUT,
        "stop-accepting-after-a-reset": RESETS,
        "end-with-a-connection": RESETS,
        "count-connections-that-are-gone": RESETS,
        "measure-time-by-the-wall-clock": CLOCK_SET,
        "pass-over-flush-messages": BLACKOUT,
        "flush-before-the-append": BLACKOUT,
        "leave-the-directory-unflushed": BLACKOUT_OF_SEGMENTS,
        "take-a-file-for-durable-after-one-flush": BLACKOUT,
        "write-the-vote-without-a-flush": BLACKOUT,
        "acknowledge-metadata-before-the-flush": BLACKOUT,
        "keep-the-torn-batch": TORN_ONE_BY_ONE,
        "recover-without-checksums": TORN_ONE_BY_ONE,
        "never-fence-inactive-brokers": LEADER_GONE,
    }
)
