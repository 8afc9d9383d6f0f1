"""What a call costs in a process of its own: time on the clock, time on the processor, and memory at its highest.

On a machine that others use too, the processor's time says more than the clock's.
"""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds on the clock and on the processor, of all threads; megabytes resident at the most, ever."""

    wall_s: float
    cpu_s: float
    peak_mb: float


def cost_of(call: Callable[[], object]) -> Cost:
    """What one call costs; the peak is that of the process so far."""
    before, begin = os.times(), time.perf_counter()
    call()
    wall_s, after = time.perf_counter() - begin, os.times()
    return Cost(wall_s, after.user + after.system - before.user - before.system, peak_mb())


def peak_mb() -> float:
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmHWM"))
