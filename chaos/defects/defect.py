"""A defect: a bug that is seeded into the reference broker from outside, to check that the suite detects it.

Rules of this package:
- A defect replaces one function of the broker at run time; the source of the broker is unchanged. The cluster still
  starts and works, and fails only where the function matters.
- Its name is that of the replacement function. Its story is that function's docstring: what the code does wrong, then
  the effect for a user.
- `source` names reports of the bug in real brokers, and KIPs. It is empty if none is known.
- `expected` names checks that should detect it: an invariant of the simulation, an anomaly of a history, `exception`,
  or a requirement's id (which has a `/`). A defect counts as detected if any check detects it, listed or not;
  `chaos.sensitivity` records which check it was.

A worker process receives the name and looks the defect up (`registry.defect`), since functions cannot be pickled.
"""

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from types import ModuleType
from typing import Any


class Area(StrEnum):
    """The part of the broker with the bug."""

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
        """Return a decorator that turns a function into a `Defect`.

        The function replaces `owner.attribute`, which is a function, a method or a property.
        """

        def make(function: Callable[..., Any]) -> Defect:
            return Defect(
                name=function.__name__.replace("_", "-"),
                area=self,
                story=" ".join(inspect.cleandoc(function.__doc__ or "").split()),
                source=source,
                expected=expected,
                owner=owner,
                attribute=attribute,
                replacement=_same_descriptor(vars(owner)[attribute], function),
            )

        return make


@dataclass(frozen=True, slots=True)
class Defect:
    """A bug, and the function that seeds it by replacing a function of the broker.

    :param name: name in kebab case.
    :param source: tickets, KIPs and reports, separated by commas.
    :param owner: the class or module that contains the replaced function.
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
        """Seed this bug inside the context. Must not be nested with a defect of the same attribute."""
        original = vars(self.owner)[self.attribute]
        setattr(self.owner, self.attribute, self.replacement)
        try:
            yield
        finally:
            setattr(self.owner, self.attribute, original)

    @property
    def sources(self) -> tuple[str, ...]:
        """The entries of `source`, as a tuple."""
        return tuple(filter(None, self.source.split(", ")))

    @property
    def place(self) -> str:
        """The replaced function, as `module.Class.function`."""
        owner = self.owner
        where = owner.__name__ if isinstance(owner, ModuleType) else f"{owner.__module__}.{owner.__qualname__}"
        return f"{where.removeprefix('reference_broker.core.')}.{self.attribute}"


def _same_descriptor(original: Any, function: Callable[..., Any]) -> Any:
    for kind in (property, staticmethod, classmethod):
        if isinstance(original, kind):
            return kind(function)
    return function
