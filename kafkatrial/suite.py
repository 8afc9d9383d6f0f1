"""Put the suite's packages on the import path of this process.

In a source tree they are importable as they stand. In a wheel they lie in `kafkatrial/_suite`, out of the way of a
user's own `fixtures` or `reports`; only processes of ours (the command line, a printed program) call `activate`.
"""

import sys
from pathlib import Path


def activate() -> None:
    """Make `chaos`, `conformance`, `fixtures`, `reports` and `reference_broker` importable. Idempotent."""
    bundled = Path(__file__).parent / "_suite"
    if bundled.is_dir() and str(bundled) not in sys.path:
        sys.path.insert(0, str(bundled))
