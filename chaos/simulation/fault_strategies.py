"""Hypothesis strategies over schedules of faults: kinds one by one, and stories in which several belong together.

A schedule is a list of groups, each a while after the one before: often at once, often some milliseconds, sometimes
longer than a time-out. How long a fault lasts is drawn the same way. A group is one fault, or a story; what a story is
made of is drawn too.
"""

from collections.abc import Callable
from functools import cache
from typing import Final

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from chaos.faults import (
    AddBroker,
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
    Fault,
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
from chaos.simulation.choice import chosen
from chaos.simulation.shape import Shape

GROUPS_MAX: Final = 4
_ONCE: Final = (Reset, HalfOpen, Elect, Reassign, AddBroker)
"""What happens at a moment, and lasts no time."""

Group = tuple[Timed, ...]
"""Faults whose `at_ms` is since the group's begin."""


def schedules(shape: Shape, kinds: tuple[str, ...]) -> SearchStrategy[tuple[Timed, ...]]:
    """Schedules of faults of some kinds, by time."""
    if not kinds:
        return st.just(())
    return _schedules(shape, kinds)


@cache
def _schedules(shape: Shape, kinds: tuple[str, ...]) -> SearchStrategy[tuple[Timed, ...]]:
    groups = chosen(*(SIMULATED_KINDS[kind](shape) for kind in kinds))
    return st.lists(st.tuples(_gaps(), groups), min_size=1, max_size=GROUPS_MAX).map(_in_time)


def _in_time(groups: list[tuple[int, Group]]) -> tuple[Timed, ...]:
    schedule: list[Timed] = []
    begin_ms = 0
    for gap_ms, group in groups:
        begin_ms += gap_ms
        schedule += (Timed(begin_ms + timed.at_ms, timed.fault, timed.for_ms) for timed in group)
    return tuple(sorted(schedule, key=lambda timed: timed.at_ms))


@cache
def _gaps() -> SearchStrategy[int]:
    """From one fault to the next."""
    return chosen(st.integers(0, 60), st.integers(0, 1_000), st.integers(0, 6_000))


@cache
def _durations() -> SearchStrategy[int]:
    """Of a fault: within a request's time, within the lag that an ISR forgives, beyond a session."""
    return chosen(st.integers(50, 400), st.integers(200, 3_000), st.integers(2_000, 12_000))


@cache
def _nodes(shape: Shape) -> SearchStrategy[Node]:
    """Roles more often than ids, and the leader more often than any other."""
    return st.sampled_from((Role.LEADER, Role.LEADER, Role.FOLLOWER, Role.CONTROLLER, Role.LEADER, *_others(shape)))


def _others(shape: Shape) -> tuple[Node, ...]:
    return (Role.LAST_FOLLOWER, Role.STANDBY, Role.COORDINATOR, *range(1, shape.nodes + 1))


@cache
def _replicas() -> SearchStrategy[Node]:
    """Those that have the records."""
    return st.sampled_from((Role.LEADER, Role.FOLLOWER, Role.LEADER, Role.LAST_FOLLOWER))


@cache
def _ends(shape: Shape) -> SearchStrategy[tuple[Node, Node]]:
    """Two ends of a link, which are usually two nodes."""
    pairs = ((Role.LEADER, Role.FOLLOWER), (Role.FOLLOWER, Role.LEADER), (Role.CLIENTS, Role.LEADER))
    more = ((Role.LEADER, Role.CLIENTS), (Role.LEADER, Role.CONTROLLER), (Role.CONTROLLER, Role.STANDBY))
    drawn = st.tuples(_nodes(shape), _nodes(shape)).filter(lambda pair: pair[0] != pair[1])
    return chosen(st.sampled_from(pairs), st.sampled_from(more), drawn)


@cache
def _listeners() -> SearchStrategy[Listener | None]:
    return st.sampled_from((None, Listener.REPLICATION, Listener.CONTROLLER))


@cache
def _keeps() -> SearchStrategy[Keeps]:
    return st.sampled_from(Keeps)


def _one(faults: SearchStrategy[Fault]) -> SearchStrategy[Group]:
    """One fault, for a while."""
    return st.tuples(faults, _durations()).map(lambda drawn: (_timed(0, *drawn),))


def _timed(at_ms: int, fault: Fault, for_ms: int) -> Timed:
    return Timed(at_ms, fault, 0 if isinstance(fault, _ONCE) else for_ms)


# --- kinds


def _cuts(shape: Shape) -> SearchStrategy[Group]:
    def cut(ends: tuple[Node, Node], both_ways: bool, keeps: Keeps, listener: Listener | None) -> Cut:
        return Cut(ends[0], ends[1], both_ways, keeps, listener)

    return _one(st.builds(cut, _ends(shape), st.booleans(), _keeps(), _listeners()))


def _isolations(shape: Shape) -> SearchStrategy[Group]:
    return _one(st.builds(Isolate, _nodes(shape), st.booleans(), _keeps(), _listeners()))


def _splits(shape: Shape) -> SearchStrategy[Group]:
    sides = st.lists(_nodes(shape), min_size=1, max_size=max(1, shape.nodes // 2), unique=True).map(tuple)
    return _one(chosen(st.builds(Split, sides, _keeps()), st.builds(Ring, _keeps())))


def _slow_links(shape: Shape) -> SearchStrategy[Group]:
    def slow(ends: tuple[Node, Node], delay_ms: int, jitter_ms: int, bytes_per_ms: int | None) -> Slow:
        return Slow(ends[0], ends[1], delay_ms, jitter_ms, bytes_per_ms)

    delays, jitters = st.sampled_from((0, 50, 400, 2_000)), st.sampled_from((0, 20, 300))
    return _one(st.builds(slow, _ends(shape), delays, jitters, st.sampled_from((None, 1, 10))))


def _resets(shape: Shape) -> SearchStrategy[Group]:
    def reset(half_open: bool, ends: tuple[Node, Node]) -> Fault:
        return HalfOpen(ends[0], ends[1]) if half_open else Reset(ends[0], ends[1])

    return _one(st.builds(reset, st.booleans(), _ends(shape)))


def _disk_errors(shape: Shape) -> SearchStrategy[Group]:
    errors = st.builds(
        DiskError,
        _nodes(shape),
        st.sampled_from(Errno),
        st.sampled_from((None, *Operation)),
        st.sampled_from((None, *FileKind)),
    )
    full = st.builds(DiskFull, _nodes(shape), st.sampled_from((0, 200, 2_000)))
    return _one(chosen(errors, full))


def _slow_flushes(shape: Shape) -> SearchStrategy[Group]:
    return _one(st.builds(SlowFlush, _nodes(shape), st.sampled_from((20, 200, 1_000))))


def _flipped_bits(_shape: Shape) -> SearchStrategy[Group]:
    return _one(st.builds(FlipBit, _replicas(), st.sampled_from(FileKind), st.integers(0, 999)))


def _damaged_disks(_shape: Shape) -> SearchStrategy[Group]:
    return _one(st.builds(DamageDisk, _replicas(), st.sampled_from(Damage)))


def _kills(shape: Shape) -> SearchStrategy[Group]:
    return _one(st.builds(Kill, _nodes(shape)))


def _shutdowns(shape: Shape) -> SearchStrategy[Group]:
    return _one(st.builds(ShutDown, _nodes(shape)))


def _power_cuts(shape: Shape) -> SearchStrategy[Group]:
    several = st.lists(_nodes(shape), min_size=1, max_size=2, unique=True).map(tuple)
    after_writes = chosen(st.none(), st.integers(0, 20))
    return _one(st.builds(PowerCut, chosen(several, st.just(())), after_writes))


def _pauses(shape: Shape) -> SearchStrategy[Group]:
    return _one(st.builds(Pause, _nodes(shape)))


def _wipes(_shape: Shape) -> SearchStrategy[Group]:
    return _one(st.builds(Wipe, _replicas()))


def _clocks(shape: Shape) -> SearchStrategy[Group]:
    jumps = st.builds(ClockJump, _nodes(shape), st.sampled_from((-3_600_000, -5_000, -200, 200, 5_000, 3_600_000)))
    drifts = st.builds(ClockDrift, _nodes(shape), st.sampled_from((-200_000, -1_000, 1_000, 200_000)))
    return _one(chosen(jumps, drifts))


def _reassignments(shape: Shape) -> SearchStrategy[Group]:
    least = min(2, shape.replication_factor)
    replicas = st.lists(st.sampled_from(shape.brokers), min_size=least, max_size=len(shape.brokers), unique=True)
    return _one(st.builds(Reassign, replicas.map(tuple)))


def _elections(_shape: Shape) -> SearchStrategy[Group]:
    return _one(st.builds(Elect, st.sampled_from((False, False, True))))


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
    return _one(st.sampled_from(settings).map(lambda setting: Configure(*setting)))


# --- stories


def _story(*moves: tuple[SearchStrategy[int], SearchStrategy[Fault]]) -> SearchStrategy[Group]:
    """Faults one after the other, each a while after the one before."""
    return st.tuples(*(st.tuples(gap, fault, _durations()) for gap, fault in moves)).map(_told)


def _told(moves: tuple[tuple[int, Fault, int], ...]) -> Group:
    group: list[Timed] = []
    at_ms = 0
    for gap_ms, fault, for_ms in moves:
        at_ms += gap_ms
        group.append(_timed(at_ms, fault, for_ms))
    return tuple(group)


_AT_ONCE: Final = st.just(0)


def _lonely_leaders(_shape: Shape) -> SearchStrategy[Group]:
    """A leader that its followers cannot fetch from, and that goes down once the ISR has shrunk, or just before."""
    lonely = st.builds(Isolate, st.just(Role.LEADER), st.just(False), _keeps(), st.just(Listener.REPLICATION))
    ends: SearchStrategy[Fault] = st.sampled_from(
        (Kill(Role.LEADER), PowerCut((Role.LEADER,)), ShutDown(Role.LEADER), Isolate(Role.LEADER), Pause(Role.LEADER))
    )
    return _story((_AT_ONCE, lonely), (st.integers(0, 6_000), ends))


def _successions(_shape: Shape) -> SearchStrategy[Group]:
    """One leader after the other goes down, so that epochs begin at the same offsets (KIP-101, KIP-279)."""
    ends: SearchStrategy[Fault] = st.sampled_from(
        (Kill(Role.LEADER), PowerCut((Role.LEADER,)), PowerCut((Role.LEADER, Role.FOLLOWER)), ShutDown(Role.LEADER))
    )
    return _story((_AT_ONCE, ends), (_gaps(), ends), (_gaps(), ends))


def _blackouts(_shape: Shape) -> SearchStrategy[Group]:
    """The power goes everywhere, in the middle of work, perhaps twice."""
    after_writes = chosen(st.none(), st.integers(0, 60))
    blackout: SearchStrategy[Fault] = st.builds(PowerCut, st.just(()), after_writes)
    return chosen(_story((_AT_ONCE, blackout)), _story((_AT_ONCE, blackout), (_gaps(), blackout)))


def _deposed_leaders(_shape: Shape) -> SearchStrategy[Group]:
    """A leader that does not know of its successor, and whom clients still reach."""
    deposed: SearchStrategy[Fault] = chosen(
        st.builds(Isolate, st.just(Role.LEADER), st.just(False), _keeps(), _listeners()),
        st.builds(Pause, st.just(Role.LEADER)),
        st.builds(
            Cut, st.just(Role.LEADER), st.just(Role.CONTROLLER), st.booleans(), _keeps(), st.just(Listener.CONTROLLER)
        ),
    )
    again: SearchStrategy[Fault] = st.sampled_from((Kill(Role.LEADER), Elect(), Reset(Role.LEADER, Role.FOLLOWER)))
    return _story((_AT_ONCE, deposed), (st.integers(500, 12_000), again))


def _headless(_shape: Shape) -> SearchStrategy[Group]:
    """The controller goes while the leader does."""
    controller: SearchStrategy[Fault] = st.sampled_from(
        (Kill(Role.CONTROLLER), Isolate(Role.CONTROLLER), PowerCut((Role.CONTROLLER,)), Pause(Role.CONTROLLER))
    )
    leader: SearchStrategy[Fault] = st.sampled_from((Kill(Role.LEADER), Isolate(Role.LEADER), ShutDown(Role.LEADER)))
    return _story((_AT_ONCE, controller), (_gaps(), leader))


def _stale_disks(_shape: Shape) -> SearchStrategy[Group]:
    """A replica loses files while it is down, and its leader goes when it is back."""
    loses: SearchStrategy[Fault] = chosen(
        st.builds(DamageDisk, st.just(Role.FOLLOWER), st.sampled_from(Damage)), st.just(Wipe(Role.FOLLOWER))
    )
    ends: SearchStrategy[Fault] = st.sampled_from((Kill(Role.LEADER), ShutDown(Role.LEADER), Elect()))
    return _story((_AT_ONCE, loses), (st.integers(0, 8_000), ends))


def _late_words(_shape: Shape) -> SearchStrategy[Group]:
    """What a broker has said arrives when it has begun a new life, which it can once its session is over (KIP-903)."""

    def story(ends: tuple[Node, Node], delay_ms: int, gap_ms: int, for_ms: int, again: Fault) -> Group:
        slow = Slow(ends[0], ends[1], delay_ms=delay_ms, both_ways=False)
        return Timed(0, slow, gap_ms + for_ms), _timed(gap_ms, again, for_ms)

    ends = st.sampled_from(
        (
            (Role.FOLLOWER, Role.CONTROLLER),
            (Role.LEADER, Role.CONTROLLER),
            (Role.FOLLOWER, Role.LEADER),
            (Role.LAST_FOLLOWER, Role.CONTROLLER),
        )
    )
    again = ends.map(lambda pair: pair[0]).flatmap(lambda _: st.sampled_from((Kill, ShutDown)))
    return st.builds(
        lambda pair, delay_ms, gap_ms, for_ms, end: story(pair, delay_ms, gap_ms, for_ms, end(pair[0])),
        ends,
        st.sampled_from((3_500, 6_000)),
        st.integers(50, 1_200),
        st.integers(50, 800),
        again,
    )


def _late_leaders(_shape: Shape) -> SearchStrategy[Group]:
    """A leader takes a follower back, which is gone when the controller hears of it (KIP-841, KIP-903)."""

    def story(delay_ms: int, cut_ms: int, late_ms: int, goes: Fault) -> Group:
        return (
            Timed(0, Slow(Role.LEADER, Role.CONTROLLER, delay_ms=delay_ms, both_ways=False), cut_ms + 2_000),
            Timed(0, Cut(Role.LAST_FOLLOWER, Role.LEADER, listener=Listener.REPLICATION), cut_ms),
            _timed(cut_ms + late_ms, goes, 300),
        )

    goes: SearchStrategy[Fault] = st.sampled_from(
        (ShutDown(Role.LAST_FOLLOWER), Unregister(Role.LAST_FOLLOWER), Kill(Role.LAST_FOLLOWER))
    )
    return st.builds(story, st.sampled_from((1_500, 2_500)), st.integers(4_000, 5_500), st.integers(10, 1_500), goes)


def _unclean_successions(_shape: Shape) -> SearchStrategy[Group]:
    """Leaders that lack what was committed follow one another, and each truncates the others (KIP-279, KAFKA-7128)."""
    allowed = st.just(Timed(0, Configure("unclean.leader.election.enable", "true"), 7_000))
    lonely: SearchStrategy[Fault] = st.builds(
        Isolate, st.just(Role.LEADER), st.just(False), _keeps(), st.just(Listener.REPLICATION)
    )
    ends: SearchStrategy[Fault] = st.sampled_from(
        (Kill(Role.LEADER), PowerCut((Role.LEADER,)), PowerCut((Role.LEADER, Role.FOLLOWER)), Elect(unclean=True))
    )
    quick = st.integers(0, 1_500)
    story = _story((quick, lonely), (st.integers(1_500, 5_000), ends), (quick, ends), (quick, ends))
    return st.tuples(allowed, story).map(lambda told: (told[0], *told[1]))


def _cut_short(_shape: Shape) -> SearchStrategy[Group]:
    """A deposed leader comes back, and its power goes in the middle of the truncation."""
    lonely: SearchStrategy[Fault] = st.builds(
        Isolate, st.just(Role.LEADER), st.just(False), _keeps(), st.just(Listener.REPLICATION)
    )
    deposed: SearchStrategy[Fault] = st.sampled_from((Kill(Role.LEADER), Pause(Role.LEADER), Isolate(Role.LEADER)))
    short: SearchStrategy[Fault] = st.builds(PowerCut, st.just((Role.FOLLOWER, Role.LAST_FOLLOWER)), st.integers(0, 4))
    return _story((_AT_ONCE, lonely), (st.integers(100, 2_000), deposed), (st.integers(200, 7_000), short))


def _left_behind(_shape: Shape) -> SearchStrategy[Group]:
    """A node that hears nothing of the metadata while they change, until only a snapshot can help it."""
    behind: SearchStrategy[Fault] = chosen(
        st.builds(
            Isolate,
            st.sampled_from((Role.STANDBY, Role.LAST_FOLLOWER)),
            st.just(False),
            _keeps(),
            st.sampled_from((None, Listener.CONTROLLER)),
        ),
        st.sampled_from((Kill(Role.STANDBY), Pause(Role.STANDBY), Kill(Role.LAST_FOLLOWER))),
    )
    settings = ("segment.ms", "retention.ms", "flush.messages", "max.message.bytes")

    def story(fault: Fault, changes: list[tuple[int, str]]) -> Group:
        at_ms, group = 100, []
        for gap_ms, name in changes:
            group.append(Timed(at_ms, Configure(name, "100000"), 150))
            at_ms += gap_ms
        return Timed(0, fault, at_ms + 500), *group

    changes = st.lists(st.tuples(st.integers(200, 900), st.sampled_from(settings)), min_size=4, max_size=7)
    return st.builds(story, behind, changes)


def _hasty_reassignments(shape: Shape) -> SearchStrategy[Group]:
    """A partition moves to a broker that goes, or while the controller does (KAFKA-15665)."""
    replicas = st.lists(st.sampled_from(shape.brokers), min_size=1, max_size=3, unique=True).map(tuple)
    moves: SearchStrategy[Fault] = st.builds(Reassign, replicas)
    goes: SearchStrategy[Fault] = st.sampled_from(
        (Kill(Role.LAST_FOLLOWER), Kill(Role.LEADER), ShutDown(Role.LAST_FOLLOWER), Isolate(Role.CONTROLLER))
    )
    return chosen(
        _story((_AT_ONCE, goes), (st.integers(0, 300), moves), (st.integers(0, 3_000), moves)),
        _story((_AT_ONCE, moves), (st.integers(0, 60), goes), (st.integers(0, 3_000), moves)),
    )


# --- who belongs to the cluster, and how its nodes are set


def _new_brokers(shape: Shape) -> SearchStrategy[Group]:
    """A broker joins, and is given the first partition, perhaps in place of all others."""
    node = shape.nodes + 1
    rest = st.lists(st.sampled_from(shape.brokers), max_size=2, unique=True)
    moves: SearchStrategy[Fault] = rest.map(lambda others: Reassign((node, *others)))
    joins: SearchStrategy[Fault] = st.just(AddBroker(node))
    goes: SearchStrategy[Fault] = st.sampled_from((Kill(Role.LEADER), Kill(node), Elect(), Isolate(node)))
    return _story((_AT_ONCE, joins), (st.integers(0, 3_000), moves), (st.integers(0, 1_000), goes))


def _unregistrations(shape: Shape) -> SearchStrategy[Group]:
    return _one(st.builds(Unregister, st.sampled_from((Role.FOLLOWER, Role.LEADER, *shape.brokers))))


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
    return _one(
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
    "successions": _successions,
    "lonely-leader": _lonely_leaders,
    "blackout": _blackouts,
    "deposed-leader": _deposed_leaders,
    "headless": _headless,
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
    "stale-disk": _stale_disks,
    "wipe": _wipes,
    "bit-flip": _flipped_bits,
    "late-words": _late_words,
    "unclean-successions": _unclean_successions,
    "cut-short": _cut_short,
    "left-behind": _left_behind,
    "hasty-reassignment": _hasty_reassignments,
}
"""By name: the groups that a schedule is made of, for a shape."""

SIMULATED_KINDS: Final = FAULT_KINDS | {
    "late-leader": _late_leaders,
    "new-broker": _new_brokers,
    "unregister": _unregistrations,
    "restart-with": _other_settings,
}
"""Those that only simulated clusters are put through, too."""
