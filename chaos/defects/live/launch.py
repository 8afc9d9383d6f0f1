"""`python -m chaos.defects.live.launch NAME ARGUMENT…`: a node of the reference broker that has one bug.

Only the target `defective:NAME` starts it. The broker's own code is what runs, and knows nothing of this: one of its
functions is another when it begins.
"""

import runpy
import sys

sys.modules.setdefault("hypothesis", None)  # type: ignore[arg-type]  # as the server does, and for the same reason

from chaos.defects.live.registry import live_defect  # noqa: E402

if __name__ == "__main__":
    name = sys.argv.pop(1)
    with live_defect(name).seeded():
        runpy.run_module("reference_broker.server", run_name="__main__")
