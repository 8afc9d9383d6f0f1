"""The options that select where a command computes: in this process or with Spark."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated

import typer

from kafkatrial.errors import UsageError


class Engine(StrEnum):
    """Engine that computes the results. Both engines return the same results."""

    LOCAL = "local"
    SPARK = "spark"


Master = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="Spark master for --engine spark: local[*], spark://…, yarn, k8s://… or sc://… (default: local[*]).",
    ),
]
SparkConf = Annotated[
    list[str] | None, typer.Option(metavar="NAME=VALUE", help="Spark setting NAME=VALUE; may be repeated.")
]


def reject_spark_options(engine: Engine, master: str | None, spark_conf: Sequence[str] | None) -> None:
    """Raise UsageError if Spark options are given for another engine."""
    if engine is Engine.LOCAL and (master or spark_conf):
        raise UsageError("--master and --spark-conf need --engine spark")
