"""What a simulation is made from: a value, so that a failing one can be printed and run again."""

from dataclasses import dataclass, field
from enum import Enum
from random import Random

FAULTY_MS = 4000


class FaultKind(Enum):
    CRASH = "crash"  # power and un-flushed data are lost; the node starts again when the fault is over
    KILL = "kill"  # the process is lost, the data is not
    STOP = "stop"  # a clean shutdown
    ISOLATE = "isolate"  # nothing goes in or out
    DEAF = "deaf"  # nothing goes in
    MUTE = "mute"  # nothing goes out
    PARTITION = "partition"  # `node` and those after it, half of all, against the rest
    RESIGN = "resign"  # if it leads
    SNAPSHOT = "snapshot"  # take one, and let the log begin there


@dataclass(frozen=True)
class Fault:
    at_ms: int
    kind: FaultKind
    node: int
    for_ms: int = 0


@dataclass(frozen=True)
class Scenario:
    """`drop` is the share of messages that are lost, `slow` of those that take far longer than usual.

    With little `jitter_ms` the nodes lose patience nearly at once, so that elections collide. `falls_after_vote` is the
    share of votes after which the voter loses its power, and starts again at once; truncations likewise.
    `falls_midway` is the share of all events during which the power fails, between two changes of a disk.
    """

    seed: int
    voters: int = 3
    observers: int = 0
    faults: tuple[Fault, ...] = field(default=())
    drop: float = 0.0
    slow: float = 0.0
    jitter_ms: int = 1000
    falls_after_vote: float = 0.0
    falls_after_truncation: float = 0.0
    falls_midway: float = 0.0
    faulty_ms: int = FAULTY_MS

    @classmethod
    def draw(cls, seed: int) -> "Scenario":
        """All kinds of faults, and none in particular."""
        random = Random(seed)
        voters = random.choice((1, 3, 3, 3, 5))
        observers = random.choice((0, 0, 1, 2))
        nodes = voters + observers
        faults = _draw_faults(random, tuple(FaultKind), nodes, random.randrange(4, 40))
        drop, slow = random.choice((0.0, 0.02, 0.1)), random.choice((0.0, 0.02, 0.1))
        return cls(seed, voters, observers, faults, drop, slow)

    @classmethod
    def draw_storm(cls, seed: int) -> "Scenario":
        """One election after the other, and nodes that fall while they vote."""
        random = Random(seed)
        kinds = (FaultKind.CRASH, FaultKind.KILL, FaultKind.KILL, FaultKind.RESIGN, FaultKind.RESIGN, FaultKind.ISOLATE)
        voters = random.choice((3, 3, 5))
        faults = _draw_faults(random, kinds, voters, random.randrange(60, 300))
        jitter_ms, falls_after_vote = random.choice((2, 10, 50)), random.choice((0.0, 0.5))
        return cls(seed, voters, 0, faults, drop=0.02, jitter_ms=jitter_ms, falls_after_vote=falls_after_vote)

    @classmethod
    def draw_split_votes(cls, seed: int) -> "Scenario":
        """All nodes start at once, again and again, lose patience together, and fall when they have voted."""
        random = Random(seed)
        voters = random.choice((3, 5))
        times_ms = range(400, FAULTY_MS // 2, 600)
        faults = tuple(Fault(at_ms, FaultKind.KILL, node) for at_ms in times_ms for node in range(voters))
        return cls(seed, voters, 0, faults, jitter_ms=3, falls_after_vote=0.7, faulty_ms=FAULTY_MS // 2)

    @classmethod
    def draw_duels(cls, seed: int) -> "Scenario":
        """Two nodes run for one epoch, and the third falls when it has voted for one of them: it must know that."""
        random = Random(seed)
        late = Fault(random.randrange(60, 120), FaultKind.KILL, random.randrange(3))
        return cls(seed, 3, 0, (late,), jitter_ms=1, falls_after_vote=1.0, faulty_ms=600)

    @classmethod
    def draw_silences(cls, seed: int) -> "Scenario":
        """Nodes that nobody hears, or that hear nobody, for longer than a leader may be without its followers."""
        random = Random(seed)
        kinds = (FaultKind.ISOLATE, FaultKind.DEAF, FaultKind.PARTITION)
        starts_ms = range(600, FAULTY_MS - 1200, 700)
        return cls(seed, 3, 0, tuple(Fault(at, random.choice(kinds), random.randrange(3), 1200) for at in starts_ms))

    @classmethod
    def draw_installations(cls, seed: int) -> "Scenario":
        """A node falls behind the others' snapshots, again and again, and loses its power while it installs one."""
        random = Random(seed)
        faults = []
        for at_ms in range(500, FAULTY_MS // 2 - 400, 400):
            behind = random.randrange(3)
            faults.append(Fault(at_ms, FaultKind.ISOLATE, behind, 200))
            faults += [Fault(at_ms + 150, FaultKind.SNAPSHOT, (behind + step) % 3) for step in (1, 2)]
        return cls(seed, 3, 0, tuple(faults), falls_midway=0.04, faulty_ms=FAULTY_MS // 2)

    @classmethod
    def draw_power_cuts(cls, seed: int) -> "Scenario":
        """Logs that part, are cut and replaced, and power that fails meanwhile."""
        random = Random(seed)
        kinds = (FaultKind.CRASH, FaultKind.ISOLATE, FaultKind.SNAPSHOT)
        faults = _draw_faults(random, kinds, 3, random.randrange(40, 150))
        return cls(seed, 3, 0, faults, falls_after_truncation=0.5, falls_midway=random.choice((0.0, 0.02)))


def _draw_faults(random: Random, kinds: tuple[FaultKind, ...], nodes: int, count: int) -> tuple[Fault, ...]:
    durations_ms = (0, 30, 200, 1000)
    return tuple(
        Fault(random.randrange(FAULTY_MS), random.choice(kinds), random.randrange(nodes), random.choice(durations_ms))
        for _ in range(count)
    )
