"""What every step is, and a script of them."""

from dataclasses import dataclass

TOPIC = "trial"
"""The usual topic of a script."""


@dataclass(frozen=True, slots=True)
class Step:
    """Base of all steps."""


@dataclass(frozen=True, slots=True)
class Script:
    """Steps in order, each sent when the one before was answered."""

    steps: tuple[Step, ...]

    def __len__(self) -> int:
        return len(self.steps)
