"""Saved rounds that detect the defects on real processes: trials with clients, and with faults that reveal a defect.

`python -m chaos.defects.live` runs the round of each defect on brokers with the defect, where it must show a violation,
and on the clean broker, where it must show none. A target with a defect can also run rounds that `kafkatrial chaos`
generates from seeds: `kafkatrial chaos --target defective:NAME --minutes 10`.
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
_SHORT_TIMEOUTS: Final = (
    ("broker.heartbeat.interval.ms", "300"),
    ("broker.session.timeout.ms", "2000"),
    ("replica.lag.time.max.ms", "3000"),
    ("controller.quorum.fetch.timeout.ms", "1000"),
)
"""Properties that reduce the time allowed for recovery (`linearizability.anomalies.healing`) to 46 seconds."""
_LATE_ELECTION: Final = Timed(9_000, Elect())
"""An election of the preferred leader that prolongs the round, so that clients observe the healed node."""


def _round(*schedule: Timed, flushes: bool = False, rolls: bool = False, load: tuple[Workload, ...] = _LOAD) -> Trial:
    properties = [("min.insync.replicas", "2")]
    if flushes:
        properties.append(("flush.messages", "1"))
    if rolls:
        properties.append(("segment.ms", "300"))
    return Trial(
        cluster=ClusterSettings(properties=_SHORT_TIMEOUTS),
        topics=(Topic(properties=tuple(properties)),),
        clients=load,
        schedule=schedule,
        steady_ms=1_000,
        healed_ms=500,
    )


def _failing_appends(node: Role) -> DiskError:
    return DiskError(node, operation=Operation.APPEND, files=FileKind.LOG)


BLACKOUT: Final = _round(Timed(2_000, PowerCut(), 500), flushes=True)
"""Power cut of all nodes at once, with a topic that requires a flush of each batch."""
BLACKOUT_OF_SEGMENTS: Final = _round(Timed(2_000, PowerCut(), 500), flushes=True, rolls=True)
"""The same power cut, while the log starts a new segment three times a second."""
BLACKOUT_OF_BROKEN_DISKS: Final = _round(
    *(Timed(1_500, DiskError(node, operation=Operation.FLUSH), 2_500) for node in _NODES),
    Timed(3_500, PowerCut(), 1_000),
    flushes=True,
)
"""Power cut of all nodes while every flush fails."""
MANY_KILLED: Final = _round(*(Timed(2_000, Kill(node), 500) for node in _NODES))
"""All processes are killed at the same moment, without a power cut."""
KILLS: Final = _round(Timed(500, Kill(Role.LEADER), 3_000), Timed(7_000, Kill(Role.LEADER), 3_000))
"""The leader is killed and restarted, and then the leader of that time."""
FOLLOWERS_WITHOUT_DISKS: Final = _round(
    *(Timed(1_500, _failing_appends(role), 2_500) for role in (Role.FOLLOWER, Role.LAST_FOLLOWER)),
    Timed(3_000, Kill(Role.LEADER), 9_000),
)
"""Both followers fail to append to their logs. Meanwhile the leader is killed; it is down for nine seconds."""
TORN_ONE_BY_ONE: Final = _round(
    *(Timed(500 + 4_000 * number, PowerCut((node,)), 500) for number, node in enumerate((*_NODES, *_NODES)))
)
"""Six power cuts of single nodes, one after the other. The other nodes lose nothing."""
REASSIGNED_AND_BACK: Final = _round(Timed(500, Reassign((1, 2))), Timed(3_500, Reassign((1, 2, 3))), _LATE_ELECTION)
"""One reassignment removes the replica on node 3, and another one adds it again."""
DEPOSED: Final = _round(
    Timed(500, Isolate(Role.LEADER, keeps=Keeps.NOTHING), 6_000), load=(OneByOne(pause_ms=20), OneByOne(acks=1), Tail())
)
"""The leader is isolated from the other nodes, but not from clients. Later it must truncate what it has appended."""
STOPS_AND_BLACKOUT: Final = _round(
    *(Timed(500 + 4_000 * number, ShutDown(node), 1_500) for number, node in enumerate(_NODES)),
    Timed(14_000, PowerCut(), 500),
)
"""Each node in turn is shut down and restarted; then there is a power cut of all nodes."""
RESETS: Final = _round(
    *(Timed(500 * number, Reset(Role.CLIENTS, node), 0) for number in range(1, 9) for node in _NODES)
)
"""All connections of clients are reset eight times."""
CLOCK_SET: Final = _round(Timed(1_000, ClockJump(Role.LEADER, 3_600_000), 3_000), _LATE_ELECTION)
"""The leader's wall clock is an hour ahead for three seconds."""
LEADER_GONE: Final = _round(Timed(500, Kill(Role.LEADER), 70_000), load=(Pipelined(), *_LOAD))
"""The leader is killed, and is down for longer than the time allowed for the election of another one."""

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
"""The round of each defect, by the defect's name."""
