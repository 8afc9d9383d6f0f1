"""Hypothesis strategies for schedules of faults, by kind of fault.

A schedule is a list of groups. A group is a single fault, or a story: several related faults. The faults of a
story are drawn, too. Times between groups and durations of faults are drawn by `fault_moves`, each from one of three
ranges.
"""

from collections.abc import Callable
from functools import cache
from typing import Final

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from chaos.simulation import fault_stories
from chaos.simulation.choice import chosen
from chaos.simulation.fault_moves import AT_ONCE, Group, ends, gaps, keeps, listeners, nodes, one, replicas, story
from chaos.simulation.shape import Shape
from fixtures.faults import (
    AddBroker,
    AnyFault,
    ClockDrift,
    ClockJump,
    Configure,
    Cut,
    Damage,
    DamageDisk,
    DiskError,
    DiskFull,
    Elect,
    Errno,
    FileKind,
    FlipBit,
    HalfOpen,
    Isolate,
    Keeps,
    Kill,
    Listener,
    Node,
    Operation,
    Pause,
    PowerCut,
    Reassign,
    Reset,
    RestartWith,
    Ring,
    Role,
    ShutDown,
    Slow,
    SlowFlush,
    Split,
    Timed,
    Unregister,
    Wipe,
)

GROUPS_MAX: Final = 4


def schedules(shape: Shape, kinds: tuple[str, ...]) -> SearchStrategy[tuple[Timed, ...]]:
    """Return a strategy for schedules of faults of these kinds, ordered by time."""
    return schedules_of(chosen(*(_groups(kind, shape) for kind in kinds))) if kinds else st.just(())


@cache
def _groups(kind: str, shape: Shape) -> SearchStrategy[Group]:
    return SIMULATED_KINDS[kind](shape)


def schedules_of(groups: SearchStrategy[Group]) -> SearchStrategy[tuple[Timed, ...]]:
    """Return a strategy for schedules of one to `GROUPS_MAX` of these groups, ordered by time."""
    return st.lists(st.tuples(gaps(), groups), min_size=1, max_size=GROUPS_MAX).map(_in_time)


def _in_time(groups: list[tuple[int, Group]]) -> tuple[Timed, ...]:
    schedule: list[Timed] = []
    begin_ms = 0
    for gap_ms, group in groups:
        begin_ms += gap_ms
        schedule += (Timed(begin_ms + timed.at_ms, timed.fault, timed.for_ms) for timed in group)
    return tuple(sorted(schedule, key=lambda timed: timed.at_ms))


# --- single faults


def _cuts(shape: Shape) -> SearchStrategy[Group]:
    def cut(ends: tuple[Node, Node], both_ways: bool, keeps: Keeps, listener: Listener | None) -> Cut:
        return Cut(ends[0], ends[1], both_ways, keeps, listener)

    return one(st.builds(cut, ends(shape), st.booleans(), keeps(), listeners()))


def _isolations(shape: Shape) -> SearchStrategy[Group]:
    return one(st.builds(Isolate, nodes(shape), st.booleans(), keeps(), listeners()))


