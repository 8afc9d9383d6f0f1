"""Kinds of faults in schedules for real clusters: most kinds of the simulation, and others that need processes."""

from collections.abc import Callable
from functools import cache
from typing import Final

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from chaos.simulation.choice import chosen
from chaos.simulation.fault_moves import Group, ends, keeps, nodes, one, replicas
from chaos.simulation.fault_strategies import FAULT_KINDS, SIMULATED_KINDS, schedules_of
from chaos.simulation.shape import Shape
from fixtures.faults import (
    AnyFault,
    CutShort,
    FileKind,
    Held,
    HoldRequests,
    Isolate,
    Kill,
    LimitMemory,
    Pause,
    Refuse,
    RestartWith,
    Role,
    Slice,
    StaleCopy,
    Starve,
    Timed,
    Upgrade,
)

_FROM_FOLLOWERS: Final = ((1,), (1, 23))
"""API keys of Fetch, alone or with OffsetForLeaderEpoch."""
_FROM_BROKERS: Final = ((56,), (63,), (62, 63))
"""API keys of AlterPartition; of BrokerHeartbeat; of BrokerRegistration with BrokerHeartbeat."""
_FROM_CLIENTS: Final = ((0,), (1,), (3,), (22,))
"""API keys of Produce, Fetch, Metadata and InitProducerId."""
_SETTINGS: Final = (
    ("replica.lag.time.max.ms", "1000"),
    ("replica.fetch.max.bytes", "100"),
    ("log.flush.offset.checkpoint.interval.ms", "100"),
    ("metadata.log.max.record.bytes.between.snapshots", "300"),
)
"""Settings that `RestartWith` gives to a node."""
LASTING: Final = "lasting"
LASTING_MS: Final = 70_000
"""Longer than a cluster with a round's settings may take to recover after a change."""
_MIB: Final = 1024 * 1024
_NEWEST: Final = "4.3.1"
"""Kafka version of `Upgrade`."""


def _refusals(shape: Shape) -> SearchStrategy[Group]:
    pairs = ends(shape).filter(lambda pair: pair[1] is not Role.CLIENTS)
    return one(pairs.map(lambda pair: Refuse(pair[0], pair[1])))


def _slices(shape: Shape) -> SearchStrategy[Group]:
    sizes = st.sampled_from((1, 7, 64, 500))
    return one(st.builds(lambda pair, size: Slice(pair[0], pair[1], size), ends(shape), sizes))


def _holds(shape: Shape) -> SearchStrategy[Group]:
    links = chosen(
        st.tuples(st.just((Role.FOLLOWER, Role.LEADER)), st.sampled_from(_FROM_FOLLOWERS)),
        st.tuples(st.just((Role.LEADER, Role.CONTROLLER)), st.sampled_from(_FROM_BROKERS)),
        st.tuples(st.just((Role.CLIENTS, Role.LEADER)), st.sampled_from(_FROM_CLIENTS)),
    )
    waits = st.sampled_from((None, None, 300, 2_000))
    return one(
        st.builds(
            lambda link, wait, held: HoldRequests(link[0][0], link[0][1], link[1], wait, held),
            links,
            waits,
            st.sampled_from(Held),
        )
    )


def _cut_files(shape: Shape) -> SearchStrategy[Group]:
    files = st.sampled_from((FileKind.LOG, FileKind.LOG, FileKind.INDEX, FileKind.TIME_INDEX, FileKind.SNAPSHOT))
    return one(st.builds(CutShort, replicas(), files, st.integers(0, 999)))


def _stale_copies(shape: Shape) -> SearchStrategy[Group]:
    return one(st.builds(StaleCopy, replicas()))


def _starvations(shape: Shape) -> SearchStrategy[Group]:
    return one(st.builds(Starve, nodes(shape), st.sampled_from((20, 50, 200))))


def _memory_limits(shape: Shape) -> SearchStrategy[Group]:
    sizes = (96 * _MIB, 256 * _MIB, 768 * _MIB)
    return one(st.builds(LimitMemory, nodes(shape), st.sampled_from(sizes)))


def _other_settings(shape: Shape) -> SearchStrategy[Group]:
    return one(st.builds(lambda node, setting: RestartWith(node, *setting), nodes(shape), st.sampled_from(_SETTINGS)))


def _upgrades(shape: Shape) -> SearchStrategy[Group]:
    return one(st.builds(Upgrade, nodes(shape), st.just(_NEWEST)))


def _lasting(shape: Shape) -> SearchStrategy[Group]:
    """Return a strategy for faults that make one node unavailable for `LASTING_MS`."""
    gone: SearchStrategy[AnyFault] = chosen(
        st.builds(Kill, nodes(shape)),
        st.builds(Pause, nodes(shape)),
        st.builds(Isolate, nodes(shape), st.just(True), keeps()),
    )
    return gone.map(lambda fault: (Timed(0, fault, LASTING_MS),))


KINDS: Final[dict[str, Callable[[Shape], SearchStrategy[Group]]]] = FAULT_KINDS | {
    "new-broker": SIMULATED_KINDS["new-broker"],
    "unregister": SIMULATED_KINDS["unregister"],
    "refuse": _refusals,
    "slice": _slices,
    "hold-requests": _holds,
    "cut-file": _cut_files,
    "stale-copy": _stale_copies,
    "starve": _starvations,
    "memory": _memory_limits,
    "restart-with": _other_settings,
    "upgrade": _upgrades,
    LASTING: _lasting,
}
"""Strategies for groups of faults by kind; a schedule consists of such groups."""


@cache
def schedules(shape: Shape, kinds: tuple[str, ...]) -> SearchStrategy[tuple[Timed, ...]]:
    """Return a strategy for schedules of faults of some kinds, ordered by time, as in the simulation.

    If `LASTING` is among the kinds, each schedule has one lasting fault and nothing else, because any other fault
    restarts the time allowed for recovery.
    """
    if LASTING in kinds:
        return KINDS[LASTING](shape)
    return schedules_of(chosen(*(KINDS[kind](shape) for kind in kinds)))
