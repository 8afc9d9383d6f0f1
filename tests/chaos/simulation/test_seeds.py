"""Trials from seeds: the same on every machine, and of all kinds."""

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
from fixtures.faults import AnyFault, CutConnections
from reference_broker.protocol.metadata_records import NoOpRecord, encode_metadata_record
from reference_broker.protocol.records import KeyValue, encode_batch

SEEDS = range(200)
ONLY_IN_SCRIPTS = {CutConnections}
"""Faults of requirements that no strategy generates."""
trial_of_seed = cache(seeds.trial_of_seed)

_PROGRAM = """
from hashlib import sha256
from chaos.simulation.seeds import trial_of_seed
print(sha256("".join(repr(trial_of_seed(seed)) for seed in range(40)).encode()).hexdigest())
"""

_MEMORY = """
import gc
from hypothesis.strategies import SearchStrategy
from chaos.simulation.seeds import trial_of_seed

def kept(seeds):
    for seed in seeds:
        trial_of_seed(seed)
    gc.collect()
    return sum(isinstance(each, SearchStrategy) for each in gc.get_objects())

print(-kept(range(300)) + kept(range(300, 400)))
"""
KEPT_MAX = 24
"""Strategies that each further seed may leave in memory; a cache by combination of kinds would exceed this limit."""


def test_a_further_seed_leaves_few_strategies_in_memory():
    printed = subprocess.run([sys.executable, "-c", _MEMORY], text=True, capture_output=True, check=True).stdout
    assert int(printed) <= KEPT_MAX * 100


def test_a_seed_generates_the_same_trial_for_any_hash_seed():
    printed = {
        subprocess.run(
            [sys.executable, "-c", _PROGRAM], env={"PYTHONHASHSEED": seed}, text=True, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2", "random")
    }
    assert len(printed) == 1


def test_seeds_generate_different_trials():
    assert len({trial_of_seed(seed) for seed in SEEDS}) == len(SEEDS)


def test_500_seeds_generate_every_fault_client_and_step():
    scripts = [trial_of_seed(seed) for seed in range(500)]
    faults = Counter(type(timed.fault) for trial in scripts for timed in trial.schedule)
    assert faults.keys() == {kind for kind in get_args(AnyFault) if kind.is_simulated} - ONLY_IN_SCRIPTS
    steps = Counter(type(step).__name__ for trial in scripts for client in trial.clients for step in client.steps)
    assert len(steps) == 22
    assert min([*faults.values(), *steps.values()]) >= 3
    assert len(FAULT_KINDS) > 20
    assert len(CLIENT_KINDS) > 10


def test_a_trial_has_about_a_hundred_operations_and_three_faults():
    scripts = [trial_of_seed(seed) for seed in SEEDS]
    operations = sum(operations_of(client) for trial in scripts for client in trial.clients) / len(scripts)
    faults = sum(len(trial.schedule) for trial in scripts) / len(scripts)
    assert 60 < operations < 150
    assert 2 < faults < 5


def test_a_schedule_is_sorted_by_time():
    for seed in SEEDS:
        times = [timed.at_ms for timed in trial_of_seed(seed).schedule]
        assert times == sorted(times)


def test_the_shortest_metadata_log_has_a_snapshot_after_each_no_op_record():
    batch = encode_batch([KeyValue(None, encode_metadata_record(NoOpRecord()))], timestamp_ms=0)
    assert len(batch) == NO_OP_BATCH_BYTES
