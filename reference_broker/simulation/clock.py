"""A machine's two clocks, which may be wrong: the wall clock jumps, and both run at a rate of their own."""

from reference_broker.core.clock import Now

WALL_START_MS = 1_700_000_000_000
_PPM = 1_000_000


class MachineClock:
    """Reads true time (milliseconds since the start of the simulation) as this machine sees it.

    :ivar wall_offset_ms: what its wall clock is ahead of the truth; set it to make the clock jump.
    """

    def __init__(self) -> None:
        self.wall_offset_ms = 0
        self._rate_ppm = 0
        self._anchor_true_ms = 0
        self._anchor_own_ms = 0

    def set_rate(self, rate_ppm: int, true_ms: int) -> None:
        """From now on run faster (or slower, below zero) by so many millionths."""
        self._anchor_own_ms, self._anchor_true_ms = self._own_ms(true_ms), true_ms
        self._rate_ppm = rate_ppm

    def read(self, true_ms: int) -> Now:
        """Both clocks."""
        own_ms = self._own_ms(true_ms)
        return Now(WALL_START_MS + own_ms + self.wall_offset_ms, own_ms)

    def true_ms(self, own_ms: int) -> int:
        """When the monotonic clock shows at least this."""
        passed = own_ms - self._anchor_own_ms
        return self._anchor_true_ms + -(-passed * _PPM // (_PPM + self._rate_ppm))

    def _own_ms(self, true_ms: int) -> int:
        passed = true_ms - self._anchor_true_ms
        return self._anchor_own_ms + passed * (_PPM + self._rate_ppm) // _PPM
