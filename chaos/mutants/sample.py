"""Which mutants are tried: a sample drawn from a seed, the same on every machine while the source is the same."""

import random
from collections.abc import Iterator
from pathlib import Path

from chaos.mutants.mutations import Mutant, mutants_of

PACKAGE = "reference_broker.core"


def all_mutants(root: Path, package: str = PACKAGE) -> Iterator[Mutant]:
    """Every mutant of a package, by module and place.

    :param root: the directory that holds `reference_broker`.
    """
    for path in sorted((root / Path(*package.split("."))).rglob("*.py")):
        module = ".".join(path.relative_to(root).with_suffix("").parts)
        yield from mutants_of(module, path.read_text())


def draw(mutants: list[Mutant], count: int, seed: int) -> list[Mutant]:
    """So many of them, each as likely as any other, in the order of the draw."""
    return random.Random(seed).sample(mutants, min(count, len(mutants)))
