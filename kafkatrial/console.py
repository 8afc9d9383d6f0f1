"""Standard output of all commands: as wide as the terminal, or 140 columns if it is not a terminal (in a log)."""

from rich.console import Console, RenderableType

from reports.console import DataConsole

_WIDTH_OF_LOGS = 140


def stdout_console(*, quiet: bool = False) -> Console:
    """Return a console without highlighting of numbers and words; colour follows NO_COLOR, as in Rich."""
    console = DataConsole(quiet=quiet)
    return console if console.is_terminal else DataConsole(quiet=quiet, width=_WIDTH_OF_LOGS)


def show(console: Console, renderable: RenderableType) -> None:
    """Print without cropping lines, so that they can be copied. In a log, trailing spaces are removed."""
    if console.is_terminal:
        console.print(renderable, crop=False)
        return
    with console.capture() as capture:
        console.print(renderable, crop=False)
    lines = (line.rstrip() for line in capture.get().splitlines())
    console.print("\n".join(lines), soft_wrap=True)
