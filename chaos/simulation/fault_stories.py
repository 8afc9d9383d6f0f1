"""Hypothesis strategies for stories: sequences of faults under which real clusters have lost records."""

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from chaos.simulation.choice import chosen
from chaos.simulation.fault_moves import AT_ONCE, Group, gaps, keeps, listeners, story, timed
from chaos.simulation.shape import Shape
from fixtures.faults import (
    AnyFault,
    Configure,
    Cut,
    Damage,
    DamageDisk,
    Elect,
    Isolate,
    Keeps,
    Kill,
    Listener,
    Node,
    Pause,
    PowerCut,
    Reassign,
    Reset,
    Role,
    ShutDown,
    Slow,
    Timed,
    Wipe,
)


def lonely_leaders(_shape: Shape) -> SearchStrategy[Group]:
    """Draw a story: no follower can fetch from the leader, and the leader fails before or after the ISR shrinks."""
    lonely = st.builds(Isolate, st.just(Role.LEADER), st.just(False), keeps(), st.just(Listener.REPLICATION))
    ends: SearchStrategy[AnyFault] = st.sampled_from(
        (Kill(Role.LEADER), PowerCut((Role.LEADER,)), ShutDown(Role.LEADER), Isolate(Role.LEADER), Pause(Role.LEADER))
    )
    return story((AT_ONCE, lonely), (st.integers(0, 6_000), ends))


def successions(_shape: Shape) -> SearchStrategy[Group]:
    """Draw a story: leaders fail one after the other; several epochs begin at the same offset (KIP-101, KIP-279)."""
    ends: SearchStrategy[AnyFault] = st.sampled_from(
        (Kill(Role.LEADER), PowerCut((Role.LEADER,)), PowerCut((Role.LEADER, Role.FOLLOWER)), ShutDown(Role.LEADER))
    )
    return story((AT_ONCE, ends), (gaps(), ends), (gaps(), ends))


def blackouts(_shape: Shape) -> SearchStrategy[Group]:
    """Draw a story: a power cut of all nodes under load, once or twice."""
    after_writes = chosen(st.none(), st.integers(0, 60))
    blackout: SearchStrategy[AnyFault] = st.builds(PowerCut, st.just(()), after_writes)
    return chosen(story((AT_ONCE, blackout)), story((AT_ONCE, blackout), (gaps(), blackout)))


def deposed_leaders(_shape: Shape) -> SearchStrategy[Group]:
    """Draw a story: a cut-off or paused leader is deposed and does not know it; clients may still reach it."""
    deposed: SearchStrategy[AnyFault] = chosen(
        st.builds(Isolate, st.just(Role.LEADER), st.just(False), keeps(), listeners()),
        st.builds(Pause, st.just(Role.LEADER)),
        st.builds(
            Cut, st.just(Role.LEADER), st.just(Role.CONTROLLER), st.booleans(), keeps(), st.just(Listener.CONTROLLER)
        ),
    )
    again: SearchStrategy[AnyFault] = st.sampled_from((Kill(Role.LEADER), Elect(), Reset(Role.LEADER, Role.FOLLOWER)))
    return story((AT_ONCE, deposed), (st.integers(500, 12_000), again))


def headless(_shape: Shape) -> SearchStrategy[Group]:
    """Draw a story: first the controller fails, then the leader, mostly within a second."""
    controller: SearchStrategy[AnyFault] = st.sampled_from(
        (Kill(Role.CONTROLLER), Isolate(Role.CONTROLLER), PowerCut((Role.CONTROLLER,)), Pause(Role.CONTROLLER))
    )
    leader: SearchStrategy[AnyFault] = st.sampled_from((Kill(Role.LEADER), Isolate(Role.LEADER), ShutDown(Role.LEADER)))
    return story((AT_ONCE, controller), (gaps(), leader))


def one_way_controllers(shape: Shape) -> SearchStrategy[Group]:
    """Draw a story: the active controller receives messages of the other controllers, but they receive none of it.

    The other controllers elect a successor, which lacks the last records of the old controller. When the old controller
    receives a request of the successor, it resigns and truncates these records (KIP-595).
    """
    controllers = [node for node, role in shape.all_roles.items() if "controller" in role]
    changes = st.sampled_from(
        (
            Configure("max.message.bytes", "100000"),
            Configure("min.insync.replicas", "1"),
            Kill(Role.LAST_FOLLOWER),
            ShutDown(Role.LEADER),
            Elect(),
        )
    )

    def story(keeps: Keeps, for_ms: int, more: list[tuple[int, AnyFault, int]]) -> Group:
        # One cut for each receiver. All cuts begin at the same time, so `Role.CONTROLLER` is the same node in all.
        cuts = (
            Timed(0, Cut(Role.CONTROLLER, node, keeps=keeps, listener=Listener.CONTROLLER), for_ms)
            for node in controllers
        )

        return *cuts, *(timed(*change) for change in more)

    more = st.lists(st.tuples(st.integers(10, 2_500), changes, st.integers(100, 2_000)), min_size=1, max_size=4)
    return st.builds(story, keeps(), st.integers(2_500, 7_000), more)


def stale_disks(_shape: Shape) -> SearchStrategy[Group]:
    """Draw a story: a replica loses files while it is down. Up to 8 s later, the leader fails or is replaced."""
    loses: SearchStrategy[AnyFault] = chosen(
        st.builds(DamageDisk, st.just(Role.FOLLOWER), st.sampled_from(Damage)), st.just(Wipe(Role.FOLLOWER))
    )
    ends: SearchStrategy[AnyFault] = st.sampled_from((Kill(Role.LEADER), ShutDown(Role.LEADER), Elect()))
    return story((AT_ONCE, loses), (st.integers(0, 8_000), ends))


