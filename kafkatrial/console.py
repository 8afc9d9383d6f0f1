"""Standard output as every command uses it: a terminal as wide as it is, a log wide enough to keep lines whole."""

from rich.console import Console, RenderableType

from reports.console import DataConsole

_WIDTH_OF_LOGS = 140


def stdout_console(*, quiet: bool = False) -> Console:
    """A console without guesses about what numbers and words mean; colour follows NO_COLOR, as Rich does."""
    console = DataConsole(quiet=quiet)
    return console if console.is_terminal else DataConsole(quiet=quiet, width=_WIDTH_OF_LOGS)


def show(console: Console, renderable: RenderableType) -> None:
    """Print it without cutting lines that are to be copied; in a log without the spaces that fill lines up."""
    if console.is_terminal:
        console.print(renderable, crop=False)
        return
    with console.capture() as capture:
        console.print(renderable, crop=False)
    lines = (line.rstrip() for line in capture.get().splitlines())
    console.print("\n".join(lines), soft_wrap=True)
