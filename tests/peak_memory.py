"""Peak memory of a process.

`resource.getrusage` is not used: on Linux, a program inherits the peak of the process that executed it, here of the
whole test run. `VmHWM` starts from zero in every program.
"""

import re
from pathlib import Path


def peak_memory_mb() -> int:
    """Return the peak resident memory of this process since its program started, in MiB."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) // 1024
