"""Wall clock and monotonic clock of a machine. Both may drift, and the wall clock may jump."""

from reference_broker.core.clock import Now

WALL_START_MS = 1_700_000_000_000
_PPM = 1_000_000


class MachineClock:
    """Both clocks, as functions of the true time: milliseconds since the start of the simulation.

    :ivar wall_offset_ms: the sum of all jumps of the wall clock, in milliseconds; negative if the clock was set back.
    """

    def __init__(self) -> None:
        self.wall_offset_ms = 0
        self._rate_ppm = 0
        self._anchor_true_ms = 0
        self._anchor_own_ms = 0

    def set_rate(self, rate_ppm: int, true_ms: int) -> None:
        """Set the drift of both clocks in parts per million. If it is positive, they run faster than the true time.

        :param true_ms: the present true time.
        """
        self._anchor_own_ms, self._anchor_true_ms = self._own_ms(true_ms), true_ms
        self._rate_ppm = rate_ppm

    def read(self, true_ms: int) -> Now:
        """Return what both clocks show at a true time."""
        own_ms = self._own_ms(true_ms)
        return Now(WALL_START_MS + own_ms + self.wall_offset_ms, own_ms)

    def true_ms(self, own_ms: int) -> int:
        """Return the true time at which the monotonic clock reaches `own_ms`."""
        passed = own_ms - self._anchor_own_ms
        return self._anchor_true_ms + -(-passed * _PPM // (_PPM + self._rate_ppm))

    def _own_ms(self, true_ms: int) -> int:
        passed = true_ms - self._anchor_true_ms
        return self._anchor_own_ms + passed * (_PPM + self._rate_ppm) // _PPM
