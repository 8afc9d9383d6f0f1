"""`kafkatrial check`: judge a saved history again, without running anything."""

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from kafkatrial.errors import UsageError
from kafkatrial.exit_codes import ExitCode
from linearizability.judgement import Judgement

TIME_LIMIT_S = 60.0


class Engine(StrEnum):
    """Who computes the judgement. Both say the same."""

    LOCAL = "local"
    SPARK = "spark"


def check(
    history: Annotated[
        Path,
        typer.Argument(
            help="A run directory; or a file: a history of Jepsen's Kafka workload (EDN, JSON), the tables as NDJSON,"
            " a log that porcupine's tests read (etcd, key-value). It may be compressed by gzip."
        ),
    ],
    engine: Annotated[Engine, typer.Option(help="spark: for a history larger than memory.")] = Engine.LOCAL,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output, nothing else.")] = False,
    time_limit_s: Annotated[
        float,
        typer.Option("--time-limit", min=0, metavar="S", help="Seconds for a log that takes a search; then unknown."),
    ] = TIME_LIMIT_S,
    picture: Annotated[
        Path | None,
        typer.Option(metavar="FILE.html", help="Draw the violation as a page; of several, the next as FILE-2.html."),
    ] = None,
) -> ExitCode:
    """Judge a saved history again."""
    from kafkatrial.saved_histories import EXIT_CODES, combine, histories_in, judge_each

    if history.is_file():
        return _check_file(history, engine, as_json, time_limit_s, picture)
    histories = histories_in(history)
    judgements = judge_each(histories, str(engine))
    combined = combine(judgements)
    if as_json:
        typer.echo(json.dumps(combined.as_json()))
    else:
        for name, judgement in judgements.items():
            _show(name, judgement)
    if picture is not None:
        from kafkatrial.pictures import picture_histories

        _tell_pictures(picture_histories(picture, histories, judgements))
    return EXIT_CODES[combined.verdict]


def _check_file(path: Path, engine: Engine, as_json: bool, time_limit_s: float, picture: Path | None) -> ExitCode:
    from kafkatrial.saved_histories import EXIT_CODES
    from linearizability.check_file import judge_file
    from linearizability.verify import Budget

    if engine is Engine.SPARK:
        raise UsageError(
            f"{path}: Spark judges run directories; leave --engine out, or make it one with `kafkatrial export`"
        )
    found = judge_file(path, Budget(time_s=time_limit_s))
    if as_json:
        typer.echo(json.dumps(found.judgement.as_json()))
    else:
        _show(found.form.value, found.judgement, found.explanation)
    if picture is not None:
        from kafkatrial.pictures import picture_file

        _tell_pictures(picture_file(picture, found))
    return EXIT_CODES[found.judgement.verdict]


def _tell_pictures(written: list[Path]) -> None:
    """On standard error, since standard output may be JSON."""
    for path in written:
        typer.echo(f"picture: {path}", err=True)
    if not written:
        typer.echo("no violation, no picture", err=True)


def _show(title: str, judgement: Judgement, explanation: str = "") -> None:
    from rich.text import Text

    from kafkatrial.console import show, stdout_console
    from reports.printable import printable
    from reports.terminal import render_judgement

    console = stdout_console()
    if title:
        show(console, Text(title, "bold"))
    show(console, render_judgement(judgement))
    if explanation:
        show(console, Text(f"\n{printable(explanation)}"))
