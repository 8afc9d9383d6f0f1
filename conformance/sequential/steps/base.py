"""Base class of steps, and scripts."""

from dataclasses import dataclass

TOPIC = "trial"
"""Default topic of a script."""


@dataclass(frozen=True, slots=True)
class Step:
    """Base of all steps."""


@dataclass(frozen=True, slots=True)
class Script:
    """Steps in order, each sent after the response to the one before."""

    steps: tuple[Step, ...]

    def __len__(self) -> int:
        return len(self.steps)
