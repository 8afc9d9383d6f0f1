"""How much memory a process has taken.

`resource.getrusage` does not tell it of a child: Linux lets a program begin with the peak of the process that started
it, so that a child of a large test run has that run's. `VmHWM` begins anew with every program.
"""

import re
from pathlib import Path


def peak_memory_mb() -> int:
    """The most that this process has had in memory at once since its program began, in MiB."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) // 1024
