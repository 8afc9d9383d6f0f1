"""The examples at the end of a command's help."""

from collections.abc import Sequence


def examples_text(commands: Sequence[str]) -> str:
    """Return command lines as the epilog of a Typer command."""
    return "\n".join(("Examples:", *commands))
