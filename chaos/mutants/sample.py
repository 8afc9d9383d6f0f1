"""Sample of mutants by a seed, the same on every machine.

The sample has the mutants with the lowest hash of seed and id. If one function of the core changes, most of the sample
therefore stays the same, and so do the decisions about survivors in other functions.
"""

from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path

from chaos.mutants.mutations import Mutant, mutants_of
from chaos.mutants.rules import CLASSIC, Rules

PACKAGE = "reference_broker.core"


def all_mutants(root: Path, package: str = PACKAGE, rules: Rules = CLASSIC) -> Iterator[Mutant]:
    """Yield every mutant of a package by a set of rules, in the order of modules and source.

    :param root: directory that contains the package `reference_broker`.
    """
    for path in sorted((root / Path(*package.split("."))).rglob("*.py")):
        module = ".".join(path.relative_to(root).with_suffix("").parts)
        yield from mutants_of(module, path.read_text(), rules)


def sample(mutants: list[Mutant], count: int, seed: int) -> list[Mutant]:
    """Return a random sample of at most `count` mutants, in random order."""
    return sorted(mutants, key=lambda mutant: _rank(mutant, seed))[:count]


def _rank(mutant: Mutant, seed: int) -> bytes:
    return blake2b(f"{seed} {mutant.id}".encode()).digest()
