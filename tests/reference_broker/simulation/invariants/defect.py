"""A defect, and the faults that reveal it."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch


def nothing(*_args: Any, **_named: Any) -> None:
    """Do nothing, in place of another function."""


@dataclass(frozen=True)
class Defect:
    """A defect that violates `invariant` in a run with `seed` or with one of the following seeds."""

    invariant: str
    owner: Any
    attribute: str
    replacement: Any
    kinds: tuple[str, ...] = ("kill",)
    faults: int = 3
    faulty_ms: int = 6_000
    for_ms: int | None = None
    properties: dict[str, str] = field(default_factory=dict)
    seed: int = 0
    disabled: tuple[tuple[Any, str], ...] = ()
    """Checks that would fail first, and are disabled."""

    @contextmanager
    def seeded(self) -> Iterator[None]:
        with ExitStack() as patches:
            patches.enter_context(patch.object(self.owner, self.attribute, self.replacement))
            for owner, attribute in self.disabled:
                patches.enter_context(patch.object(owner, attribute, nothing))
            yield
