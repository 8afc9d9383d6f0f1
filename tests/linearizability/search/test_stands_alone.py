"""Imports of the generic checker: NumPy, but no other large library and no other package of this tree."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]

IMPORTS = """
import importlib, pkgutil, sys
import linearizability.verify, linearizability.models, linearizability.search, linearizability.importers.porcupine
for package in (linearizability.models, linearizability.search):
    for module in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
        importlib.import_module(module.name)
print(*sorted({name.partition(".")[0] for name in sys.modules} - sys.stdlib_module_names))
"""


def test_only_numpy_is_imported():
    child = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"import sys; sys.path[:0] = {[str(ROOT), *sys.path]!r}\n{IMPORTS}"],
        capture_output=True,
        text=True,
        check=True,
    )
    known = {"__main__", "linearizability", "numpy"}
    others = {"pyarrow", "pandas", "hypothesis", "fixtures", "conformance", "kafkatrial", "reports", "chaos"}
    found = set(child.stdout.split())
    assert known - {"__main__"} <= found
    assert not others & found
