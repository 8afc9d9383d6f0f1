"""Program of a node of the reference broker with one seeded defect; the target `defective:NAME` starts it.

`python -m chaos.defects.live.launch NAME ARGUMENT…` seeds the defect, which replaces one function, and then runs
`reference_broker.server` with the other arguments.
"""

import runpy
import sys

sys.modules.setdefault("hypothesis", None)  # type: ignore[arg-type]  # see `reference_broker.server.__main__`

from chaos.defects.live.registry import live_defect  # noqa: E402

if __name__ == "__main__":
    name = sys.argv.pop(1)
    with live_defect(name).seeded():
        runpy.run_module("reference_broker.server", run_name="__main__")
