"""Clock of scripted targets."""


class Clock:
    """Clock that advances only when a caller sleeps."""

    def __init__(self):
        self.now_s = 0.0

    def monotonic(self):
        return self.now_s

    time = monotonic

    def sleep(self, seconds):
        self.now_s += seconds
