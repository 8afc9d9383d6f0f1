"""Trials of seeds: they are reproducible, and together contain every fault and every step of clients."""

import subprocess
import sys
from collections import Counter
from functools import cache
from typing import get_args

from chaos.campaign.counterexample import operations_of
from chaos.simulation import seeds
from chaos.simulation.client_strategies import CLIENT_KINDS
from chaos.simulation.fault_strategies import FAULT_KINDS
from chaos.simulation.strategies import NO_OP_BATCH_BYTES
from fixtures.clients.steps import ConsumerStep, ProducerStep, RawStep
from fixtures.faults import AnyFault, CutConnections
from reference_broker.protocol.metadata_records import NoOpRecord, encode_metadata_record
from reference_broker.protocol.records import KeyValue, encode_batch

SEEDS = range(200)
NOT_GENERATED = {CutConnections}
"""Simulated faults that only the trials of requirements contain."""
STEPS = {*get_args(ProducerStep), *get_args(ConsumerStep), *get_args(RawStep)}
trial_of_seed = cache(seeds.trial_of_seed)

_PRINT_DIGEST = """
from hashlib import sha256
from chaos.simulation.seeds import trial_of_seed
print(sha256("".join(repr(trial_of_seed(seed)) for seed in range(40)).encode()).hexdigest())
"""

_PRINT_GROWTH = """
import gc
from hypothesis.strategies import SearchStrategy
from chaos.simulation.seeds import trial_of_seed

def strategies_in_memory_after(seeds):
    for seed in seeds:
        trial_of_seed(seed)
    gc.collect()
    return sum(isinstance(each, SearchStrategy) for each in gc.get_objects())

before = strategies_in_memory_after(range(300))
print(strategies_in_memory_after(range(300, 400)) - before)
"""
GROWTH_MAX = 24
"""Mean number of strategies that a further seed may leave in memory. A cache with an entry for each combination of
kinds would exceed it."""


def printed_by(program, **environment):
    command = [sys.executable, "-c", program]
    return subprocess.run(command, env=environment or None, text=True, capture_output=True, check=True).stdout


def test_a_further_seed_leaves_few_strategies_in_memory():
    assert int(printed_by(_PRINT_GROWTH)) <= GROWTH_MAX * 100


def test_a_seed_generates_the_same_trial_for_any_hash_seed():
    digests = {printed_by(_PRINT_DIGEST, PYTHONHASHSEED=hash_seed) for hash_seed in ("1", "2", "random")}
    assert len(digests) == 1


def test_seeds_generate_different_trials():
    assert len({trial_of_seed(seed) for seed in SEEDS}) == len(SEEDS)


def test_500_seeds_generate_every_fault_and_step():
    trials = [trial_of_seed(seed) for seed in range(500)]
    faults = Counter(type(timed.fault) for trial in trials for timed in trial.schedule)
    assert faults.keys() == {kind for kind in get_args(AnyFault) if kind.is_simulated} - NOT_GENERATED
    steps = Counter(type(step) for trial in trials for client in trial.clients for step in client.steps)
    assert steps.keys() == STEPS
    assert min([*faults.values(), *steps.values()]) >= 3


def test_there_are_many_kinds_of_faults_and_clients():
    assert len(FAULT_KINDS) > 20
    assert len(CLIENT_KINDS) > 10


def test_a_trial_has_about_a_hundred_operations_and_three_faults():
    trials = [trial_of_seed(seed) for seed in SEEDS]
    operations = sum(operations_of(client) for trial in trials for client in trial.clients) / len(trials)
    faults = sum(len(trial.schedule) for trial in trials) / len(trials)
    assert 60 < operations < 150
    assert 2 < faults < 5


def test_a_schedule_is_sorted_by_time():
    for seed in SEEDS:
        times = [timed.at_ms for timed in trial_of_seed(seed).schedule]
        assert times == sorted(times)


def test_the_smallest_interval_of_snapshots_is_the_size_of_a_batch_with_one_no_op_record():
    batch = encode_batch([KeyValue(None, encode_metadata_record(NoOpRecord()))], timestamp_ms=0)
    assert len(batch) == NO_OP_BATCH_BYTES
