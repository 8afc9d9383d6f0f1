"""Put the suite's packages on the import path of this process.

In a source tree they are importable as they stand. In a wheel they lie in `kafkatrial/_suite`, out of the way of a
user's own `fixtures` or `reports`; only processes of ours (the command line, a printed program) call `activate`.
"""

import sys
from pathlib import Path


def directory() -> Path:
    """Where the suite's packages lie."""
    bundled = Path(__file__).parent / "_suite"
    return bundled if bundled.is_dir() else Path(__file__).parents[1]


def activate() -> None:
    """Make `chaos`, `conformance`, `fixtures`, `reports` and `reference_broker` importable. Idempotent."""
    bundled = directory()
    if bundled.name == "_suite" and str(bundled) not in sys.path:
        sys.path.insert(0, str(bundled))
