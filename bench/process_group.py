"""Cost of steps in this process and all its descendants: wall time, processor time, and peak resident memory.

On a machine with other load, processor time is a better measure than wall time.
"""

import threading
import time
from collections.abc import Iterator

import psutil

SAMPLE_S = 0.05


def cpu_s() -> float:
    """Return the processor time in seconds of this process and its descendants.

    An ended process is included once its parent has waited for it.
    """
    own = psutil.Process()
    seconds = 0.0
    for process in (own, *own.children(recursive=True)):
        try:
            times = process.cpu_times()
        except psutil.Error:
            continue
        seconds += times.user + times.system + times.children_user + times.children_system
    return seconds


def measured(steps: Iterator[None]) -> dict[str, float]:
    """Measure a generator from its first `yield`, which ends its preparation, to its end.

    Memory is the highest sum of the resident memory of all processes; shared memory is counted in each. `start_s` is
    the wall time of the preparation, and `last_s` that from the first `yield` to the last one; 0 if there is only one.
    """
    peak_mb, ended = 0.0, threading.Event()

    def sample() -> None:
        nonlocal peak_mb
        own = psutil.Process()
        while not ended.wait(SAMPLE_S):
            total = 0
            for process in (own, *own.children(recursive=True)):
                try:
                    total += process.memory_info().rss
                except psutil.Error:
                    continue
            peak_mb = max(peak_mb, total / 2**20)

    begin_s = time.perf_counter()
    next(steps)
    ready_s, before_s = time.perf_counter(), cpu_s()
    last_s = 0.0
    sampler = threading.Thread(target=sample)
    sampler.start()
    try:
        for _ in steps:
            last_s = time.perf_counter() - ready_s
        wall_s, used_s = time.perf_counter() - ready_s, cpu_s() - before_s
    finally:
        ended.set()
        sampler.join()
    return {"start_s": ready_s - begin_s, "wall_s": wall_s, "cpu_s": used_s, "peak_mb": peak_mb, "last_s": last_s}
