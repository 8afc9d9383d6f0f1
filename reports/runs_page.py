"""The page of a report of runs: one self-contained file, as large for a day of a cluster as for a minute of it.

Nothing is fetched, and there is no script: drawings are SVG, what is long is folded away. It is readable in light and
dark and on paper, and every colour repeats a word. Whatever a table has no room for here is in the CSV of its name.
"""

from collections.abc import Iterator, Mapping, Sequence
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
    Span,
    TimeAxis,
    chart,
    figure,
    span,
)
from reports.jobs.definition import SECOND_NS
from reports.jobs.fate import DELIVERY
from reports.jobs.figures import FIGURES, Moved, of_run
from reports.jobs.in_force import Period
from reports.jobs.report import TABLES, Report
from reports.rendering import render
from reports.terminal import place

FILE_NAME: Final = "report.html"

ROWS_MAX: Final = 12
"""Rows of a table on the page."""
WHOLE_MAX: Final = 4
"""Runs that are shown with charts: one or two as they are named; of more the last, and those with a violation."""
_COMPARED: Final = 2
_READS: Final = ("poll", "fetch")
_SPANS_MAX: Final = 150
_LANES_MAX: Final = 3
_COUNTED: Final = tuple(column.name for column in DELIVERY.columns if column.name not in ("faults", "acks"))
_SIGNS: Final = {
    Moved.BETTER: "▲ better",
    Moved.WORSE: "▼ worse",
    Moved.SAME: "= same",
    Moved.DIFFERENT: "≠ other",
    Moved.FIRST: "",
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
    """Where charts are shaded, since some fault was in force: from where, and how wide."""
    charts: tuple[Chart, ...]
    leaders: tuple[Row, ...]
    nodes: tuple[int, ...]
    tables: Mapping[str, list[dict[str, Any]]]


def runs_page(report: Report) -> str:
    """The page."""
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
        seconds=_seconds,
        limit=ROWS_MAX,
        width=PLANE_WIDTH,
        height=PLANE_HEIGHT,
        left=MARGIN_LEFT,
        top=MARGIN_TOP,
    )


def _shown(report: Report) -> list[int]:
    numbers = range(len(report.runs))
    if len(numbers) <= _COMPARED:
        return list(numbers)
    violated = [number for number in numbers if report.judgements[number].verdict is Verdict.VIOLATION]
    chosen = [numbers[-1], *(number for number in reversed(violated) if number != numbers[-1])]
    return sorted(chosen[:WHOLE_MAX])


def _view(report: Report, number: int, row: Mapping[str, Any]) -> RunView:
    run = report.runs[number]
    tables = {name: table.to_pylist() for name, table in of_run(report.tables, run.name).items()}
    axis = TimeAxis(max(report.ends_ns[number] / SECOND_NS, 1.0))
    nodes = sorted({spell["leader"] for spell in tables["leadership"] if (spell["leader"] or -1) >= 0})
    return RunView(
        number,
        run.info,
        row,
        report.judgements[number],
        axis,
        tuple(_fault_rows(tables["faults"], axis)),
        tuple(_shades(report.periods[number], axis)),
        tuple(drawn for drawn in _charts(tables, axis) if drawn is not None),
        tuple(_leader_rows(tables["leadership"], axis, nodes)),
        tuple(nodes),
        {**tables, **_shortened(tables)},
    )


def _shortened(tables: Mapping[str, list[dict[str, Any]]]) -> dict[str, list[dict[str, Any]]]:
    """The rows of which a page shows the first, those that matter most in front."""
    windows = [row for row in tables["availability"] if row["called"]]
    return {
        "availability": sorted(windows, key=lambda row: row["begin_ns"] - row["end_ns"]),
        "errors": sorted(tables["errors"], key=lambda row: -row["operations"]),
        "partition_load": sorted(tables["partition_load"], key=lambda row: -row["sent"]),
        "producers": sorted(
            tables["producers"], key=lambda row: (-row["duplicated"], -row["out_of_order"], row["process"])
        ),
        "delivery": sorted(tables["delivery"], key=_most_lost),
        "latency_by_fault": [row for row in tables["latency_by_fault"] if row["f"] in ("produce", *_READS)],
    }


