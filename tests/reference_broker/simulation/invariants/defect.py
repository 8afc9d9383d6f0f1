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
    """A defect that violates `invariant` in a storm (`storm.Storm`) with `seed` or with one of the following seeds.

    :param owner: object whose `attribute` is replaced by `replacement`.
    :param kinds: kinds of the injected faults, from `storm.KINDS`.
    :param faults: number of faults, which are injected in the first `faulty_ms` of the storm.
    :param for_ms: duration of each fault; by default, random.
    :param properties: properties of all nodes.
    :param disabled: (owner, attribute) of checks that would fail first; they are replaced by `nothing`.
    """

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

    @contextmanager
    def seeded(self) -> Iterator[None]:
        """Put the defect into the code until the context ends."""
        with ExitStack() as patches:
            patches.enter_context(patch.object(self.owner, self.attribute, self.replacement))
            for owner, attribute in self.disabled:
                patches.enter_context(patch.object(owner, attribute, nothing))
            yield
