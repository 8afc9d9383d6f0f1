"""Entry point of `python -m reference_broker.server`, which runs one node as a process.

Imports take half of the start time. Therefore this module prevents imports that a node does not need. During the other
imports, garbage collection is turned off.
"""

import gc
import sys

# If Hypothesis is installed, kio registers strategies. A broker does not need them, and they take 0.28 s and 9 MB. This
# loop must precede the first import of kio. TLS is not used either; asyncio runs without it, which saves 10 ms.
for unused in ("hypothesis", "ssl"):
    sys.modules.setdefault(unused, None)  # type: ignore[arg-type]  # None makes the import fail
gc.disable()  # imports create no garbage, and collections would take 7% of the time of imports

from reference_broker.server.main import main  # noqa: E402

gc.enable()

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
