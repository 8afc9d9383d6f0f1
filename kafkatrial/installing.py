"""Progress of an installation: a bar on a terminal, otherwise a line for every 10 percent of the steps."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from fixtures.targets.jars import Progress as ReportProgress
from kafkatrial.console import stdout_console


@contextmanager
def show_progress(name: str) -> Iterator[ReportProgress]:
    """Yield a function that shows the progress of the installation of a target.

    :param name: name of the target.
    """
    console = stdout_console()
    if not console.is_terminal:
        yield _PlainReport(console)
        return
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(f"installing {name}", total=None)

        def report(text: str, done: int, total: int) -> None:
            bar.update(task, description=text, completed=done, total=total or None)

        yield report


class _PlainReport:
    """Progress in plain lines: one for every 10 percent of the steps, or for each text if their number is unknown."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._last: tuple[str | int, int] = "", 0

    def __call__(self, text: str, done: int, total: int) -> None:
        current = (total, done * 10 // total) if total else (text, 0)
        if current != self._last:
            self._last = current
            self._console.print(f"{text} ({done}/{total})" if total else text, soft_wrap=True)