def _most_lost(row: Mapping[str, Any]) -> tuple[int, int]:
    return -row["lost"], -row["sent"]


def _delivery_of_all(report: Report) -> list[dict[str, Any]]:
    """The table `delivery` summed over runs."""
    found: dict[tuple[str, int | None], dict[str, Any]] = {}
    for row in report.rows("delivery"):
        key = row["faults"], row["acks"]
        total = found.setdefault(key, {**row, **dict.fromkeys(_COUNTED, 0)})
        for name in _COUNTED:
            total[name] += row[name]
    return sorted(found.values(), key=_most_lost)


def _charts(tables: Mapping[str, list[dict[str, Any]]], axis: TimeAxis) -> list[Chart | None]:
    per_point = "" if axis.bin_s == 1 else f", {axis.bin_s} s to a point"
    worst = "" if axis.bin_s == 1 else f"; the worst second of each {axis.bin_s}"
    return [
        chart(
            "Throughput",
            f"records a second{per_point}",
            "records/s",
            axis,
            {
                name: axis.binned(
                    [(row["second"], row[column]) for row in tables["throughput"]],
                    lambda values: sum(values) / axis.bin_s,
                )
                for name, column in (("acknowledged", "acknowledged"), ("returned by reads", "returned"))
            },
        ),
        *(
            chart(
                f"Latency of {words}",
                f"of those called in a second, the slowest node{worst}",
                "ms",
                axis,
                {
                    name: axis.binned(
                        [(row["second"], row[column] / 1e6) for row in tables["latency"] if row["f"] in kinds], max
                    )
                    for name, column in (("99th percentile", "p99_ns"), ("median", "p50_ns"))
                },
                log=True,
            )
            for words, kinds in (("produce", ("produce",)), ("poll and fetch", _READS))
        ),
        chart(
            "Operations that did not succeed",
            f"operations a second{per_point}",
            "operations/s",
            axis,
            {
                name: axis.binned(
                    [(row["second"], row[column]) for row in tables["throughput"]],
                    lambda values: sum(values) / axis.bin_s,
                )
                for name, column in (("unknown", "unknown"), ("failed", "failed"))
            },
        ),
        chart(
            "Consumer lag",
            f"the reader that is furthest behind in one partition{worst}",
            "records",
            axis,
            {"lag": axis.binned([(row["second"], row["lag"]) for row in tables["consumer_lag"]], max)},
        ),
        chart("Ends of logs", "summed over partitions, as last answered", "offset", axis, _ends(tables, axis)),
    ]


def _ends(tables: Mapping[str, list[dict[str, Any]]], axis: TimeAxis) -> dict[str, dict[int, float]]:
    """High watermark, acknowledged end and furthest position, each summed over the partitions of users' topics."""
    found: dict[str, dict[int, float]] = {}
    columns = {"acknowledged end": "acknowledged_end", "high watermark": "high_watermark", "read up to": "read_end"}
    by_second = sorted(
        (row for row in tables["progress"] if not row["topic"].startswith("__")), key=lambda row: row["second"]
    )
    for name, column in columns.items():
        last: dict[tuple[str, str, int], int] = {}
        points: list[tuple[int, float]] = []
        total = 0
        for row in by_second:
            if row[column] is not None:
                key = row["topic"], row["topic_id"], row["partition"]
                total += row[column] - last.get(key, 0)
                last[key] = row[column]
                points.append((row["second"], float(total)))
        found[name] = axis.binned(points, lambda values: values[-1])
    return {name: points for name, points in found.items() if points}


