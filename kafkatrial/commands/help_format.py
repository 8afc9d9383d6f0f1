"""Help of the commands: flags without a type, and examples at the end."""

from collections.abc import Sequence
from typing import Any

from typer.core import TyperCommand, TyperGroup


def examples_text(commands: Sequence[str]) -> str:
    """Return command lines as the epilog of a Typer command."""
    return "\n".join(("Examples:", *commands))


class Command(TyperCommand):
    """A command whose help shows no type beside a flag."""

    def get_params(self, ctx: Any) -> Any:
        """Return the parameters, `--help` included."""
        return _without_types_of_flags(super().get_params(ctx))


class CommandGroup(TyperGroup):
    """A group of commands whose help shows no type beside a flag."""

    def get_params(self, ctx: Any) -> Any:
        """Return the parameters, `--help` included."""
        return _without_types_of_flags(super().get_params(ctx))


def _without_types_of_flags(parameters: Sequence[Any]) -> Sequence[Any]:
    for parameter in parameters:
        if getattr(parameter, "is_flag", False):
            parameter.metavar = ""
    return parameters
