"""Samples that rotate: `make test` runs a different part of a long test every day, and `make nightly` runs all of it.

A test selects its part with `part`, or a module is marked `sampled(parts)`: then `pytest --sample` runs every nth of
its cases, and `pytest` without this option runs all of them.

The part is a function of the rotation, a number that is the same for a whole run: days since 1970 in UTC, or the
environment variable `KAFKATRIAL_ROTATION`, by which a failure is reproduced on another day. pytest prints it in its
header (`conftest.py`).
"""

import os
import time
from zlib import crc32

VARIABLE = "KAFKATRIAL_ROTATION"
_DAY_S = 86_400


def rotation() -> int:
    """Return the number of this run, and keep it for processes that this one starts."""
    return int(os.environ.setdefault(VARIABLE, str(int(time.time()) // _DAY_S)))


def part(whole, count, number=None):
    """Return up to `count` items: those after the items of the previous rotation, and the first after the last."""
    parts = -(-len(whole) // count)
    first = (rotation() if number is None else number) % parts * count
    return whole[first : first + count]


def is_in_sample(file, index, parts):
    """Whether the rotation includes the case with this index. The rotation of the first case depends on the file."""
    return (index + crc32(file.encode()) + rotation()) % parts == 0