def _fault_rows(faults: Sequence[Mapping[str, Any]], axis: TimeAxis) -> list[Row]:
    """A row for each kind, and more of them where faults of a kind overlap."""
    rows: list[Row] = []
    for kind in dict.fromkeys(fault["kind"] for fault in faults):
        lanes: list[list[Mapping[str, Any]]] = []
        for fault in [fault for fault in faults if fault["kind"] == kind][:_SPANS_MAX]:
            free = (lane for lane in lanes if _end_s(lane[-1], axis) <= fault["inject_ns"] / SECOND_NS)
            lane = next(free, None) or (lanes[-1] if len(lanes) == _LANES_MAX else None)
            if lane is None:
                lanes.append([fault])
            else:
                lane.append(fault)
        rows += [
            Row("" if number else kind, tuple(_fault_span(fault, axis) for fault in lane))
            for number, lane in enumerate(lanes)
        ]
    return rows


def _shades(periods: Sequence[Period], axis: TimeAxis) -> Iterator[tuple[float, float]]:
    """Periods that touch on the page are one."""
    begin = end = -1.0
    for period in periods:
        left = axis.x(period.begin_ns / SECOND_NS)
        if left > end + 1:
            if end > begin:
                yield begin, round(end - begin, 1)
            begin = left
        end = max(axis.x(period.end_ns / SECOND_NS), left + 1.5)
    if end > begin:
        yield begin, round(end - begin, 1)


def _end_s(fault: Mapping[str, Any], axis: TimeAxis) -> float:
    return axis.seconds if fault["heal_ns"] is None else float(fault["heal_ns"]) / SECOND_NS


def _fault_span(fault: Mapping[str, Any], axis: TimeAxis) -> Span:
    begin_s = fault["inject_ns"] / SECOND_NS
    return span(axis, begin_s, _end_s(fault, axis), label=str(fault["target"] or ""), title=_fault_title(fault))


def _fault_title(fault: Mapping[str, Any]) -> str:
    healed = "never healed" if fault["heal_ns"] is None else f"to {_seconds(fault['heal_ns'])}"
    told = f"{fault['kind']} {fault['target'] or ''} {fault['argument'] or ''}".strip()
    return f"{told}: from {_seconds(fault['inject_ns'])} {healed}"


def _leader_rows(spells: Sequence[Mapping[str, Any]], axis: TimeAxis, nodes: Sequence[int]) -> list[Row]:
    """The partitions with most changes, each spell as one span."""
    by_partition: dict[tuple[str, str, int], list[Mapping[str, Any]]] = {}
    for spell in spells:
        by_partition.setdefault((spell["topic"], spell["topic_id"], spell["partition"]), []).append(spell)
    busiest = sorted(by_partition.items(), key=lambda item: (-len(item[1]), item[0]))[: ROWS_MAX // 2]
    return [
        Row(
            place(topic, partition, None),
            tuple(
                span(
                    axis,
                    spell["begin_ns"] / SECOND_NS,
                    spell["end_ns"] / SECOND_NS,
                    label=f"{_leader(spell)} [{spell['isr']}]",
                    title=f"leader {_leader(spell)}, epoch {spell['leader_epoch']}, ISR {spell['isr']}:"
                    f" from {_seconds(spell['begin_ns'])} to {_seconds(spell['end_ns'])}",
                    style=f"node-{nodes.index(spell['leader']) % 6}" if spell["leader"] in nodes else "nobody",
                )
                for spell in own[:_SPANS_MAX]
            ),
        )
        for (topic, _, partition), own in sorted(busiest)
    ]


def _leader(spell: Mapping[str, Any]) -> str:
    return "none" if (spell["leader"] or -1) < 0 else str(spell["leader"])


def _trend(report: Report) -> dict[str, list[dict[str, Any]]]:
    """Rows of the table `trend` by figure."""
    found: dict[str, list[dict[str, Any]]] = {}
    for row in report.rows("trend"):
        found.setdefault(row["figure"], []).append(row)
    return found


def _sparks(trend: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, str]:
    """A small line of each figure over the runs, as SVG path data on 120 by 26."""
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


def _seconds(nanoseconds: int) -> str:
    return f"{nanoseconds / SECOND_NS:,.2f} s"
