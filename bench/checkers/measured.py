"""Cost of a call in this process: wall time, processor time, and peak memory.

On a machine with other load, processor time is a better measure than wall time.
"""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Cost:
    """Wall and processor time of all threads, in seconds; peak resident memory of the process, in megabytes."""

    wall_s: float
    cpu_s: float
    peak_mb: float


def cost_of(call: Callable[[], object]) -> Cost:
    """Return the cost of one call. The peak memory is that of the process since its start."""
    before, begin = os.times(), time.perf_counter()
    call()
    wall_s, after = time.perf_counter() - begin, os.times()
    return Cost(wall_s, after.user + after.system - before.user - before.system, peak_mb())


def peak_mb() -> float:
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmHWM"))
