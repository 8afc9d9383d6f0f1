"""Help of the commands: flags and arguments without a type, and examples at the end."""

from collections.abc import Sequence
from typing import Any

from typer.core import TyperCommand, TyperGroup


def examples_text(commands: Sequence[str]) -> str:
    """Return command lines as the epilog of a Typer command."""
    return "\n".join(("Examples:", *commands))


class Command(TyperCommand):
    """A command whose help shows no type beside a flag or an argument."""

    def get_params(self, ctx: Any) -> Any:
        """Return the parameters, `--help` included."""
        return _without_types(super().get_params(ctx))


class CommandGroup(TyperGroup):
    """A group of commands whose help shows no type beside a flag or an argument."""

    def get_params(self, ctx: Any) -> Any:
        """Return the parameters, `--help` included."""
        return _without_types(super().get_params(ctx))


def _without_types(parameters: Sequence[Any]) -> Sequence[Any]:
    """Hide the types of flags and arguments. Typer shows a flag's as `<bool>`, and an argument's as a Python type."""
    for parameter in parameters:
        if getattr(parameter, "is_flag", False):
            parameter.metavar = ""
        elif parameter.param_type_name == "argument":
            parameter.display_type_rich = _no_type
    return parameters


def _no_type(ctx: Any) -> None:
    """Return no type for the help."""
