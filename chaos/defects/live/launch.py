"""`python -m chaos.defects.live.launch NAME ARGUMENT…`: a node of the reference broker with one seeded defect.

Only the target `defective:NAME` starts it. It replaces one function, and then runs the broker's own code.
"""

import runpy
import sys

sys.modules.setdefault("hypothesis", None)  # type: ignore[arg-type]  # starts faster, as in `reference_broker.server`

from chaos.defects.live.registry import live_defect  # noqa: E402

if __name__ == "__main__":
    name = sys.argv.pop(1)
    with live_defect(name).seeded():
        runpy.run_module("reference_broker.server", run_name="__main__")
