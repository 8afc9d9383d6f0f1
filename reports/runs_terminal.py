"""The main figures of a report as a Rich renderable: one column for each run, then the change."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from linearizability.judgement import Anomaly, Judgement, in_report_order
from linearizability.printable import counted, in_cell
from reports.charts import figure
from reports.console import plain_table
from reports.jobs.comparison import FigureChange
from reports.jobs.figures import FIGURES
from reports.jobs.report import Report
from reports.runs_page import FILE_NAME

COLUMNS_MAX: Final = 5
"""The maximum number of runs with a column. If there are more, the last ones have a column."""
_VERDICT_STYLES: Final = {"ok": "green", "violation": "bold red", "unknown": "yellow"}
_MOVED_STYLES: Final = {FigureChange.BETTER: "green", FigureChange.WORSE: "bold red"}
_CHANGES_MAX: Final = 10


def render_report(report: Report, place: Path) -> RenderableType:
    """Return what `kafkatrial report` prints at its end."""
    rows = report.rows("runs")[-COLUMNS_MAX:]
    parts: list[RenderableType] = [_figures(report, rows)]
    changes = report.rows("changes")
    parts += [_change(row) for row in changes[:_CHANGES_MAX]]
    if len(changes) > _CHANGES_MAX:
        parts.append(
            Text(f"{counted(len(changes) - _CHANGES_MAX, 'more setting')} changed: see the table changes", "dim")
        )
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="dim", no_wrap=True)
    facts.add_column(overflow="fold")
    facts.add_row("Report", Text(str(place / FILE_NAME)))
    facts.add_row("Tables", Text(str(place / "tables")))
    return Group(*parts, Text(), facts)


def _figures(report: Report, rows: Sequence[Mapping[str, Any]]) -> Table:
    table = plain_table()
    left_out = len(report.runs) - len(rows)
    table.add_column(f"{counted(left_out, 'earlier run')} left out" if left_out else "", overflow="fold")
    for row in rows:
        table.add_column(Text(in_cell(row["run_id"])), justify="right", overflow="fold")
    if len(rows) > 1:
        table.add_column("last compared with the one before")
    table.add_row("verdict", *(Text(row["verdict"], _VERDICT_STYLES[row["verdict"]]) for row in rows))
    table.add_row("seconds", *(f"{row['seconds']:,.1f}" for row in rows))
    if not all(row["complete"] for row in rows):
        table.add_row("ended on its own", *("yes" if row["complete"] else Text("no", "yellow") for row in rows))
    moved = {row["figure"]: row for row in report.rows("trend") if row["place"] == len(report.runs)}
    for shown in FIGURES:
        cells = [figure(row[shown.name]) for row in rows]
        table.add_row(shown.name.replace("_", " "), *cells, *([_moved(moved[shown.name])] if len(rows) > 1 else []))
    table.add_section()
    judgements = report.judgements[-len(rows) :]
    for anomaly in _kinds(judgements):
        counts = [
            sum(a.count for a in judgement.anomalies if (a.name, a.verdict) == (anomaly.name, anomaly.verdict))
            for judgement in judgements
        ]
        style = _VERDICT_STYLES.get(str(anomaly.verdict), "dim")
        table.add_row(Text(f"{anomaly.name} ({anomaly.verdict})", style), *(f"{count:,}" for count in counts))
    return table


def _kinds(judgements: Sequence[Judgement]) -> list[Anomaly]:
    """Return one anomaly of each name and verdict in any of the judgements, worst first."""
    found = {(a.name, a.verdict): a for judgement in judgements for a in judgement.anomalies}
    return in_report_order(found.values())


def _moved(row: Mapping[str, Any]) -> Text:
    moved = FigureChange(row["moved"])
    change = "" if row["change"] is None or moved is FigureChange.SAME else f" {row['change']:+.0%}"
    return Text(f"{moved}{change}", _MOVED_STYLES.get(moved, "dim"))


def _change(row: Mapping[str, Any]) -> Text:
    before, after = ("not set" if row[name] is None else in_cell(row[name]) for name in ("before", "after"))
    return Text(f"{in_cell(row['run_id'])}: {in_cell(row['setting'])} {before} → {after}", "dim")
