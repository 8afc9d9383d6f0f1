"""A mistake, and the faults that bring it to light."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch


def nothing(*_args: Any, **_named: Any) -> None:
    """In place of a function that would do something."""


@dataclass(frozen=True)
class Defect:
    """A mistake that is seen as `invariant`, by `seed` or by one of the next."""

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
    unseen_by: tuple[tuple[Any, str], ...] = ()
    """Checks that would see it first, and are left out."""

    @contextmanager
    def seeded(self) -> Iterator[None]:
        with ExitStack() as patches:
            patches.enter_context(patch.object(self.owner, self.attribute, self.replacement))
            for owner, attribute in self.unseen_by:
                patches.enter_context(patch.object(owner, attribute, nothing))
            yield