def late_requests(_shape: Shape) -> SearchStrategy[Group]:
    """Draw a story: a broker restarts. Its earlier requests arrive after its session has expired (KIP-903)."""

    def story(ends: tuple[Node, Node], delay_ms: int, gap_ms: int, for_ms: int, again: AnyFault) -> Group:
        slow = Slow(ends[0], ends[1], delay_ms=delay_ms, both_ways=False)
        return Timed(0, slow, gap_ms + for_ms), timed(gap_ms, again, for_ms)

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


def late_leaders(_shape: Shape) -> SearchStrategy[Group]:
    """Draw a story: a leader proposes an ISR. A follower in it fails before the proposal arrives (KIP-841, KIP-903)."""

    def story(delay_ms: int, cut_ms: int, late_ms: int, goes: AnyFault) -> Group:
        return (
            Timed(0, Slow(Role.LEADER, Role.CONTROLLER, delay_ms=delay_ms, both_ways=False), cut_ms + 2_000),
            Timed(0, Cut(Role.LAST_FOLLOWER, Role.LEADER, listener=Listener.REPLICATION), cut_ms),
            timed(cut_ms + late_ms, goes, 300),
        )

    # No Unregister: the late request would remove the broker after its restart. As in Kafka, the broker would then not
    # register again.
    goes: SearchStrategy[AnyFault] = st.sampled_from((ShutDown(Role.LAST_FOLLOWER), Kill(Role.LAST_FOLLOWER)))
    return st.builds(story, st.sampled_from((1_500, 2_500)), st.integers(4_000, 5_500), st.integers(10, 1_500), goes)


def unclean_successions(_shape: Shape) -> SearchStrategy[Group]:
    """Draw a story: leaders fail one after the other while unclean elections are allowed (KIP-279, KAFKA-7128)."""
    allowed = st.just(Timed(0, Configure("unclean.leader.election.enable", "true"), 7_000))
    lonely: SearchStrategy[AnyFault] = st.builds(
        Isolate, st.just(Role.LEADER), st.just(False), keeps(), st.just(Listener.REPLICATION)
    )
    ends: SearchStrategy[AnyFault] = st.sampled_from(
        (Kill(Role.LEADER), PowerCut((Role.LEADER,)), PowerCut((Role.LEADER, Role.FOLLOWER)), Elect(unclean=True))
    )
    quick = st.integers(0, 1_500)
    follows = story((quick, lonely), (st.integers(1_500, 5_000), ends), (quick, ends), (quick, ends))
    return st.tuples(allowed, follows).map(lambda pair: (pair[0], *pair[1]))


def cut_short(_shape: Shape) -> SearchStrategy[Group]:
    """Draw a story: a deposed leader returns, and a power cut stops it while it truncates its log."""
    lonely: SearchStrategy[AnyFault] = st.builds(
        Isolate, st.just(Role.LEADER), st.just(False), keeps(), st.just(Listener.REPLICATION)
    )
    deposed: SearchStrategy[AnyFault] = st.sampled_from((Kill(Role.LEADER), Pause(Role.LEADER), Isolate(Role.LEADER)))
    short: SearchStrategy[AnyFault] = st.builds(
        PowerCut, st.just((Role.FOLLOWER, Role.LAST_FOLLOWER)), st.integers(0, 4)
    )
    return story((AT_ONCE, lonely), (st.integers(100, 2_000), deposed), (st.integers(200, 7_000), short))


def left_behind(_shape: Shape) -> SearchStrategy[Group]:
    """Draw a story: a node cannot fetch metadata until it is so far behind that it needs a snapshot."""
    behind: SearchStrategy[AnyFault] = chosen(
        st.builds(
            Isolate,
            st.sampled_from((Role.STANDBY, Role.LAST_FOLLOWER)),
            st.just(False),
            keeps(),
            st.sampled_from((None, Listener.CONTROLLER)),
        ),
        st.sampled_from((Kill(Role.STANDBY), Pause(Role.STANDBY), Kill(Role.LAST_FOLLOWER))),
    )
    settings = ("segment.ms", "retention.ms", "flush.messages", "max.message.bytes")

    def story(fault: AnyFault, changes: list[tuple[int, str]]) -> Group:
        at_ms, group = 100, []
        for gap_ms, name in changes:
            group.append(Timed(at_ms, Configure(name, "100000"), 150))
            at_ms += gap_ms
        return Timed(0, fault, at_ms + 500), *group

    changes = st.lists(st.tuples(st.integers(200, 900), st.sampled_from(settings)), min_size=4, max_size=7)
    return st.builds(story, behind, changes)


def hasty_reassignments(shape: Shape) -> SearchStrategy[Group]:
    """Draw a story: a partition is reassigned while a replica or the controller goes down (KAFKA-15665)."""
    replicas = st.lists(st.sampled_from(shape.brokers), min_size=1, max_size=3, unique=True).map(tuple)
    moves: SearchStrategy[AnyFault] = st.builds(Reassign, replicas)
    goes: SearchStrategy[AnyFault] = st.sampled_from(
        (Kill(Role.LAST_FOLLOWER), Kill(Role.LEADER), ShutDown(Role.LAST_FOLLOWER), Isolate(Role.CONTROLLER))
    )
    return chosen(
        story((AT_ONCE, goes), (st.integers(0, 300), moves), (st.integers(0, 3_000), moves)),
        story((AT_ONCE, moves), (st.integers(0, 60), goes), (st.integers(0, 3_000), moves)),
    )
