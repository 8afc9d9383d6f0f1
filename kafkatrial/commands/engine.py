"""The options by which a command is told who computes: this machine, or Spark."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated

import typer

from kafkatrial.errors import UsageError


class Engine(StrEnum):
    """Who computes. Both say the same."""

    LOCAL = "local"
    SPARK = "spark"


Master = Annotated[
    str | None,
    typer.Option(metavar="URL", help="Spark's: local[*], spark://…, yarn, k8s://…, sc://… (--engine spark)."),
]
SparkConf = Annotated[
    list[str] | None, typer.Option(metavar="NAME=VALUE", help="A setting of Spark's; repeat it for several.")
]


def refuse_spark_options(engine: Engine, master: str | None, spark_conf: Sequence[str] | None) -> None:
    """Raise UsageError where Spark is told something, and does not compute."""
    if engine is Engine.LOCAL and (master or spark_conf):
        raise UsageError("--master and --spark-conf are Spark's: add --engine spark")
