"""`kafkatrial check`: judge a saved history again, without running anything."""

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from kafkatrial.exit_codes import ExitCode


class Engine(StrEnum):
    """Who computes the judgement. Both say the same."""

    LOCAL = "local"
    SPARK = "spark"


def check(
    run_dir: Annotated[Path, typer.Argument(help="A history in the public format, or a run of `kafkatrial run`.")],
    engine: Annotated[Engine, typer.Option(help="spark: for a history larger than memory.")] = Engine.LOCAL,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output, nothing else.")] = False,
) -> ExitCode:
    """Judge a saved history again."""
    from kafkatrial.saved_histories import EXIT_CODES, combine, histories_in, judge_each

    judgements = judge_each(histories_in(run_dir), str(engine))
    combined = combine(judgements)
    if as_json:
        typer.echo(json.dumps(combined.as_json()))
    else:
        from rich.text import Text

        from kafkatrial.console import show, stdout_console
        from reports.terminal import render_judgement

        console = stdout_console()
        for name, judgement in judgements.items():
            if name:
                show(console, Text(name, "bold"))
            show(console, render_judgement(judgement))
    return EXIT_CODES[combined.verdict]
