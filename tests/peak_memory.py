"""Peak memory of a process.

`resource.getrusage` is not used, because on Linux the value of a child process starts with the peak of its parent, here
that of the whole test run. `VmHWM` starts from zero in every program.
"""

import re
from pathlib import Path


def peak_memory_mb() -> int:
    """Return the peak resident memory of this process since its program started, in MiB."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) // 1024
