"""`kafkatrial check`: judge a saved history again, without running anything."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kafkatrial.commands.engine import Engine, Master, SparkConf, refuse_spark_options
from kafkatrial.errors import UsageError
from kafkatrial.exit_codes import ExitCode
from linearizability.judgement import Judgement
from linearizability.printable import printable

if TYPE_CHECKING:
    from linearizability.verify import Budget

TIME_LIMIT_S = 60.0
MEMORY_LIMIT_MB = 1024


def _tell_models(wanted: bool) -> None:
    if wanted:
        from linearizability.models.catalogue import models_text

        typer.echo(models_text())
        raise typer.Exit


def check(
    history: Annotated[
        Path,
        typer.Argument(
            help="A run directory; or a file: a history of Jepsen's Kafka workload (EDN, JSON), the tables as NDJSON,"
            " a log that porcupine's tests read (etcd, key-value), and with --model operations of any object as NDJSON"
            " or a log of Jepsen's. It may be compressed by gzip."
        ),
    ],
    *,
    engine: Annotated[Engine, typer.Option(help="spark: as jobs of Spark, here or on a cluster.")] = Engine.LOCAL,
    master: Master = None,
    spark_conf: SparkConf = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output, nothing else.")] = False,
    model: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Is it linearizable as such an object? Instead of looking for anomalies."),
    ] = None,
    _models: Annotated[
        bool,
        typer.Option("--models", callback=_tell_models, is_eager=True, help="Tell the models and their operations."),
    ] = False,
    time_limit_s: Annotated[
        float,
        typer.Option("--time-limit", min=0, metavar="S", help="Seconds for what takes a search; then unknown."),
    ] = TIME_LIMIT_S,
    memory_limit_mb: Annotated[
        int, typer.Option("--memory-limit", min=1, metavar="MB", help="Megabytes for the same.")
    ] = MEMORY_LIMIT_MB,
    step_limit: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="Steps for the same: operations that are tried.")
    ] = None,
    picture: Annotated[
        Path | None,
        typer.Option(metavar="FILE.html", help="Draw the violation as a page; of several, the next as FILE-2.html."),
    ] = None,
) -> ExitCode:
    """Judge a saved history again."""
    from kafkatrial.reporting import show_unfinished
    from kafkatrial.saved_histories import (
        EXIT_CODES,
        Spark,
        combine,
        histories_in,
        judge_each,
        spark_settings,
        unfinished_reasons,
    )
    from linearizability.verify import Budget

    budget = Budget(steps=step_limit, time_s=time_limit_s, memory_mb=memory_limit_mb)
    if model is not None:
        _refuse_unknown(model, engine)
    refuse_spark_options(engine, master, spark_conf)
    if history.is_file():
        if engine is Engine.SPARK:
            made = "make it one with `kafkatrial export`"
            raise UsageError(f"{history}: Spark judges run directories; leave --engine out, or {made}")
        return _check_file(history, model, budget, as_json=as_json, picture=picture)
    if history.exists() and not history.is_dir():
        raise UsageError(f"{history}: neither a file nor a directory; a history is read twice, so save it in a file")
    histories = histories_in(history)
    if engine is Engine.SPARK:
        spark = Spark(master, spark_settings(spark_conf or ()), history / "spark.log")
        judgements = judge_each(histories, spark=spark)
    else:
        judgements = judge_each(histories, model, budget)
    unfinished = unfinished_reasons(history)
    combined = combine(judgements, unfinished)
    if as_json:
        typer.echo(json.dumps(combined.as_json()))
    else:
        for name, judgement in judgements.items():
            _show(name, judgement)
        show_unfinished(unfinished)
    if picture is not None:
        from kafkatrial.pictures import picture_histories

        _tell_pictures(picture_histories(picture, histories, judgements))
    return EXIT_CODES[combined.verdict]


def _refuse_unknown(model: str, engine: Engine) -> None:
    from linearizability.models.catalogue import MODELS

    if model not in MODELS:
        raise UsageError(f"there is no model {model!r}; there are {', '.join(MODELS)} (--models tells what they take)")
    if engine is Engine.SPARK:
        raise UsageError("Spark judges for anomalies only; leave --engine or --model out")


def _check_file(path: Path, model: str | None, budget: "Budget", *, as_json: bool, picture: Path | None) -> ExitCode:
    from kafkatrial.saved_histories import EXIT_CODES
    from linearizability.check_file import judge_file

    found = judge_file(path, budget, model)
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
        typer.echo(f"picture: {printable(path)}", err=True)
    if not written:
        typer.echo("no violation, no picture", err=True)


def _show(title: str, judgement: Judgement, explanation: str = "") -> None:
    from rich.text import Text

    from kafkatrial.console import show, stdout_console
    from linearizability.printable import PROGRAM_MAX, printable
    from reports.terminal import render_judgement

    console = stdout_console()
    if title:
        show(console, Text(title, "bold"))
    show(console, render_judgement(judgement))
    if explanation:
        show(console, Text(f"\n{printable(explanation, PROGRAM_MAX)}"))
