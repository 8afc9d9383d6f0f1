"""The two clocks that a node reads: this machine's, or wrong ones, as a mapped file says (`--clock-file`).

The file holds signed 64-bit numbers, lowest byte first: how often the clocks were set, then 64 slots of four, of which
the newest is (times set mod 64): since when, by CLOCK_MONOTONIC; by how many millionths both clocks run faster since
then; what they had gained until then; what the wall clock is ahead besides. Times are in nanoseconds.
"""

import mmap
import struct
import time
from pathlib import Path

from reference_broker.core.clock import Now
from reference_broker.server.errors import UsageError

_SLOTS = 64
_COUNT = struct.Struct("<q")
_SLOT = struct.Struct("<qqqq")
_PPM = 1_000_000
_NS_PER_MS = 1_000_000


class Clocks:
    """The clocks of the machine, which are right."""

    def read(self) -> Now:
        """Both, now."""
        return Now(time.time_ns() // _NS_PER_MS, time.monotonic_ns() // _NS_PER_MS)

    def true_s(self, monotonic_ms: int) -> float:
        """What the machine's monotonic clock shows when the node's shows that, in seconds."""
        return monotonic_ms / 1000


class WrongClocks(Clocks):
    """Clocks that a file makes wrong."""

    def __init__(self, path: Path) -> None:
        """Map the file. Raises `UsageError`."""
        try:
            with path.open("rb") as file:
                self._map = mmap.mmap(file.fileno(), _COUNT.size + _SLOTS * _SLOT.size, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:
            raise UsageError(f"--clock-file {path}: {error}") from error

    def read(self) -> Now:
        """Both, now."""
        now_ns = time.monotonic_ns()
        since_ns, rate_ppm, gained_ns, ahead_ns = self._setting()
        gained_ns += (now_ns - since_ns) * rate_ppm // _PPM
        return Now((time.time_ns() + gained_ns + ahead_ns) // _NS_PER_MS, (now_ns + gained_ns) // _NS_PER_MS)

    def true_s(self, monotonic_ms: int) -> float:
        """What the machine's monotonic clock shows then, if the rate stays as it is."""
        since_ns, rate_ppm, gained_ns, _ = self._setting()
        left_ns = monotonic_ms * _NS_PER_MS - since_ns - gained_ns
        return (since_ns + left_ns * _PPM / (_PPM + rate_ppm)) / 1e9

    def _setting(self) -> tuple[int, ...]:
        (count,) = _COUNT.unpack_from(self._map)
        return _SLOT.unpack_from(self._map, _COUNT.size + count % _SLOTS * _SLOT.size)
