"""Sample of mutants by a seed, the same on every machine.

Mutants are sorted by a hash of the seed and their id. So after a change of one function, most of the sample is the
same, and decisions about survivors in other functions remain valid.
"""

from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path

from chaos.mutants.mutations import Mutant, mutants_of
from chaos.mutants.rules import CLASSIC, Rules

PACKAGE = "reference_broker.core"


def all_mutants(root: Path, package: str = PACKAGE, rules: Rules = CLASSIC) -> Iterator[Mutant]:
    """Yield every mutant of a package by a set of rules, in the order of modules and source.

    :param root: the directory with `reference_broker`.
    """
    for path in sorted((root / Path(*package.split("."))).rglob("*.py")):
        module = ".".join(path.relative_to(root).with_suffix("").parts)
        yield from mutants_of(module, path.read_text(), rules)


def sample(mutants: list[Mutant], count: int, seed: int) -> list[Mutant]:
    """Return a sample of `count` mutants, each with the same probability, in random order."""
    return sorted(mutants, key=lambda mutant: _rank(mutant, seed))[:count]


def _rank(mutant: Mutant, seed: int) -> bytes:
    return blake2b(f"{seed} {mutant.id}".encode()).digest()
