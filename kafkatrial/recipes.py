"""`--targets FILE`: the recipes of other brokers (docs/targets.md)."""

import os
from pathlib import Path
from typing import Final

from kafkatrial.environment import TARGETS

TARGETS_HELP: Final = "TOML file that defines how other brokers start (default: kafkatrial.toml, if it exists)."


def use_recipes(file: Path | None) -> None:
    """Let this process and its children use the recipes of a file; without one, those of the working directory.

    Raises:
        RecipeError: a recipe is invalid.
    """
    import chaos.targets  # noqa: F401 - registers kinds, so that no recipe has their names
    from fixtures.targets.catalogue import target_kinds

    if file is not None:
        os.environ[TARGETS] = str(file.absolute())
    target_kinds()
