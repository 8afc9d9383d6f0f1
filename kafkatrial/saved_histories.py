"""The histories that a directory holds, and one judgement over them.

A directory in the public format holds one history, and is judged as it is. A run of ours holds one per requirement and
target, one of chaos one per round; its judgement adds their counts up and names the history in each piece of evidence.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from kafkatrial.errors import UsageError
from kafkatrial.exit_codes import ExitCode
from linearizability.history.errors import HistoryError
from linearizability.history.run import RUN_FILE
from linearizability.judgement import EVIDENCE_MAX, Anomaly, Evidence, Judgement, Verdict
from linearizability.verify import Budget
from reports import results

_OF_CHAOS = "summary.json"
"""What a run of chaos leaves beside the histories of its rounds."""

EXIT_CODES = {
    Verdict.OK: ExitCode.OK,
    Verdict.VIOLATION: ExitCode.VIOLATION,
    Verdict.UNKNOWN: ExitCode.INCONCLUSIVE,
}


@dataclass(frozen=True, slots=True)
class Spark:
    """Where and how Spark runs, as the command line says."""

    master: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    log: Path | None = None


def spark_settings(given: Sequence[str]) -> dict[str, str]:
    """`NAME=VALUE` as Spark's settings. Raises UsageError."""
    for setting in given:
        if not re.match(r"spark\.[^=\s]+=", setting):
            raise UsageError(f"--spark-conf {setting}: not spark.NAME=VALUE")
    return {name: value for name, _, value in (setting.partition("=") for setting in given)}


def histories_in(directory: Path) -> dict[str, Path]:
    """The histories by name: the directory itself has the empty name.

    Raises:
        UsageError: there is no history in it.
    """
    if not directory.is_dir():
        raise UsageError(f"{directory}: no such file or directory; name a history, or a directory with a {RUN_FILE}")
    if (directory / RUN_FILE).exists():
        return {"": directory}
    inside: dict[str, Path] = {}
    if any((directory / name).exists() for name in (results.FILE_NAME, _OF_CHAOS)):
        found = sorted(path.parent for path in directory.rglob(RUN_FILE))
        inside = {str(path.relative_to(directory)): path for path in found}
    if not inside:
        raise UsageError(f"{directory}: not a run directory: it holds no {RUN_FILE}")
    return inside


def judge_each(
    histories: Mapping[str, Path],
    model: str | None = None,
    budget: Budget | None = None,
    spark: Spark | None = None,
) -> dict[str, Judgement]:
    """Judge every history for anomalies, here or on Spark, which say the same; or by a model, within a budget.

    Raises:
        HistoryError: one is broken; where there are several, the message says which.
    """
    judgements: dict[str, Judgement] = {}
    with _judging(model, budget, spark) as judge:
        for name, path in histories.items():
            try:
                judgements[name] = judge(path)
            except HistoryError as error:
                if not name or str(path) in str(error):
                    raise
                raise type(error)(f"{path}: {error}") from None
    return judgements


@contextmanager
def _judging(model: str | None, budget: Budget | None, spark: Spark | None) -> Iterator[Callable[[Path], Judgement]]:
    """The function that judges one history. Spark starts once for all."""
    if model is not None:
        from linearizability.check_object import judge_object

        yield partial(judge_object, model=model, budget=budget)
        return
    if spark is None:
        from linearizability.check import judge

        yield judge
        return
    from kafkatrial.spark_progress import spark_progress
    from reports.spark.check import judge_with_spark
    from reports.spark.session import spark_session

    with spark_progress() as tell, spark_session(spark.master, spark.settings, spark.log):
        yield partial(judge_with_spark, tell=tell)


def combine(judgements: Mapping[str, Judgement]) -> Judgement:
    """One judgement over one or several histories; that of a single one unchanged."""
    if len(judgements) == 1:
        return next(iter(judgements.values()))
    found: dict[tuple[str, Verdict], Anomaly] = {}
    for history, judgement in judgements.items():
        for anomaly in judgement.anomalies:
            key = anomaly.name, anomaly.verdict
            before = found.get(key, Anomaly(anomaly.name, anomaly.verdict, 0, ()))
            evidence = (*before.evidence, *(_in_history(row, history) for row in anomaly.evidence))[:EVIDENCE_MAX]
            found[key] = replace(before, count=before.count + anomaly.count, evidence=evidence)
    return Judgement(
        operations=sum(judgement.operations for judgement in judgements.values()),
        records=sum(judgement.records for judgement in judgements.values()),
        anomalies=tuple(found.values()),
        reasons=tuple(f"{name}: {reason}" for name, judgement in judgements.items() for reason in judgement.reasons),
    )


def _in_history(row: Evidence, history: str) -> Evidence:
    return replace(row, text=f"{history}: {row.text}")
