"""The page of a report of runs: one self-contained file, no larger for a day of a cluster than for a minute.

Nothing is fetched, and there is no script: drawings are SVG, and long tables are folded. It is readable in light and
dark and on paper, and every colour only repeats the meaning of a word. Rows that do not fit here are in the CSV of the
table.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from linearizability.judgement import Judgement, Verdict, in_report_order
from reports.charts import (
    MARGIN_LEFT,
    MARGIN_TOP,
    PLANE_HEIGHT,
    PLANE_WIDTH,
    Chart,
    Row,
    TimeAxis,
    figure,
)
from reports.jobs.comparison import FigureChange
from reports.jobs.definition import SECOND_NS
from reports.jobs.fate import DELIVERY
from reports.jobs.figures import FIGURES, tables_of_run
from reports.jobs.report import TABLES, Report
from reports.rendering import render
from reports.run_over_time import READS, charts_of, fault_rows, has_leader, leader_rows, seconds, shades
from reports.terminal import place

FILE_NAME: Final = "report.html"

ROWS_MAX: Final = 12
"""The maximum number of rows of a table on the page."""
CHARTED_MAX: Final = 4
"""The maximum number of runs with charts."""
_ALL_CHARTED_MAX: Final = 2
"""If there are more runs, only the last one and the latest ones with a violation have charts."""
_COUNTED: Final = tuple(column.name for column in DELIVERY.columns if column.name not in ("faults", "acks"))
_SIGNS: Final = {
    FigureChange.BETTER: "▲ better",
    FigureChange.WORSE: "▼ worse",
    FigureChange.SAME: "= same",
    FigureChange.DIFFERENT: "≠ other",
    FigureChange.FIRST: "",
}


@dataclass(frozen=True, slots=True)
class RunView:
    """One run with its charts."""

    number: int
    info: Any
    row: Mapping[str, Any]
    judgement: Judgement
    axis: TimeAxis
    faults: tuple[Row, ...]
    shades: tuple[tuple[float, float], ...]
    """Position and width of the shaded parts of charts, where some fault was in force."""
    charts: tuple[Chart, ...]
    leaders: tuple[Row, ...]
    nodes: tuple[int, ...]
    tables: Mapping[str, list[dict[str, Any]]]


def runs_page(report: Report) -> str:
    """Return the page of a report."""
    rows = report.rows("runs")
    trend = _trend(report)
    views = [_view(report, number, rows[number]) for number in _shown(report)]
    return render(
        "runs.html.j2",
        report=report,
        rows=rows,
        views=views,
        figures=FIGURES,
        trend=trend,
        sparks=_sparks(trend),
        changes=report.rows("changes"),
        delivery_of_all=_delivery_of_all(report),
        tables=[(table, report.tables[table.name].num_rows) for table in TABLES],
        anomalies=in_report_order,
        signs={str(name): sign for name, sign in _SIGNS.items()},
        figure=figure,
        place=place,
        milliseconds=_milliseconds,
        seconds=seconds,
        limit=ROWS_MAX,
        width=PLANE_WIDTH,
        height=PLANE_HEIGHT,
        left=MARGIN_LEFT,
        top=MARGIN_TOP,
    )


def _shown(report: Report) -> list[int]:
    """Return the numbers of the runs that have charts."""
    numbers = range(len(report.runs))
    if len(numbers) <= _ALL_CHARTED_MAX:
        return list(numbers)
    violated = [number for number in numbers if report.judgements[number].verdict is Verdict.VIOLATION]
    chosen = [numbers[-1], *(number for number in reversed(violated) if number != numbers[-1])]
    return sorted(chosen[:CHARTED_MAX])


def _view(report: Report, number: int, row: Mapping[str, Any]) -> RunView:
    run = report.runs[number]
    tables = {name: table.to_pylist() for name, table in tables_of_run(report.tables, run.name).items()}
    axis = TimeAxis(max(report.ends_ns[number] / SECOND_NS, 1.0))
    nodes = sorted({spell["leader"] for spell in tables["leadership"] if has_leader(spell)})
    return RunView(
        number,
        run.info,
        row,
        report.judgements[number],
        axis,
        tuple(fault_rows(tables["faults"], axis)),
        tuple(shades(report.periods[number], axis)),
        tuple(drawn for drawn in charts_of(tables, axis) if drawn is not None),
        tuple(leader_rows(tables["leadership"], axis, nodes)),
        tuple(nodes),
        {**tables, **_shortened(tables)},
    )


def _shortened(tables: Mapping[str, list[dict[str, Any]]]) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of the tables that the page shows in part or in another order, the most important ones first."""
    windows = [row for row in tables["availability"] if row["called"]]
    return {
        "availability": sorted(windows, key=lambda row: row["begin_ns"] - row["end_ns"]),
        "errors": sorted(tables["errors"], key=lambda row: -row["operations"]),
        "partition_load": sorted(tables["partition_load"], key=lambda row: -row["sent"]),
        "producers": sorted(
            tables["producers"], key=lambda row: (-row["duplicated"], -row["out_of_order"], row["process"])
        ),
        "delivery": sorted(tables["delivery"], key=_most_lost),
        "latency_by_fault": [row for row in tables["latency_by_fault"] if row["f"] in ("produce", *READS)],
    }


def _most_lost(row: Mapping[str, Any]) -> tuple[int, int]:
    return -row["lost"], -row["sent"]


def _delivery_of_all(report: Report) -> list[dict[str, Any]]:
    """Return the table `delivery`, summed over runs."""
    found: dict[tuple[str, int | None], dict[str, Any]] = {}
    for row in report.rows("delivery"):
        key = row["faults"], row["acks"]
        total = found.setdefault(key, {**row, **dict.fromkeys(_COUNTED, 0)})
        for name in _COUNTED:
            total[name] += row[name]
    return sorted(found.values(), key=_most_lost)


def _trend(report: Report) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of the table `trend` by figure."""
    found: dict[str, list[dict[str, Any]]] = {}
    for row in report.rows("trend"):
        found.setdefault(row["figure"], []).append(row)
    return found


def _sparks(trend: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, str]:
    """Return a small line of each figure over the runs, as SVG path data on 120 by 26."""
    paths: dict[str, str] = {}
    for name, rows in trend.items():
        known = [(number, row["value"]) for number, row in enumerate(rows) if row["value"] is not None]
        if len(known) > 1:
            low, high = min(value for _, value in known), max(value for _, value in known)
            parts = [(value - low) / (high - low) if high > low else 0.5 for _, value in known]
            points = [
                f"{number * 116 / (len(rows) - 1) + 2:.1f} {24 - 22 * part:.1f}"
                for (number, _), part in zip(known, parts, strict=True)
            ]
            paths[name] = "M" + "L".join(points)
    return paths


def _milliseconds(nanoseconds: int) -> str:
    return figure(float(f"{nanoseconds / 1e6:.3g}"))
