"""Scenarios of the quorum simulation. A scenario can be printed, and this text can be run again."""

from dataclasses import dataclass, field
from enum import Enum
from random import Random

FAULTY_MS = 4000


class FaultKind(Enum):
    """Kinds of faults. Cuts, crashes and kills end after `Fault.for_ms`."""

    CRASH = "crash"  # loss of power and of unflushed data; the node restarts after the fault
    KILL = "kill"  # end of the process without loss of data
    STOP = "stop"  # clean shutdown
    ISOLATE = "isolate"  # no messages in or out
    DEAF = "deaf"  # no messages in
    MUTE = "mute"  # no messages out
    PARTITION = "partition"  # half of the nodes, from `node` on, are cut off from the others
    RESIGN = "resign"  # resignation, if the node is the leader
    SNAPSHOT = "snapshot"  # take a snapshot and delete the log before it


@dataclass(frozen=True)
class Fault:
    """One fault.

    :param node: node id; it is taken modulo the number of nodes.
    :param for_ms: duration of a cut, or time until the node restarts; other kinds ignore it.
    """

    at_ms: int
    kind: FaultKind
    node: int
    for_ms: int = 0


@dataclass(frozen=True)
class Scenario:
    """Settings and faults of a simulation.

    :param drop: share of messages that are lost.
    :param slow: share of messages that are delayed by up to 800 ms.
    :param jitter_ms: maximal random part of election timeouts. If it is small, elections collide.
    :param crashes_after_vote: share of votes after which the voter loses its power and restarts at once.
    :param crashes_after_truncation: share of truncations after which the node loses its power and restarts at once.
    :param crashes_midway: share of all events in which the power fails between two changes of the disk.
    :param faulty_ms: duration of the phase with faults.
    """

    seed: int
    voters: int = 3
    observers: int = 0
    faults: tuple[Fault, ...] = field(default=())
    drop: float = 0.0
    slow: float = 0.0
    jitter_ms: int = 1000
    crashes_after_vote: float = 0.0
    crashes_after_truncation: float = 0.0
    crashes_midway: float = 0.0
    faulty_ms: int = FAULTY_MS

    @classmethod
    def generate(cls, seed: int) -> "Scenario":
        """Generate faults of all kinds."""
        random = Random(seed)
        voters = random.choice((1, 3, 3, 3, 5))
        observers = random.choice((0, 0, 1, 2))
        nodes = voters + observers
        faults = _generate_faults(random, tuple(FaultKind), nodes, random.randrange(4, 40))
        drop, slow = random.choice((0.0, 0.02, 0.1)), random.choice((0.0, 0.02, 0.1))
        return cls(seed, voters, observers, faults, drop, slow)

    @classmethod
    def generate_storm(cls, seed: int) -> "Scenario":
        """Generate frequent elections, with crashes of voters."""
        random = Random(seed)
        kinds = (FaultKind.CRASH, FaultKind.KILL, FaultKind.KILL, FaultKind.RESIGN, FaultKind.RESIGN, FaultKind.ISOLATE)
        voters = random.choice((3, 3, 5))
        faults = _generate_faults(random, kinds, voters, random.randrange(60, 300))
        jitter_ms, crashes_after_vote = random.choice((2, 10, 50)), random.choice((0.0, 0.5))
        return cls(seed, voters, 0, faults, drop=0.02, jitter_ms=jitter_ms, crashes_after_vote=crashes_after_vote)

    @classmethod
    def generate_split_votes(cls, seed: int) -> "Scenario":
        """Generate simultaneous restarts and election timeouts of all nodes, and crashes after votes."""
        random = Random(seed)
        voters = random.choice((3, 5))
        times_ms = range(400, FAULTY_MS // 2, 600)
        faults = tuple(Fault(at_ms, FaultKind.KILL, node) for at_ms in times_ms for node in range(voters))
        return cls(seed, voters, 0, faults, jitter_ms=3, crashes_after_vote=0.7, faulty_ms=FAULTY_MS // 2)

    @classmethod
    def generate_duels(cls, seed: int) -> "Scenario":
        """Generate two candidates in one epoch, and a crash of the third node after its vote. Its vote must persist."""
        random = Random(seed)
        late = Fault(random.randrange(60, 120), FaultKind.KILL, random.randrange(3))
        return cls(seed, 3, 0, (late,), jitter_ms=1, crashes_after_vote=1.0, faulty_ms=600)

    @classmethod
    def generate_silences(cls, seed: int) -> "Scenario":
        """Generate cuts of a node or of half of the nodes. Each lasts longer than the leader's check-quorum timeout."""
        random = Random(seed)
        kinds = (FaultKind.ISOLATE, FaultKind.DEAF, FaultKind.PARTITION)
        starts_ms = range(600, FAULTY_MS - 1200, 700)
        return cls(seed, 3, 0, tuple(Fault(at, random.choice(kinds), random.randrange(3), 1200) for at in starts_ms))

    @classmethod
    def generate_installations(cls, seed: int) -> "Scenario":
        """Generate isolated nodes that later install snapshots of other nodes, and power failures during installs."""
        random = Random(seed)
        faults = []
        for at_ms in range(500, FAULTY_MS // 2 - 400, 400):
            behind = random.randrange(3)
            faults.append(Fault(at_ms, FaultKind.ISOLATE, behind, 200))
            faults += [Fault(at_ms + 150, FaultKind.SNAPSHOT, (behind + step) % 3) for step in (1, 2)]
        return cls(seed, 3, 0, tuple(faults), crashes_midway=0.04, faulty_ms=FAULTY_MS // 2)

    @classmethod
    def generate_power_cuts(cls, seed: int) -> "Scenario":
        """Generate diverging logs, truncations and snapshots, and power failures during these."""
        random = Random(seed)
        kinds = (FaultKind.CRASH, FaultKind.ISOLATE, FaultKind.SNAPSHOT)
        faults = _generate_faults(random, kinds, 3, random.randrange(40, 150))
        return cls(seed, 3, 0, faults, crashes_after_truncation=0.5, crashes_midway=random.choice((0.0, 0.02)))


def _generate_faults(random: Random, kinds: tuple[FaultKind, ...], nodes: int, count: int) -> tuple[Fault, ...]:
    durations_ms = (0, 30, 200, 1000)
    return tuple(
        Fault(random.randrange(FAULTY_MS), random.choice(kinds), random.randrange(nodes), random.choice(durations_ms))
        for _ in range(count)
    )
