"""`python -m reference_broker.server`: one broker as a process of its own.

Half of the time until it is ready is imports, so they are kept short here, before the first of them.
"""

import gc
import sys

# kio registers Hypothesis strategies wherever Hypothesis is installed. A broker has no use for it, and it costs 0.28 s
# and 9 MB; this must come before the first import of kio. Nor is there TLS, without which asyncio does well: 10 ms.
for unused in ("hypothesis", "ssl"):
    sys.modules.setdefault(unused, None)  # type: ignore[arg-type]  # None makes the import fail
gc.disable()  # classes and functions are no garbage: looking for some takes 7% of the imports' time

from reference_broker.server.main import main  # noqa: E402

gc.enable()

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
