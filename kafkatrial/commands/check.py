"""`kafkatrial check`: judge a saved history without running a cluster."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kafkatrial.commands.engine import Engine, Master, SparkConf, reject_spark_options
from kafkatrial.errors import UsageError
from kafkatrial.exit_codes import ExitCode
from linearizability.judgement import Judgement
from linearizability.printable import printable

if TYPE_CHECKING:
    from linearizability.verify import Budget

TIME_LIMIT_S = 60.0
MEMORY_LIMIT_MB = 1024
EXAMPLES = (
    "kafkatrial check examples/histories/lost-write",
    "kafkatrial check RUN_DIR --engine spark --json",
    "kafkatrial check history.edn",
    "kafkatrial check operations.ndjson --model register",
    "kafkatrial check RUN_DIR --picture page.html",
)


def _list_models(is_requested: bool) -> None:
    if is_requested:
        from linearizability.models.catalogue import models_text

        typer.echo(models_text())
        raise typer.Exit


def check(
    history: Annotated[
        Path,
        typer.Argument(
            metavar="HISTORY",
            help="Run directory, or a file, which may be gzipped: a history of Jepsen's Kafka workload (EDN, JSON),"
            " the tables as NDJSON, or a log in a format of porcupine's tests (etcd, key-value). With --model:"
            " operations of any object as NDJSON, or a log of Jepsen.",
        ),
    ],
    *,
    engine: Annotated[
        Engine, typer.Option(help="Engine that judges: this process, or Spark jobs, here or on a cluster.")
    ] = Engine.LOCAL,
    master: Master = None,
    spark_conf: SparkConf = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
    model: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Model to check linearizability against, instead of looking for anomalies."),
    ] = None,
    _models: Annotated[
        bool,
        typer.Option("--models", callback=_list_models, is_eager=True, help="List the models and their operations."),
    ] = False,
    time_limit_s: Annotated[
        float,
        typer.Option(
            "--time-limit", min=0, metavar="S", help="Seconds for a search; if it takes longer, the verdict is unknown."
        ),
    ] = TIME_LIMIT_S,
    memory_limit_mb: Annotated[
        int,
        typer.Option(
            "--memory-limit",
            min=1,
            metavar="MB",
            help="Megabytes for a search; if it needs more, the verdict is unknown.",
        ),
    ] = MEMORY_LIMIT_MB,
    step_limit: Annotated[
        int | None,
        typer.Option(
            min=0, metavar="N", help="Steps of a search; if it needs more, the verdict is unknown (default: no limit)."
        ),
    ] = None,
    picture: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.html", help="Page that shows the violation; further ones go to FILE-2.html and so on."
        ),
    ] = None,
) -> ExitCode:
    """Judge a saved history: find anomalies, or check linearizability."""
    from kafkatrial.reporting import show_unfinished
    from kafkatrial.saved_histories import (
        EXIT_CODES,
        SparkOptions,
        combine,
        histories_in,
        judge_each,
        spark_settings,
        unfinished_reasons,
    )
    from linearizability.verify import Budget

    budget = Budget(steps=step_limit, time_s=time_limit_s, memory_mb=memory_limit_mb)
    if model is not None:
        _require_known_model(model, engine)
    reject_spark_options(engine, master, spark_conf)
    if history.is_file():
        if engine is Engine.SPARK:
            export = "convert the file with `kafkatrial export`"
            raise UsageError(f"{history}: Spark judges run directories; leave --engine out, or {export}")
        return _check_file(history, model, budget, as_json=as_json, picture=picture)
    if history.exists() and not history.is_dir():
        raise UsageError(f"{history}: neither a file nor a directory; a history is read twice, so save it in a file")
    histories = histories_in(history)
    if engine is Engine.SPARK:
        spark = SparkOptions(master, spark_settings(spark_conf or ()), history / "spark.log")
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

        _list_pictures(picture_histories(picture, histories, judgements))
    return EXIT_CODES[combined.verdict]


def _require_known_model(model: str, engine: Engine) -> None:
    from linearizability.models.catalogue import MODELS

    if model not in MODELS:
        raise UsageError(
            f"there is no model {model!r}; there are {', '.join(MODELS)} (--models lists their operations)"
        )
    if engine is Engine.SPARK:
        raise UsageError("Spark looks for anomalies only; leave --engine or --model out")


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

        _list_pictures(picture_file(picture, found))
    return EXIT_CODES[found.judgement.verdict]


def _list_pictures(written: list[Path]) -> None:
    """Print the paths on standard error, since standard output may be JSON."""
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
