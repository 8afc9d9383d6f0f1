"""Which mutants are tried: a sample drawn from a seed, the same on every machine.

Each mutant draws its own lot, from its id, so that a change of one function leaves the sample of all others as it was,
and decisions about survivors remain valid.
"""

from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path

from chaos.mutants.mutations import Mutant, mutants_of
from chaos.mutants.rules import CLASSIC, Rules

PACKAGE = "reference_broker.core"


def all_mutants(root: Path, package: str = PACKAGE, rules: Rules = CLASSIC) -> Iterator[Mutant]:
    """Every mutant of a package by a set of rules, by module and place.

    :param root: the directory that holds `reference_broker`.
    """
    for path in sorted((root / Path(*package.split("."))).rglob("*.py")):
        module = ".".join(path.relative_to(root).with_suffix("").parts)
        yield from mutants_of(module, path.read_text(), rules)


def draw(mutants: list[Mutant], count: int, seed: int) -> list[Mutant]:
    """So many of them, each as likely as any other, in the order of the draw."""
    return sorted(mutants, key=lambda mutant: _lot(mutant, seed))[:count]


def _lot(mutant: Mutant, seed: int) -> bytes:
    return blake2b(f"{seed} {mutant.id}".encode()).digest()
