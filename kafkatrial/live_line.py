"""Live line of a command on a terminal: a spinner, the activity and the elapsed time; other lines scroll above it.

In a file or a pipe only the other lines are printed. Each of them makes sense alone, so a CI log needs no live line.
"""

from typing import Self

from rich.console import Console
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text


class LiveLine:
    """A context manager that shows the live line while its context is open, on an interactive terminal only."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._is_shown = console.is_terminal and console.is_interactive
        self._spinner = Spinner("dots", style="cyan")
        self._live = Live(self, console=console, refresh_per_second=8, transient=True)
        self._doing = Text("starting")
        self._began_s = console.get_time()

    @property
    def _elapsed_s(self) -> float:
        return self._console.get_time() - self._began_s

    def _print(self, text: Text) -> None:
        self._console.print(text, soft_wrap=True)

    def _begin(self, activity: Text) -> None:
        """Show an activity in the live line, or as a separate line if there is none."""
        self._doing = activity
        if not self._is_shown:
            self._print(activity)

    def _parts(self) -> tuple[Text, ...]:
        """Return the texts between the spinner and the elapsed time."""
        return (self._doing,)

    def __rich__(self) -> Table:
        line = Table.grid(padding=(0, 1))
        elapsed_s = int(self._elapsed_s)
        line.add_row(self._spinner, *self._parts(), Text(f"{elapsed_s // 60}:{elapsed_s % 60:02d}", "dim"))
        return line

    def __enter__(self) -> Self:
        if self._is_shown:
            self._live.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        if self._is_shown:
            self._live.stop()
