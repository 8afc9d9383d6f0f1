"""A defect: a bug that is seeded into the reference broker from outside, to see whether the suite catches it.

Rules of this package:
- A defect replaces one function, and is a mistake that somebody could make: it lets a cluster start and work, and hurts
  where the function matters. The core has no trace of it.
- Its name is that of the function which takes the place, its story that function's docstring: what the code does wrong,
  then what a user sees of it.
- `source` says where it really happened. A defect without one is a plausible slip.
- `expected` names what is to catch it: an invariant of the simulation, an anomaly of a history, `exception`, or a
  requirement's id (which has a `/`). Any one of them will do, and so will something else; what did catch it is measured
  (`chaos.sensitivity`).

A worker process seeds by name (`registry.defect`), since functions do not travel.
"""

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from types import ModuleType
from typing import Any


class Area(StrEnum):
    """The part of the broker that is wrong."""

    PROTOCOL = "protocol"
    LOG = "log"
    RECOVERY = "recovery"
    DURABILITY = "durability"
    REPLICATION = "replication"
    ISR = "isr"
    ELECTION = "election"
    CONTROLLER = "controller"
    QUORUM = "quorum"
    METADATA = "metadata"
    IDEMPOTENCE = "idempotence"
    GROUPS = "groups"
    FILES = "files"
    PROCESS = "process"

    def seeds(
        self, owner: type | ModuleType, attribute: str, *expected: str, source: str = ""
    ) -> "Callable[[Callable[..., Any]], Defect]":
        """Of a function: it takes the place of `owner.attribute`, be that a function, a method or a property."""

        def make(function: Callable[..., Any]) -> Defect:
            return Defect(
                name=function.__name__.replace("_", "-"),
                area=self,
                story=" ".join(inspect.cleandoc(function.__doc__ or "").split()),
                source=source,
                expected=expected,
                owner=owner,
                attribute=attribute,
                replacement=_of_the_kind_of(vars(owner)[attribute], function),
            )

        return make


@dataclass(frozen=True, slots=True)
class Defect:
    """One bug.

    :param name: in kebab case.
    :param source: tickets, KIPs and reports, with commas between; empty where it is not known to have happened.
    :param owner: a class, or the module in which the function is looked up.
    """

    name: str
    area: Area
    story: str
    source: str
    expected: tuple[str, ...]
    owner: type | ModuleType
    attribute: str
    replacement: Any

    @contextmanager
    def seeded(self) -> Iterator[None]:
        """The broker has this bug. Not to be nested with itself, nor with a defect in the same place."""
        original = vars(self.owner)[self.attribute]
        setattr(self.owner, self.attribute, self.replacement)
        try:
            yield
        finally:
            setattr(self.owner, self.attribute, original)

    @property
    def sources(self) -> tuple[str, ...]:
        """One by one."""
        return tuple(filter(None, self.source.split(", ")))

    @property
    def place(self) -> str:
        """What is replaced, as `module.Class.function`."""
        owner = self.owner
        where = owner.__name__ if isinstance(owner, ModuleType) else f"{owner.__module__}.{owner.__qualname__}"
        return f"{where.removeprefix('reference_broker.core.')}.{self.attribute}"


def _of_the_kind_of(original: Any, function: Callable[..., Any]) -> Any:
    for kind in (property, staticmethod, classmethod):
        if isinstance(original, kind):
            return kind(function)
    return function
