"""Imports of `linearizability.history`: pyarrow and NumPy, but no large library and no other package of this tree."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]

IMPORTS = """
import importlib, pkgutil, sys
import linearizability.history
for module in pkgutil.iter_modules(linearizability.history.__path__, "linearizability.history."):
    importlib.import_module(module.name)
print(*sorted({name.partition(".")[0] for name in sys.modules} - sys.stdlib_module_names))
"""


def test_only_pyarrow_and_numpy_are_imported():
    child = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"import sys; sys.path[:0] = {[str(ROOT), *sys.path]!r}\n{IMPORTS}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert {"linearizability", "numpy", "pyarrow"} <= set(child.stdout.split())
    ours = {"chaos", "conformance", "fixtures", "kafkatrial", "reference_broker", "reports"}
    others = {"confluent_kafka", "hypothesis", "kio", "pandas", "pyspark"}
    assert not (ours | others) & set(child.stdout.split())
