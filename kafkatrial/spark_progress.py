"""Progress of Spark or a report: a live line or periodic lines, on standard error since standard output may be JSON."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from rich.console import Console
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from linearizability.printable import printable
from reports.console import DataConsole

PLAIN_INTERVAL_S: Final = 30.0


@contextmanager
def spark_progress(console: Console | None = None, doing: str = "starting Spark") -> Iterator[Callable[[object], None]]:
    """Yield a function that shows its argument as the current progress. Any thread may call it."""
    console = console or DataConsole(stderr=True)
    if not (console.is_terminal and console.is_interactive):
        yield _Plain(console)
        return
    spinner = Spinner("dots", Text(doing), style="cyan")
    with Live(spinner, console=console, refresh_per_second=8, transient=True):
        yield lambda progress: spinner.update(text=Text(printable(progress)))


class _Plain:
    def __init__(self, console: Console) -> None:
        self._console = console
        self._last_s = time.monotonic()

    def __call__(self, progress: object) -> None:
        if time.monotonic() - self._last_s >= PLAIN_INTERVAL_S:
            self._last_s = time.monotonic()
            self._console.print(Text(printable(progress)), soft_wrap=True)