def _splits(shape: Shape) -> SearchStrategy[Group]:
    sides = st.lists(nodes(shape), min_size=1, max_size=max(1, shape.nodes // 2), unique=True).map(tuple)
    return one(chosen(st.builds(Split, sides, keeps()), st.builds(Ring, keeps())))


def _slow_links(shape: Shape) -> SearchStrategy[Group]:
    def slow(ends: tuple[Node, Node], delay_ms: int, jitter_ms: int, bytes_per_ms: int | None) -> Slow:
        return Slow(ends[0], ends[1], delay_ms, jitter_ms, bytes_per_ms)

    delays_ms, jitters_ms = st.sampled_from((0, 50, 400, 2_000)), st.sampled_from((0, 20, 300))
    return one(st.builds(slow, ends(shape), delays_ms, jitters_ms, st.sampled_from((None, 1, 10))))


def _resets(shape: Shape) -> SearchStrategy[Group]:
    def reset(half_open: bool, ends: tuple[Node, Node]) -> AnyFault:
        return HalfOpen(ends[0], ends[1]) if half_open else Reset(ends[0], ends[1])

    return one(st.builds(reset, st.booleans(), ends(shape)))


def _disk_errors(shape: Shape) -> SearchStrategy[Group]:
    errors = st.builds(
        DiskError,
        nodes(shape),
        st.sampled_from(Errno),
        st.sampled_from((None, *Operation)),
        st.sampled_from((None, *FileKind)),
    )
    full = st.builds(DiskFull, nodes(shape), st.sampled_from((0, 200, 2_000)))
    return one(chosen(errors, full))


def _slow_flushes(shape: Shape) -> SearchStrategy[Group]:
    return one(st.builds(SlowFlush, nodes(shape), st.sampled_from((20, 200, 1_000))))


def _flipped_bits(_shape: Shape) -> SearchStrategy[Group]:
    return one(st.builds(FlipBit, replicas(), st.sampled_from(FileKind), st.integers(0, 999)))


def _damaged_disks(_shape: Shape) -> SearchStrategy[Group]:
    return one(st.builds(DamageDisk, replicas(), st.sampled_from(Damage)))


def _kills(shape: Shape) -> SearchStrategy[Group]:
    return one(st.builds(Kill, nodes(shape)))


def _shutdowns(shape: Shape) -> SearchStrategy[Group]:
    return one(st.builds(ShutDown, nodes(shape)))


def _power_cuts(shape: Shape) -> SearchStrategy[Group]:
    several = st.lists(nodes(shape), min_size=1, max_size=2, unique=True).map(tuple)
    after_writes = chosen(st.none(), st.integers(0, 20))
    return one(st.builds(PowerCut, chosen(several, st.just(())), after_writes))


def _pauses(shape: Shape) -> SearchStrategy[Group]:
    return one(st.builds(Pause, nodes(shape)))


def _wipes(_shape: Shape) -> SearchStrategy[Group]:
    return one(st.builds(Wipe, replicas()))


def _clocks(shape: Shape) -> SearchStrategy[Group]:
    jumps_ms = st.sampled_from((-3_600_000, -5_000, -200, 200, 5_000, 3_600_000))
    rates_ppm = st.sampled_from((-200_000, -1_000, 1_000, 200_000))
    return one(chosen(st.builds(ClockJump, nodes(shape), jumps_ms), st.builds(ClockDrift, nodes(shape), rates_ppm)))


def _reassignments(shape: Shape) -> SearchStrategy[Group]:
    least = min(2, shape.replication_factor)
    targets = st.lists(st.sampled_from(shape.brokers), min_size=least, max_size=len(shape.brokers), unique=True)
    return one(st.builds(Reassign, targets.map(tuple)))


def _elections(_shape: Shape) -> SearchStrategy[Group]:
    return one(st.builds(Elect, st.sampled_from((False, False, True))))


def _changed_settings(_shape: Shape) -> SearchStrategy[Group]:
    settings = (
        ("min.insync.replicas", "1"),
        ("min.insync.replicas", "2"),
        ("min.insync.replicas", "3"),
        ("unclean.leader.election.enable", "true"),
        ("segment.ms", "300"),
        ("max.message.bytes", "200"),
        ("message.timestamp.type", "LogAppendTime"),
    )
    return one(st.sampled_from(settings).map(lambda setting: Configure(*setting)))


# --- membership and configuration of nodes


def _new_brokers(shape: Shape) -> SearchStrategy[Group]:
    """Draw a story: a broker is added, the first partition is reassigned to it, and another fault is injected.

    The reassignment may also name up to two of the other brokers.
    """
    node = shape.nodes + 1
    rest = st.lists(st.sampled_from(shape.brokers), max_size=2, unique=True)
    reassignments: SearchStrategy[AnyFault] = rest.map(lambda others: Reassign((node, *others)))
    additions: SearchStrategy[AnyFault] = st.just(AddBroker(node))
    faults: SearchStrategy[AnyFault] = st.sampled_from((Kill(Role.LEADER), Kill(node), Elect(), Isolate(node)))
    return story((AT_ONCE, additions), (st.integers(0, 3_000), reassignments), (st.integers(0, 1_000), faults))


def _unregistrations(shape: Shape) -> SearchStrategy[Group]:
    return one(st.builds(Unregister, st.sampled_from((Role.FOLLOWER, Role.LEADER, *shape.brokers))))


def _other_settings(shape: Shape) -> SearchStrategy[Group]:
    settings = (
        ("replica.lag.time.max.ms", "1000"),
        ("replica.fetch.max.bytes", "100"),
        ("broker.session.timeout.ms", "3000"),
        ("log.flush.offset.checkpoint.interval.ms", "100"),
        ("metadata.log.max.record.bytes.between.snapshots", "300"),
        ("min.insync.replicas", "1"),
        ("message.max.bytes", "300"),
    )
    return one(
        st.builds(
            lambda node, setting: RestartWith(node, *setting),
            st.sampled_from((Role.FOLLOWER, Role.LEADER, Role.CONTROLLER, *range(1, shape.nodes + 1))),
            st.sampled_from(settings),
        )
    )


FAULT_KINDS: Final[dict[str, Callable[[Shape], SearchStrategy[Group]]]] = {
    "kill": _kills,
    "power": _power_cuts,
    "cut": _cuts,
    "isolate": _isolations,
    "successions": fault_stories.successions,
    "lonely-leader": fault_stories.lonely_leaders,
    "blackout": fault_stories.blackouts,
    "deposed-leader": fault_stories.deposed_leaders,
    "headless": fault_stories.headless,
    "pause": _pauses,
    "shutdown": _shutdowns,
    "split": _splits,
    "slow-link": _slow_links,
    "reset": _resets,
    "disk-error": _disk_errors,
    "slow-flush": _slow_flushes,
    "reassign": _reassignments,
    "elect": _elections,
    "configure": _changed_settings,
    "clock": _clocks,
    "damage": _damaged_disks,
    "stale-disk": fault_stories.stale_disks,
    "wipe": _wipes,
    "bit-flip": _flipped_bits,
    "late-requests": fault_stories.late_requests,
    "unclean-successions": fault_stories.unclean_successions,
    "cut-short": fault_stories.cut_short,
    "left-behind": fault_stories.left_behind,
    "one-way-controller": fault_stories.one_way_controllers,
    "hasty-reassignment": fault_stories.hasty_reassignments,
}
"""Kinds of faults on simulated and on real clusters; each with a function from a cluster's shape to its groups."""

SIMULATED_KINDS: Final = FAULT_KINDS | {
    "late-leader": fault_stories.late_leaders,
    "new-broker": _new_brokers,
    "unregister": _unregistrations,
    "restart-with": _other_settings,
}
"""`FAULT_KINDS` and the other kinds on simulated clusters. `chaos.live.fault_kinds` has all kinds on real clusters."""
