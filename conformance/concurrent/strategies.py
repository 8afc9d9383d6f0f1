"""Hypothesis strategies for concurrent scripts.

By default the scripts are small, because each of them takes real time on a real cluster: a client sends at most some
hundreds of records, with pauses of at most 200 ms. All strategies shrink towards few clients and few records.
"""

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from conformance.trial.moves import Begin, Heal, Move
from conformance.trial.phased_clients import OneShotProducer, PipelinedProducer, SendRecords, Step
from conformance.trial.trial import Client, Topic, Trial
from conformance.trial.workloads import Tail
from fixtures.clients.payload import SIZE_MIN
from fixtures.clients.steps import Flush, Idle
from fixtures.faults import CutConnections, Lost, Role

COMPRESSIONS = ("none", "gzip", "snappy", "lz4", "zstd")


def steps(
    *, sends_min: int = 1, sends_max: int = 4, records_max: int = 60, pause_ms_max: int = 30
) -> SearchStrategy[tuple[Step, ...]]:
    """Return a strategy for sends, each followed by a pause."""
    send = st.builds(SendRecords, st.integers(1, records_max), st.integers(SIZE_MIN, 600))
    pause = st.builds(Idle, st.integers(0, pause_ms_max))
    paired = st.lists(st.tuples(send, pause), min_size=sends_min, max_size=sends_max)
    return paired.map(lambda pairs: tuple(step for pair in pairs for step in pair))


def pipelined_producers(
    partitions: int, *, idempotent: SearchStrategy[bool], faulty: bool = False
) -> SearchStrategy[PipelinedProducer]:
    """Return a strategy for producers with at most five requests in flight and various batch settings.

    :param faulty: whether the trial has a faulty phase. The steady phase then ends with a flush. So the producers are
        connected before the faulty phase, and a fault cuts a connection that is in use.
    """
    return st.builds(
        PipelinedProducer,
        partition=st.integers(0, partitions - 1),
        acks=st.just(-1),
        idempotent=idempotent,
        in_flight_max=st.just(5),
        linger_ms=st.sampled_from((0, 1, 5)),
        batch_records_max=st.sampled_from((1, 7, 10_000)),
        compression=st.sampled_from(COMPRESSIONS),
        steady=steps().map(lambda sends: (*sends, Flush())) if faulty else steps(),
        faulty=steps(sends_min=2, sends_max=6, pause_ms_max=200) if faulty else st.just(()),
        healed=steps(sends_max=2) if faulty else st.just(()),
    )


def one_shot_producers(partitions: int, *, acks: SearchStrategy[int] | None = None) -> SearchStrategy[OneShotProducer]:
    """Return a strategy for raw producers, idempotent or not."""
    return st.builds(
        OneShotProducer,
        partition=st.integers(0, partitions - 1),
        acks=st.just(-1) if acks is None else acks,
        idempotent=st.booleans(),
        steady=steps(sends_min=2, sends_max=8, records_max=10),
    )


def consumers() -> SearchStrategy[Tail]:
    """Return a strategy for consumers that poll at most 1, 20 or 500 records at a time."""
    return st.builds(
        Tail,
        isolation=st.sampled_from(("read_uncommitted", "read_committed")),
        poll_records_max=st.sampled_from((500, 20, 1)),
    )


@st.composite
def scripts(
    draw: st.DrawFn,
    *,
    clients: SearchStrategy[list[Client]],
    partitions: int = 1,
    replication_factor: int = 1,
    properties: tuple[tuple[str, str], ...] = (),
    moves: SearchStrategy[tuple[Move, ...]] | None = None,
) -> Trial:
    """Draw a script of these clients on a topic with these settings."""
    return Trial(
        topics=(Topic(partitions=partitions, replication_factor=replication_factor, properties=properties),),
        clients=tuple(draw(clients)),
        moves=() if moves is None else draw(moves),
    )


def client_cuts() -> SearchStrategy[tuple[Move, ...]]:
    """Return a strategy for one or two consecutive short cuts of requests or responses between clients and leader."""
    cut = st.builds(
        CutConnections,
        st.just(Role.CLIENTS),
        st.just(Role.FIRST_REPLICA),
        st.sampled_from((Lost.ANSWERS, Lost.REQUESTS)),
    ).map(Begin)

    def one(pause: SearchStrategy[Idle]) -> SearchStrategy[tuple[Move, ...]]:
        return st.tuples(pause, cut, waits(100, 500), st.just(Heal()))

    first = one(waits(0, 100))
    return st.one_of(first, st.tuples(first, one(waits(300, 1_000))).map(lambda both: both[0] + both[1]))


def waits(shortest_ms: int, longest_ms: int) -> SearchStrategy[Idle]:
    """Return a strategy for pauses between moves."""
    return st.builds(Idle, st.integers(shortest_ms, longest_ms))
