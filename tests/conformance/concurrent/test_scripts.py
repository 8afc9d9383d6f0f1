"""Scripts: generation from a seed, Python source, and shrinking; and the registry of their requirements."""

import math
import time
from dataclasses import replace
from itertools import takewhile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import conformance.trial.moves as moves_module
from conformance.concurrent import strategies
from conformance.concurrent.program import program_of
from conformance.concurrent.requirements import HISTORY_CHECKS, REQUIREMENTS, ROWS
from conformance.registry import REQUIREMENTS as REGISTERED
from conformance.search import scripts_of, smallest
from conformance.trial.moves import AwaitLeader, Begin, ElectLeader, MoveReplicas
from conformance.trial.phased_clients import PipelinedProducer, SendRecords
from fixtures import faults
from fixtures.clients.administration import Election
from fixtures.faults import CutConnections, Damage, DamageDisk, Lost, Role
from fixtures.targets.target import Capability

pytestmark = pytest.mark.sampled(3)


class Target:
    """Fake target with only those properties that determine the generated scripts."""

    def __init__(self, *capabilities):
        self.capabilities = frozenset(capabilities)
        self.cluster_properties = {"replica.lag.time.max.ms": "3000"}


ONE_NODE = Target()
THREE_NODES = Target(Capability.REPLICATION, Capability.LINK_FAULTS)
EACH_ROW = pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)


@EACH_ROW
@pytest.mark.parametrize("target", [ONE_NODE, THREE_NODES], ids=["one node", "three nodes"])
def test_the_same_seed_draws_the_same_scripts(row, target):
    first = scripts_of(row.family.scripts(target), seed_value=5, scripts_max=4)
    assert first == scripts_of(row.family.scripts(target), seed_value=5, scripts_max=4)
    assert first != scripts_of(row.family.scripts(target), seed_value=6, scripts_max=4)
    assert 1 <= len(set(first)) == len(first) <= 4


@EACH_ROW
@settings(max_examples=20)
@given(data=st.data())
def test_a_printed_program_has_the_same_script(row, data):
    script = data.draw(row.family.scripts(THREE_NODES))
    script = replace(script, requirement=row.id)
    source = program_of(script, "apache-kafka:4.3.1")
    namespace = {"__name__": "printed"}
    exec(compile(source, "repro.py", "exec"), namespace)
    assert namespace["trial"] == script


@EACH_ROW
def test_scripts_use_existing_partitions_and_valid_idempotent_producers(row):
    for script in scripts_of(row.family.scripts(THREE_NODES), seed_value=1, scripts_max=20):
        for client in script.clients:
            assert getattr(client, "partition", 0) < script.topic.partitions
            if getattr(client, "idempotent", False) and isinstance(client, PipelinedProducer):
                assert client.acks == -1
                assert client.in_flight_max <= 5


MOVES = [
    Begin(CutConnections(Role.CLIENTS, Role.FIRST_REPLICA, Lost.ANSWERS)),
    AwaitLeader(None),
    ElectLeader(Election.UNCLEAN),
    Begin(DamageDisk(Role.OUTSIDER, Damage.TORN_TAIL)),
    MoveReplicas((Role.SECOND_REPLICA, Role.OUTSIDER)),
]


@pytest.mark.parametrize("move", MOVES)
def test_a_move_prints_as_python(move):
    assert eval(repr(move), vars(faults) | vars(moves_module)) == move


def test_ids_are_unique_and_each_has_its_history_checks():
    ids = [requirement.id for requirement in REQUIREMENTS]
    assert len(set(ids)) == len(ids)
    assert HISTORY_CHECKS.keys() == set(ids)
    assert all(source.url for requirement in REQUIREMENTS for source in requirement.sources)


def test_all_concurrent_requirements_are_registered():
    assert {requirement.id for requirement in REQUIREMENTS} <= {requirement.id for requirement in REGISTERED}


# --- shrinking

SENDERS = strategies.scripts(
    clients=st.lists(strategies.pipelined_producers(1, idempotent=st.booleans()), min_size=1, max_size=4)
)


def records_of(script):
    return sum(step.records for client in script.clients for step in client.steady if isinstance(step, SendRecords))


def violates(script):
    return records_of(script) >= 20


def culprit_of(seed):
    return next(script for script in scripts_of(SENDERS, seed_value=seed, scripts_max=30) if violates(script))


def shrunk(seed, predicate, *, deadline=math.inf):
    culprit = culprit_of(seed)
    return smallest(
        SENDERS,
        seed_value=seed,
        scripts_max=30,
        first=culprit,
        passed=tuple(takewhile(lambda script: script != culprit, scripts_of(SENDERS, seed_value=seed, scripts_max=30))),
        violates=predicate,
        time_is_up=lambda: time.monotonic() >= deadline,
    )


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_shrinking_ends_at_a_small_script_that_violates(seed):
    found = shrunk(seed, violates)
    assert records_of(found) == 20
    assert len(found.clients) == 1


def test_only_a_script_that_violated_is_reported():
    """The predicate reports a violation only in the first run of a script."""
    met = set()

    def fickle(script):
        first = script not in met
        met.add(script)
        return first and violates(script)

    found = shrunk(1, fickle)
    assert found in met
    assert violates(found)


def test_a_script_without_a_smaller_violation_is_not_shrunk():
    assert shrunk(1, lambda script: False) == culprit_of(1)


def test_nothing_runs_after_the_deadline():
    ran = []
    found = shrunk(1, lambda script: bool(ran.append(script)), deadline=time.monotonic() - 1)
    assert found == culprit_of(1)
    assert ran == []
