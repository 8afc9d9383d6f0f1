"""The histories that a directory holds, and one judgement over them.

A directory in the public format holds one history. A run of the suite holds one per requirement and target, and a chaos
session one per round. The judgement over several histories adds up their counts, and names the history in each piece of
evidence. If a run or session was interrupted or killed, the missing requirements or rounds make the verdict unknown at
best.
"""

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from kafkatrial.errors import UsageError
from kafkatrial.exit_codes import ExitCode
from linearizability.history.errors import HistoryError
from linearizability.history.files import read_bounded
from linearizability.history.run import RUN_FILE
from linearizability.judgement import EVIDENCE_MAX, Anomaly, Evidence, Judgement, Verdict
from linearizability.printable import counted
from linearizability.verify import Budget
from reports import results

SUMMARY_FILE = "summary.json"
"""Summary of a chaos session, beside the histories of its rounds."""
_ROUND_GLOB = "*-*/" + RUN_FILE

EXIT_CODES = {
    Verdict.OK: ExitCode.OK,
    Verdict.VIOLATION: ExitCode.VIOLATION,
    Verdict.UNKNOWN: ExitCode.INCONCLUSIVE,
}


@dataclass(frozen=True, slots=True)
class SparkOptions:
    """Master and settings of Spark from the command line, and the path of its log."""

    master: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    log: Path | None = None


def spark_settings(given: Sequence[str]) -> dict[str, str]:
    """Return Spark settings from `NAME=VALUE` arguments. Raises UsageError."""
    for setting in given:
        if not re.match(r"spark\.[^=\s]+=", setting):
            raise UsageError(f"--spark-conf {setting}: not spark.NAME=VALUE")
    return {name: value for name, _, value in (setting.partition("=") for setting in given)}


def histories_in(directory: Path) -> dict[str, Path]:
    """Return the histories in a directory by name; if the directory itself is a history, its name is empty.

    The result is empty if the command that wrote the directory was interrupted or killed before its first history.

    Raises:
        UsageError: the directory does not exist, or holds neither a history nor an unfinished run or session.
    """
    if directory.exists() and not directory.is_dir():
        raise UsageError(f"{directory}: not a directory; name a directory with a {RUN_FILE}")
    if not directory.is_dir():
        raise UsageError(f"{directory}: no such file or directory; name a history, or a directory with a {RUN_FILE}")
    if os.path.lexists(directory / RUN_FILE):
        return {"": directory}
    inside: dict[str, Path] = {}
    if _is_summarised(directory) or _rounds_in(directory):
        found = sorted(path.parent for path in directory.rglob(RUN_FILE))
        inside = {str(path.relative_to(directory)): path for path in found}
    if not inside and not unfinished_reasons(directory):
        if _is_summarised(directory):
            raise UsageError(f"{directory}: nothing to judge: the run recorded no history")
        raise UsageError(f"{directory}: not a run directory: it holds no {RUN_FILE}")
    return inside


def unfinished_reasons(directory: Path) -> tuple[str, ...]:
    """Return the reasons why histories of a run or session are missing from its directory; empty if none is missing.

    A history that was started is not missing: its `run.json` states whether it is complete.
    """
    if (directory / RUN_FILE).exists():
        return ()
    if _is_summarised(directory):
        run, session = _object_in(directory / results.FILE_NAME), _object_in(directory / SUMMARY_FILE)
        return (*_unjudged_requirements(run), *_missing_rounds(session))
    return (
        (f"unfinished: the chaos session was killed before it wrote {SUMMARY_FILE}",) if _rounds_in(directory) else ()
    )


def _is_summarised(directory: Path) -> bool:
    return any((directory / name).exists() for name in (results.FILE_NAME, SUMMARY_FILE))


def _rounds_in(directory: Path) -> list[Path]:
    """Return the rounds of a chaos session: directories named after target and seed of their run.json."""
    return [path.parent for path in directory.glob(_ROUND_GLOB) if _is_round(path)]


def _is_round(run_file: Path) -> bool:
    run = _object_in(run_file)
    return run_file.parent.name == f"{str(run.get('target')).replace(':', '-')}-{run.get('seed')}"


def _unjudged_requirements(run: Mapping[str, Any]) -> tuple[str, ...]:
    if run.get("complete") is not False:
        return ()
    outcomes, requirements, targets = (run.get(name) or () for name in ("outcomes", "requirements", "targets"))
    return (results.unfinished_text(len(outcomes), len(requirements) * len(targets)),)


def _missing_rounds(summary: Mapping[str, Any]) -> tuple[str, ...]:
    if summary.get("complete") is not False:
        return ()
    judged, planned = len(summary.get("rounds") or ()), summary.get("rounds_max")
    rounds = f"{judged} of {planned} rounds" if planned else counted(judged, "round")
    return (f"unfinished: {rounds} judged",)


def _object_in(path: Path) -> Mapping[str, Any]:
    """Return the JSON object in a file; empty if the file cannot be read or has none."""
    try:
        document = json.loads(read_bounded(path))
    except (HistoryError, OSError, ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


def judge_each(
    histories: Mapping[str, Path],
    model: str | None = None,
    budget: Budget | None = None,
    spark: SparkOptions | None = None,
) -> dict[str, Judgement]:
    """Judge every history: look for anomalies in this process or with Spark, or check a model within a budget.

    Raises:
        HistoryError: a history is damaged; if there are several histories, the message names the damaged one.
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
def _judging(
    model: str | None, budget: Budget | None, spark: SparkOptions | None
) -> Iterator[Callable[[Path], Judgement]]:
    """Yield the function that judges one history. Spark starts once for all of them."""
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

    with spark_progress() as progress, spark_session(spark.master, spark.settings, spark.log):
        yield partial(judge_with_spark, on_progress=progress)


def combine(judgements: Mapping[str, Judgement], unfinished: Sequence[str] = ()) -> Judgement:
    """Return one judgement over several histories.

    The judgement of a single history is returned unchanged, unless `unfinished` has reasons.
    """
    if len(judgements) == 1 and not unfinished:
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
        reasons=(
            *unfinished,
            *(f"{name}: {reason}" for name, judgement in judgements.items() for reason in judgement.reasons),
        ),
    )


def _in_history(row: Evidence, history: str) -> Evidence:
    return replace(row, text=f"{history}: {row.text}")
