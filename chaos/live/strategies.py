"""Hypothesis strategies over rounds: the cluster, the topic, the clients and the schedule of faults together.

Swarm testing, as in the simulation: each round first draws a subset of the kinds of clients and faults, and uses only
these. Schedules are drawn as in the simulation (`chaos.live.fault_kinds`). A seed gives the same round for every
target: faults that a target does not support are removed afterwards, and reported.
"""

from dataclasses import replace
from functools import cache
from typing import Final

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from chaos.live.fault_kinds import KINDS, LASTING, schedules
from chaos.simulation.choice import chosen, some
from chaos.simulation.seeds import drawn_from_seed
from chaos.simulation.shape import Shape
from conformance.trial.trial import ClusterSettings, Topic, Trial
from conformance.trial.workloads import (
    STEADY_MS,
    Administrator,
    Committer,
    Keyed,
    LeaderReader,
    OneByOne,
    Pipelined,
    Tail,
    Workload,
)

Properties = tuple[tuple[str, str], ...]

FENCED_SOON: Final[Properties] = (("broker.heartbeat.interval.ms", "300"), ("broker.session.timeout.ms", "3000"))
"""A dead node is fenced sooner than in other trials, so that there are elections within half a minute."""
_COMPACTED: Final[Properties] = (
    ("cleanup.policy", "compact"),
    ("min.cleanable.dirty.ratio", "0.01"),
    ("segment.ms", "1000"),
)
_COMPACTS_SOON: Final[Properties] = (("log.cleaner.backoff.ms", "500"),)
_SAFE: Final[Properties] = (("min.insync.replicas", "2"),)
_TOPICS: Final[tuple[Properties, ...]] = (
    *(_SAFE,) * 5,
    (("min.insync.replicas", "1"),),
    (("min.insync.replicas", "3"),),
    (*_SAFE, ("flush.messages", "1")),
    (*_SAFE, ("unclean.leader.election.enable", "true")),
    (("min.insync.replicas", "1"), ("unclean.leader.election.enable", "true")),
    (*_SAFE, *_COMPACTED),
)
"""Settings of the topic; common ones are listed more often."""

_ALL_NODES_WRITER: Final = Pipelined()
"""Producer that requests metadata from every reachable node. If its writes fail, a partition has no working leader."""
_WRITERS: Final[tuple[Workload, ...]] = (
    _ALL_NODES_WRITER,
    OneByOne(idempotent=True),
    OneByOne(),
    OneByOne(acks=1),
    OneByOne(acks=0),
    Pipelined(idempotent=False),
    Pipelined(idempotent=False, acks=1),
    Keyed(),
)
_OTHERS: Final[tuple[Workload, ...]] = (Tail(), LeaderReader(), Committer(), Administrator())
_SHAPES: Final = (Shape(topics=(("a", 1),)), Shape(topics=(("a", 3),)), Shape(topics=(("a", 2),)))


@st.composite
def rounds(draw: st.DrawFn, kinds: tuple[str, ...]) -> Trial:
    """Draw a round with faults of some of these kinds."""
    shape = draw(st.sampled_from(_SHAPES))
    properties = draw(st.sampled_from(_TOPICS))
    in_play = draw(some(kinds, 1, 3))
    writers = (_ALL_NODES_WRITER,) if LASTING in in_play else ()
    workloads = dict.fromkeys((*writers, *draw(some(_WRITERS, 1, 3)), *draw(some(_OTHERS, 1, 3))))
    compacts = _COMPACTS_SOON if properties[-len(_COMPACTED) :] == _COMPACTED else ()
    ((name, partitions),) = shape.topics
    return Trial(
        cluster=ClusterSettings(shape.nodes, (), (*FENCED_SOON, *compacts, *draw(_lags()))),
        topics=(Topic(name, partitions, shape.replication_factor, properties),),
        clients=tuple(workloads),
        schedule=draw(schedules(shape, in_play)),
        steady_ms=STEADY_MS,
    )


@cache
def _lags() -> SearchStrategy[Properties]:
    return chosen(st.just(()), st.sampled_from(((("replica.lag.time.max.ms", "1000"),),)))


def round_of(seed: int, kinds: tuple[str, ...] = tuple(KINDS)) -> Trial:
    """Return the round of a seed, the same in any process with this version of kafkatrial and of Hypothesis."""
    return replace(drawn_from_seed(_rounds(kinds), seed), seed=seed)


@cache
def _rounds(kinds: tuple[str, ...]) -> SearchStrategy[Trial]:
    return rounds(kinds)
