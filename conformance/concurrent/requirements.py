"""Concurrent requirements: their scripts for a target and their history checks.

If a history has an anomaly with the verdict `violation`, every requirement that is judged by this history is violated.
"""

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from conformance.concurrent import strategies
from conformance.concurrent.check import HistoryChecks
from conformance.concurrent.fault_requirements import ROWS as FAULT_ROWS
from conformance.concurrent.history_checks import (
    acknowledged_offsets_are_unique,
    reads_ascend,
    reads_stay_below_watermark,
)
from conformance.concurrent.requirement_row import RequirementRow, always
from conformance.requirements.requirement import Requirement
from conformance.requirements.sources import (
    CONCEPTS,
    KIP_98,
    MAX_IN_FLIGHT,
    PRODUCER_ACKS,
    PROTOCOL_PRODUCE,
    REPLICATION,
    SEMANTICS,
)
from conformance.trial.phased_clients import WatermarkReader
from conformance.trial.trial import Client, Trial
from fixtures.targets.target import Capability, Target


def _replicas(target: Target) -> int:
    """Return the replication factor: 3 if the target replicates, else 1."""
    return 3 if Capability.REPLICATION in target.capabilities else 1


# --- scripts


def _producers_and_consumers(target: Target) -> SearchStrategy[Trial]:
    """Generate one to three producers, pipelined or one-shot, and one or two consumers on one to three partitions."""

    def on_partitions(partitions: int) -> SearchStrategy[Trial]:
        producer = st.one_of(
            strategies.pipelined_producers(partitions, idempotent=st.booleans()),
            strategies.one_shot_producers(partitions, acks=st.sampled_from((-1, 1))),
        )
        clients = st.tuples(
            st.lists(producer, min_size=1, max_size=3), st.lists(strategies.consumers(), min_size=1, max_size=2)
        )
        return strategies.scripts(
            clients=clients.map(lambda both: [*both[0], *both[1]]),
            partitions=partitions,
            replication_factor=_replicas(target),
        )

    return st.integers(1, 3).flatmap(on_partitions)


def _idempotent_producers(target: Target) -> SearchStrategy[Trial]:
    """Generate idempotent producers to one partition, each with up to five requests in flight."""
    producer = strategies.pipelined_producers(1, idempotent=st.just(True))
    clients: SearchStrategy[list[Client]] = st.lists(producer, min_size=1, max_size=3)
    return strategies.scripts(clients=clients, replication_factor=_replicas(target))


def _one_shot_producers(target: Target) -> SearchStrategy[Trial]:
    """Generate concurrent raw producers that each wait for every acknowledgement."""
    clients: SearchStrategy[list[Client]] = st.lists(strategies.one_shot_producers(1), min_size=2, max_size=4)
    return strategies.scripts(clients=clients, replication_factor=_replicas(target))


def _retrying_producers(target: Target) -> SearchStrategy[Trial]:
    """Generate idempotent producers whose link to the leader is cut while they send."""
    producer = strategies.pipelined_producers(1, idempotent=st.just(True), faulty=True)
    clients: SearchStrategy[list[Client]] = st.lists(producer, min_size=1, max_size=2)
    return strategies.scripts(clients=clients, replication_factor=_replicas(target), moves=strategies.client_cuts())


def _watermark_readers(target: Target) -> SearchStrategy[Trial]:
    """Generate producers with acks=1 and acks=all, and a raw reader that sends ListOffsets between fetches."""
    producer = st.one_of(
        strategies.one_shot_producers(1, acks=st.sampled_from((-1, 1))),
        strategies.pipelined_producers(1, idempotent=st.just(True)),
    )
    producers: SearchStrategy[list[Client]] = st.lists(producer, min_size=1, max_size=3)
    clients = producers.map(lambda drawn: [*drawn, WatermarkReader()])
    return strategies.scripts(clients=clients, replication_factor=_replicas(target))


# --- requirements


ROWS = (
    RequirementRow(
        id="ordering/read-order-is-append-order",
        text="Every consumer of a partition reads its records in the order of their offsets, and every consumer finds "
        "the same record at the same offset, while producers send concurrently.",
        sources=(CONCEPTS,),
        scripts=_producers_and_consumers,
        history_checks=always(reads_ascend),
    ),
    RequirementRow(
        id="ordering/later-record-gets-higher-offset",
        text="A record that is sent after another one of the same partition was acknowledged gets the higher offset, "
        "also if two clients send them.",
        sources=(SEMANTICS, CONCEPTS),
        scripts=_one_shot_producers,
    ),
    RequirementRow(
        id="ordering/idempotent-producer-keeps-send-order",
        text="With five requests in flight, the records of an idempotent producer are appended to a partition in the "
        "order in which it sent them.",
        sources=(KIP_98, MAX_IN_FLIGHT),
        scripts=_idempotent_producers,
    ),
    RequirementRow(
        id="produce/acknowledged-records-are-read-back",
        text="Every record that was acknowledged under acks=all is read back, with the key, headers, timestamp and "
        "value that were sent.",
        sources=(PRODUCER_ACKS, SEMANTICS),
        scripts=_producers_and_consumers,
    ),
    RequirementRow(
        id="produce/acknowledged-offsets-are-where-records-are-read",
        text="A record is read at the offset that the Produce response assigned, and no two acknowledged records of a "
        "partition have the same offset.",
        sources=(PROTOCOL_PRODUCE,),
        scripts=_producers_and_consumers,
        history_checks=always(acknowledged_offsets_are_unique),
    ),
    RequirementRow(
        id="idempotence/no-duplicates-on-retry",
        text="An idempotent producer that does not receive the leader's responses and retries its batches writes no "
        "record twice.",
        sources=(KIP_98,),
        scripts=_retrying_producers,
        needs=frozenset({Capability.CLIENT_LINK_FAULTS}),
    ),
    RequirementRow(
        id="fetch/never-above-high-watermark",
        text="A consumer gets no record at or above the high watermark of a later Fetch response, nor at or above an "
        "end offset that ListOffsets returns later.",
        sources=(REPLICATION,),
        scripts=_watermark_readers,
        history_checks=always(reads_stay_below_watermark),
    ),
    *FAULT_ROWS,
)

REQUIREMENTS: tuple[Requirement, ...] = tuple(row.requirement() for row in ROWS)
"""Entries of the registry."""

HISTORY_CHECKS: dict[str, HistoryChecks] = {row.id: row.history_checks for row in ROWS}
"""History checks by requirement id, for the replay of a saved trial."""
