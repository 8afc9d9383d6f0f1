"""What steps cost with all processes below this one: the clock, the processor, and memory resident at the most.

On a machine that others use too, the processor's time is a better measure than the clock's.
"""

import threading
import time
from collections.abc import Iterator

import psutil

SAMPLE_S = 0.05


def cpu_s() -> float:
    """Return the seconds of the processor of this process and all below it, ended ones included as far as known."""
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
    """Measure a generator after its first `yield`, before which it gets ready.

    Memory is the highest sum of what all processes had resident, what they share counted in each. `last_s` is the time
    of the last further `yield` on the clock, 0 where there is none.
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
