"""Settings of `kafkatrial run`, from the command line, the environment and pyproject.toml, in this order of precedence.

An environment variable is, for example, `KAFKATRIAL_TARGET=reference,apache-kafka:4.3.1`. In the pyproject.toml of the
current directory, the table `[tool.kafkatrial]` has the settings, with the names of the options. An unknown name in it
is an error: if a misspelt setting were ignored, the run would not test what the user wants.
"""

import difflib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, field_validator
from pydantic_settings import (
    BaseSettings,
    NoDecode,
    PydanticBaseSettingsSource,
    PyprojectTomlConfigSettingsSource,
    SettingsConfigDict,
)

from kafkatrial.errors import UsageError

_ENV_PREFIX = "KAFKATRIAL_"


class RunSettings(BaseSettings):
    """Settings of `kafkatrial run`."""

    model_config = SettingsConfigDict(
        env_prefix=_ENV_PREFIX, pyproject_toml_table_header=("tool", "kafkatrial"), extra="forbid", frozen=True
    )

    target: Annotated[tuple[str, ...], NoDecode, Field(min_length=1)] = ("reference",)
    nodes: Annotated[int, Field(ge=1)] | None = None
    seed: Annotated[int, Field(ge=0)] | None = None
    level: Literal["must", "should"] = "should"
    profile: str = "ci"
    expectations: Path | None = None
    out: Path | None = None
    targets: Annotated[str | dict[str, dict[str, Any]] | None, NoDecode] = None
    """Recipes of other brokers, or the path of their file. The value is not used here: `fixtures.targets.recipe_file`
    reads the same setting, for every command. Without this field, the setting would be rejected as unknown."""

    @field_validator("target", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        return tuple(filter(None, map(str.strip, value.split(",")))) if isinstance(value, str) else value

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Return the sources by precedence: command line, environment, pyproject.toml."""
        return init_settings, env_settings, PyprojectTomlConfigSettingsSource(settings_cls)


def load_settings(from_command_line: Mapping[str, object]) -> RunSettings:
    """Return the settings from all three sources. None and empty values of the command line mean "not given".

    Raises:
        UsageError: a value or a name is invalid; the message names the setting and its source.
    """
    given = {name: value for name, value in from_command_line.items() if value not in (None, (), [])}
    try:
        return RunSettings(**given)  # type: ignore[arg-type]  # pydantic validates the types
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0])
        raise UsageError(_error_message(name, first["type"], first["msg"], given)) from error
    except ValueError as error:  # raised by the TOML reader
        raise UsageError(f"pyproject.toml: {error}") from error


def _error_message(name: str, error_type: str, message: str, given: Mapping[str, object]) -> str:
    """Return pydantic's message for a setting, with the source of the invalid value.

    Only the name in pyproject.toml can be unknown, because pydantic ignores other environment variables.
    """
    if error_type == "extra_forbidden":
        close = difflib.get_close_matches(name, RunSettings.model_fields)
        hint = f"; did you mean {close[0]}?" if close else f"; there are {', '.join(RunSettings.model_fields)}"
        return f"pyproject.toml, [tool.kafkatrial]: no setting {name}{hint}"
    if name in given:
        where = f"--{name}"
    elif f"{_ENV_PREFIX}{name.upper()}" in os.environ:
        where = f"environment variable {_ENV_PREFIX}{name.upper()}"
    else:
        where = f"pyproject.toml, [tool.kafkatrial], {name}"
    return f"{where}: {message[0].lower()}{message[1:]}"
