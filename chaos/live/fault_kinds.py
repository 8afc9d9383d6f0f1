"""Kinds of faults in schedules for real clusters.

They are the kinds of the simulation, except `late-leader`, and others that need processes.
"""

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

_FOLLOWER_APIS: Final = ((1,), (1, 23))
"""API keys of requests from followers that are held together: Fetch; Fetch and OffsetForLeaderEpoch."""
_BROKER_APIS: Final = ((56,), (63,), (62, 63))
"""The same for requests from brokers: AlterPartition; BrokerHeartbeat; BrokerRegistration and BrokerHeartbeat."""
_CLIENT_APIS: Final = ((0,), (1,), (3,), (22,))
"""The same for requests from clients: Produce; Fetch; Metadata; InitProducerId."""
_SETTINGS: Final = (
    ("replica.lag.time.max.ms", "1000"),
    ("replica.fetch.max.bytes", "100"),
    ("log.flush.offset.checkpoint.interval.ms", "100"),
    ("metadata.log.max.record.bytes.between.snapshots", "300"),
)
"""Settings of a node, one of which `RestartWith` changes."""
LASTING: Final = "lasting"
"""Kind of the faults that last longer than a cluster may take to recover."""
LASTING_MS: Final = 70_000
"""Duration of a lasting fault. A cluster with a round's settings may take 50 s to recover
(`linearizability.anomalies.healing`)."""
_MIB: Final = 1024 * 1024
_NEWEST: Final = "4.3.1"
"""Version of Kafka with which `Upgrade` restarts a node."""


def _rejected_connections(shape: Shape) -> SearchStrategy[Group]:
    pairs = ends(shape).filter(lambda pair: pair[1] is not Role.CLIENTS)
    return one(pairs.map(lambda pair: Refuse(pair[0], pair[1])))


def _slices(shape: Shape) -> SearchStrategy[Group]:
    sizes = st.sampled_from((1, 7, 64, 500))
    return one(st.builds(lambda pair, size: Slice(pair[0], pair[1], size), ends(shape), sizes))


def _held_requests(shape: Shape) -> SearchStrategy[Group]:
    links = chosen(
        st.tuples(st.just((Role.FOLLOWER, Role.LEADER)), st.sampled_from(_FOLLOWER_APIS)),
        st.tuples(st.just((Role.LEADER, Role.CONTROLLER)), st.sampled_from(_BROKER_APIS)),
        st.tuples(st.just((Role.CLIENTS, Role.LEADER)), st.sampled_from(_CLIENT_APIS)),
    )
    delays_ms = st.sampled_from((None, None, 300, 2_000))  # None is more frequent: held until the fault is over
    return one(
        st.builds(
            lambda link, delay_ms, held: HoldRequests(link[0][0], link[0][1], link[1], delay_ms, held),
            links,
            delays_ms,
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


def _changed_settings(shape: Shape) -> SearchStrategy[Group]:
    return one(st.builds(lambda node, setting: RestartWith(node, *setting), nodes(shape), st.sampled_from(_SETTINGS)))


def _upgrades(shape: Shape) -> SearchStrategy[Group]:
    return one(st.builds(Upgrade, nodes(shape), st.just(_NEWEST)))


def _lasting(shape: Shape) -> SearchStrategy[Group]:
    """Return a strategy for faults that make one node unavailable for `LASTING_MS`."""
    faults: SearchStrategy[AnyFault] = chosen(
        st.builds(Kill, nodes(shape)),
        st.builds(Pause, nodes(shape)),
        st.builds(Isolate, nodes(shape), st.just(True), keeps()),
    )
    return faults.map(lambda fault: (Timed(0, fault, LASTING_MS),))


KINDS: Final[dict[str, Callable[[Shape], SearchStrategy[Group]]]] = FAULT_KINDS | {
    "new-broker": SIMULATED_KINDS["new-broker"],
    "unregister": SIMULATED_KINDS["unregister"],
    "refuse": _rejected_connections,
    "slice": _slices,
    "hold-requests": _held_requests,
    "cut-file": _cut_files,
    "stale-copy": _stale_copies,
    "starve": _starvations,
    "memory": _memory_limits,
    "restart-with": _changed_settings,
    "upgrade": _upgrades,
    LASTING: _lasting,
}
"""Strategies for groups of faults by kind; a schedule consists of such groups."""


@cache
def schedules(shape: Shape, kinds: tuple[str, ...]) -> SearchStrategy[tuple[Timed, ...]]:
    """Return a strategy for schedules of faults of these kinds, each ordered by time.

    If `LASTING` is among the kinds, a schedule is a single lasting fault, because after any other fault the cluster is
    allowed to recover again.
    """
    if LASTING in kinds:
        return KINDS[LASTING](shape)
    return schedules_of(chosen(*(KINDS[kind](shape) for kind in kinds)))
