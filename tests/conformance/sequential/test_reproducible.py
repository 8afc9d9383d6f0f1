"""A seed generates the same scripts in every process."""

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import sys
sys.path[:0] = [{root!r}, "."]
{load}
from conformance.registry import REQUIREMENTS
from conformance.search import try_scripts
from hypothesis import strategies as st
found = []
try_scripts(st.lists(st.integers(0, 10**9)), seed_value=5, scripts_max=200, attempt=found.append)
print(found)
"""


def drawn(directory: Path, load: str) -> str:
    program = PROGRAM.format(root=str(Path(__file__).parents[3]), load=load)
    return subprocess.run(
        [sys.executable, "-c", program], cwd=directory, capture_output=True, text=True, check=True
    ).stdout


def test_local_modules_do_not_change_what_is_drawn(tmp_path):
    """Hypothesis also draws numbers that it finds in the source of local modules, unless this is switched off."""
    (tmp_path / "local_module.py").write_text(f"NUMBERS = {[7_000_001 + 13 * n for n in range(400)]}\n")
    assert drawn(tmp_path, "import local_module") == drawn(tmp_path, "")
