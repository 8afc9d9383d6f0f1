"""Wall clock and monotonic clock of a node: those of the machine, or shifted by the settings in `--clock-file`.

The file is mapped into memory. It has signed 64-bit integers, little-endian: a count of settings, then 64 slots of four
integers. The newest setting is in slot (count mod 64):

1. `since_ns`: the time of CLOCK_MONOTONIC from which the setting applies;
2. `rate_ppm`: the rate by which both clocks run faster from `since_ns` on;
3. `gained_ns`: the time by which both clocks were ahead at `since_ns`;
4. `ahead_ns`: the additional time by which the wall clock is ahead.
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
    """The clocks of the machine."""

    def read(self) -> Now:
        """Return the time of both clocks."""
        return Now(time.time_ns() // _NS_PER_MS, time.monotonic_ns() // _NS_PER_MS)

    def to_machine_s(self, monotonic_ms: int) -> float:
        """Convert a time of the node's monotonic clock to the machine's monotonic clock, in seconds."""
        return monotonic_ms / 1000


class ShiftedClocks(Clocks):
    """Clocks that are shifted by the settings in a file."""

    def __init__(self, path: Path) -> None:
        """Map the file. Raises `UsageError`."""
        try:
            with path.open("rb") as file:
                self._map = mmap.mmap(file.fileno(), _COUNT.size + _SLOTS * _SLOT.size, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:
            raise UsageError(f"--clock-file {path}: {error}") from error

    def read(self) -> Now:
        """Return the time of both clocks."""
        now_ns = time.monotonic_ns()
        since_ns, rate_ppm, gained_ns, ahead_ns = self._setting()
        gained_ns += (now_ns - since_ns) * rate_ppm // _PPM
        return Now((time.time_ns() + gained_ns + ahead_ns) // _NS_PER_MS, (now_ns + gained_ns) // _NS_PER_MS)

    def to_machine_s(self, monotonic_ms: int) -> float:
        """Convert a time of the node's monotonic clock to the machine's, in seconds, if the rate stays the same."""
        since_ns, rate_ppm, gained_ns, _ = self._setting()
        left_ns = monotonic_ms * _NS_PER_MS - since_ns - gained_ns
        return (since_ns + left_ns * _PPM / (_PPM + rate_ppm)) / 1e9

    def _setting(self) -> tuple[int, ...]:
        (count,) = _COUNT.unpack_from(self._map)
        return _SLOT.unpack_from(self._map, _COUNT.size + count % _SLOTS * _SLOT.size)
