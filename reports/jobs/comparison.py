"""Changes from one run to the next: figures, anomalies and settings."""

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import pairwise
from typing import Any, Final

import pyarrow as pa

from linearizability.history.run import RunInfo
from linearizability.judgement import Judgement, Verdict
from reports.jobs.definition import Column, Table, number, text
from reports.jobs.figures import FIGURES, Better

NOTABLE: Final = 0.1
"""A measured figure that changed by more than this fraction is better or worse; noise on shared machines is smaller."""


class FigureChange(StrEnum):
    """Change of a figure from the previous run."""

    BETTER = "better"
    WORSE = "worse"
    SAME = "same"
    DIFFERENT = "different"
    FIRST = "first"


TREND: Final = Table(
    "trend",
    "Trend",
    "The main figures of every run beside those of the previous run. A count is better or worse if it differs from that"
    f" of the previous run; a measured figure, if it differs by more than {NOTABLE:.0%}.",
    (
        number("place", "number of the run in the order of the table `runs`, from 1"),
        text("figure", "name of a column of the table `runs`, or an anomaly and its verdict"),
        Column("value", pa.float64(), "value in this run"),
        Column("before", pa.float64(), "value in the previous run; null for the first run"),
        Column("change", pa.float64(), "relative change: value / before - 1; null if that is undefined"),
        text("moved", f"change from the previous run: {', '.join(FigureChange)} (there is no previous run)"),
    ),
)

CHANGES: Final = Table(
    "changes",
    "Changed settings",
    "Settings in `run.json` that differ from those of the previous run. If clients have different values of a setting,"
    " all of these values are listed. Settings that are addresses or ids are left out.",
    (
        text("before_run_id", "id of the previous run"),
        text("setting", "name of the setting, such as `target`, `cluster.NAME`, `topics.TOPIC.NAME` or `clients.NAME`"),
        text("before", "its value in the previous run; null if it was not set"),
        text("after", "its value in this run; null if it is not set"),
    ),
)


def trend_rows(rows: Sequence[Mapping[str, Any]], judgements: Sequence[Judgement]) -> Iterator[dict[str, Any]]:
    """Return the rows of TREND from the rows of RUNS, in the order of the runs."""
    followed: dict[str, tuple[Better, bool]] = {figure.name: (figure.better, figure.is_count) for figure in FIGURES}
    values: list[dict[str, float | None]] = [{name: row[name] for name in followed} for row in rows]
    kinds = {(a.name, a.verdict) for judgement in judgements for a in judgement.anomalies if a.count}
    for name, verdict in sorted(kinds):
        followed[f"{name} ({verdict})"] = Better.NEITHER if verdict is Verdict.PERMITTED else Better.LOW, True
        for value, judgement in zip(values, judgements, strict=True):
            value[f"{name} ({verdict})"] = float(
                sum(a.count for a in judgement.anomalies if (a.name, a.verdict) == (name, verdict))
            )
    for place, (row, value) in enumerate(zip(rows, values, strict=True), 1):
        for name, (better, is_count) in followed.items():
            now, before = value[name], values[place - 2][name] if place > 1 else None
            yield {
                "run_id": row["run_id"],
                "place": place,
                "figure": name,
                "value": now,
                "before": before,
                "change": now / before - 1 if before and now is not None else None,
                "moved": str(
                    classify_change(now, before, better, is_count=is_count) if place > 1 else FigureChange.FIRST
                ),
            }


def classify_change(value: float | None, before: float | None, better: Better, *, is_count: bool) -> FigureChange:
    """Return how a figure changed from the previous run."""
    if value == before:
        return FigureChange.SAME
    if value is None or before is None:
        return FigureChange.DIFFERENT
    if not is_count and abs(value - before) <= NOTABLE * abs(before):
        return FigureChange.SAME
    if better is Better.NEITHER:
        return FigureChange.DIFFERENT
    return FigureChange.BETTER if (value < before) == (better is Better.LOW) else FigureChange.WORSE


_CLIENT_IDENTITIES: Final = {"bootstrap.servers", "client.id", "group.id", "group.instance.id", "transactional.id"}
"""Addresses and names, which differ from run to run."""


def change_rows(runs: Sequence[tuple[str, RunInfo]]) -> Iterator[dict[str, Any]]:
    """Return the rows of CHANGES from names and `run.json` of the runs, in their order."""
    for (name_before, before), (name, after) in pairwise(runs):
        old, new = _settings(before), _settings(after)
        for setting in sorted(old.keys() | new.keys()):
            if old.get(setting) != new.get(setting):
                yield {
                    "run_id": name,
                    "before_run_id": name_before,
                    "setting": setting,
                    "before": old.get(setting),
                    "after": new.get(setting),
                }


def _settings(info: RunInfo) -> dict[str, str]:
    settings = {} if info.target is None else {"target": info.target}
    groups: list[tuple[str, Mapping[str, str]]] = [("versions", info.versions), ("cluster", info.cluster)]
    groups += [(f"topics.{name}", properties) for name, properties in info.topics.items()]
    settings |= {f"{group}.{name}": value for group, values in groups for name, value in values.items()}
    for name in sorted({name for properties in info.clients.values() for name in properties} - _CLIENT_IDENTITIES):
        values = {properties[name] for properties in info.clients.values() if name in properties}
        settings[f"clients.{name}"] = ", ".join(sorted(values))
    return settings
