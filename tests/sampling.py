"""Samples that rotate: `make test` runs a different part of a long test every day.

A test selects its part with `part`; a separate nightly test runs the whole, or a larger part. Alternatively, a module
is marked `sampled(parts)`. Then `pytest --sample` runs one of every `parts` cases of the module, and `pytest` without
this option, as in `make nightly`, runs all cases.

The *rotation* is a number that selects the parts of a whole run: the number of days since 1970 in UTC. pytest prints it
in its header. To repeat a run on another day, set the environment variable `KAFKATRIAL_ROTATION` to the printed number.
"""

import os
import time
from zlib import crc32

VARIABLE = "KAFKATRIAL_ROTATION"
_DAY_S = 86_400


def rotation() -> int:
    """Return the rotation, and set the environment variable, so that child processes have the same rotation."""
    return int(os.environ.setdefault(VARIABLE, str(int(time.time()) // _DAY_S)))


def part(whole, count, number=None):
    """Return a slice of at most `count` items. The next rotation returns the next slice; after the last, the first.

    :param number: the rotation (default: that of this run).
    """
    parts = -(-len(whole) // count)
    first = (rotation() if number is None else number) % parts * count
    return whole[first : first + count]


def is_in_sample(file, index, parts):
    """Whether the rotation includes a case: one of every `parts` cases of a file. The first one differs by file."""
    return (index + crc32(file.encode()) + rotation()) % parts == 0
