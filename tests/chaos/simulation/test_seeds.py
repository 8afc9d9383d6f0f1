"""A seed is a script: the same everywhere, and of all kinds."""

import subprocess
import sys
from collections import Counter
from functools import cache

from chaos.simulation import seeds
from chaos.simulation.client_strategies import CLIENT_KINDS
from chaos.simulation.counterexample import operations_of
from chaos.simulation.fault_strategies import FAULT_KINDS

SEEDS = range(200)
script_of = cache(seeds.script_of)

_PROGRAM = """
from hashlib import sha256
from chaos.simulation.seeds import script_of
print(sha256("".join(repr(script_of(seed)) for seed in range(40)).encode()).hexdigest())
"""


def test_a_seed_gives_one_script_whatever_the_hash_seed():
    printed = {
        subprocess.run(
            [sys.executable, "-c", _PROGRAM], env={"PYTHONHASHSEED": seed}, text=True, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2", "random")
    }
    assert len(printed) == 1


def test_seeds_give_different_scripts():
    assert len({script_of(seed) for seed in SEEDS}) == len(SEEDS)


def test_every_fault_every_client_and_every_step_is_drawn_soon():
    scripts = [script_of(seed) for seed in range(500)]
    faults = Counter(type(timed.fault).__name__ for script in scripts for timed in script.schedule)
    assert faults.keys() >= {
        *("Cut", "Isolate", "Split", "Ring", "Slow", "Reset", "HalfOpen", "DiskError", "DiskFull", "SlowFlush"),
        *("FlipBit", "DamageDisk", "Kill", "ShutDown", "PowerCut", "Pause", "Wipe", "ClockJump", "ClockDrift"),
        *("Reassign", "Elect", "Configure", "AddBroker", "Unregister", "RestartWith"),
    }
    steps = Counter(type(step).__name__ for script in scripts for client in script.clients for step in client.steps)
    assert len(steps) == 22
    assert min([*faults.values(), *steps.values()]) >= 3
    assert len(FAULT_KINDS) > 20 < len(CLIENT_KINDS) + 10


def test_a_script_has_some_hundred_operations_and_some_three_faults():
    scripts = [script_of(seed) for seed in SEEDS]
    operations = sum(operations_of(client) for script in scripts for client in script.clients) / len(scripts)
    faults = sum(len(script.schedule) for script in scripts) / len(scripts)
    assert 60 < operations < 150
    assert 2 < faults < 5


def test_a_schedule_stands_in_the_order_of_its_times():
    for seed in SEEDS:
        times = [timed.at_ms for timed in script_of(seed).schedule]
        assert times == sorted(times)
