"""Samples that rotate: CI runs a different part of a long test every day, and `make nightly` runs all of it.

The part is a function of the rotation, a number that is the same for a whole run: days since 1970 in UTC, or the
environment variable `KAFKATRIAL_ROTATION`, by which a failure is reproduced on another day. pytest prints it in its
header (`conftest.py`).
"""

import os
import time

VARIABLE = "KAFKATRIAL_ROTATION"
_DAY_S = 86_400


def rotation() -> int:
    """Return the number of this run, and keep it for processes that this one starts."""
    return int(os.environ.setdefault(VARIABLE, str(int(time.time()) // _DAY_S)))


def part(whole, count, number=None):
    """Return `count` consecutive items: those after the items of the previous rotation; it starts over at the end."""
    parts = -(-len(whole) // count)
    first = (rotation() if number is None else number) % parts * count
    return whole[first : first + count]
