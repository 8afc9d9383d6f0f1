"""What a person sees while a report is made: on a terminal a live line, in a log nothing."""

from typing import Self

from rich.console import Console
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text


class ReportProgress:
    """A context manager that is told each step."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._watched = console.is_terminal and console.is_interactive
        self._live = Live(self, console=console, refresh_per_second=8, transient=True)
        self._spinner = Spinner("dots", style="cyan")
        self._doing = Text("starting")
        self._began_s = console.get_time()

    def tell(self, step: str) -> None:
        """Say what is done now."""
        self._doing = Text(step)

    def __rich__(self) -> Table:
        line = Table.grid(padding=(0, 1))
        elapsed_s = int(self._console.get_time() - self._began_s)
        line.add_row(self._spinner, self._doing, Text(f"{elapsed_s // 60}:{elapsed_s % 60:02d}", "dim"))
        return line

    def __enter__(self) -> Self:
        if self._watched:
            self._live.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        if self._watched:
            self._live.stop()
