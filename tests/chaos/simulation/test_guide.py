"""The examples in docs/simulation.md fail as described."""

import re
import subprocess
import sys
from pathlib import Path

from chaos.campaign.counterexample import operations_of
from chaos.defects.registry import DEFECTS
from chaos.simulation.run import run
from chaos.simulation.seeds import trial_of_seed

GUIDE = (Path(__file__).parents[3] / "docs" / "simulation.md").read_text(encoding="utf-8")


def test_the_program_in_the_guide_fails_as_described(tmp_path):
    program = next(block for block in re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL) if "Trial(" in block)
    file = tmp_path / "program.py"
    file.write_text(program)
    done = subprocess.run([sys.executable, file], capture_output=True, text=True, check=False)
    violated = re.search(r"✘ violation (\S+)  at (\d+) ms", GUIDE)
    assert f"violation {violated[1]}: " in done.stdout
    assert f"violated at {int(violated[2]):,} ms of virtual time" in done.stdout
    assert done.returncode == 1


def test_the_seed_in_the_guide_fails_as_described():
    seed, name, at_ms, text = re.search(
        r"^seed (\d+) ✘ violation (\S+) at (\d+) ms: (.*)$", GUIDE, re.MULTILINE
    ).groups()
    (defect,) = set(re.findall(r"--seeds \S+ --defect (\S+)", GUIDE))
    trial = trial_of_seed(int(seed))
    with DEFECTS[defect].seeded():
        violation = run(trial).violation
    assert violation is not None
    assert (violation.name, violation.at_ms, violation.text) == (name, int(at_ms), text)
    size = f"{len(trial.clients)} clients, {sum(map(operations_of, trial.clients))} operations"
    assert f"The trial of seed {seed} has {size} and {len(trial.schedule)} faults." in GUIDE
