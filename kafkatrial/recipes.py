"""Options `--targets FILE` (recipes that start other brokers) and `--client-settings FILE` (connections to clusters).

See docs/targets.md.
"""

import os
from pathlib import Path
from typing import Final

from kafkatrial.environment import CLIENT_SETTINGS, TARGETS

TARGETS_HELP: Final = (
    "TOML file with the recipes of other brokers, a table for each (default: kafkatrial.toml, if it exists)."
)

CLIENT_SETTINGS_HELP: Final = "TOML file with TLS and SASL settings for existing clusters (default: PLAINTEXT)."


def use_client_settings(file: Path | None) -> None:
    """Let this process and its children connect with the settings of a file.

    Raises:
        UnknownTargetError: a setting is invalid.
    """
    if file is not None:
        from fixtures.targets.connection_settings import settings_of_environment

        os.environ[CLIENT_SETTINGS] = str(file.absolute())
        settings_of_environment()


def use_recipes(file: Path | None) -> None:
    """Let this process and its children use the recipes of a file.

    Without a file, they use that of KAFKATRIAL_TARGETS or, if it is not set, the recipes of the working directory.

    Raises:
        RecipeError: a recipe is invalid.
    """
    import chaos.targets  # noqa: F401 - registers kinds, so that no recipe has their names
    from fixtures.targets.catalogue import target_kinds

    if file is not None:
        os.environ[TARGETS] = str(file.absolute())
    target_kinds()
