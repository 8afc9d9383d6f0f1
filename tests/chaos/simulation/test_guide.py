"""What docs/simulation.md shows really happens."""

import re
import subprocess
import sys
from pathlib import Path

GUIDE = (Path(__file__).parents[3] / "docs" / "simulation.md").read_text(encoding="utf-8")


def test_the_program_in_the_guide_fails_as_it_says(tmp_path):
    program = next(block for block in re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL) if "Script(" in block)
    file = tmp_path / "program.py"
    file.write_text(program)
    done = subprocess.run([sys.executable, file], capture_output=True, text=True, check=False)
    violated = re.search(r"✘ violation (\S+)  at (\d+) ms", GUIDE)
    assert done.stdout.startswith(f"{violated[1]} at ")
    assert done.returncode == 1
