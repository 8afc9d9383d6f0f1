"""Charts of one run over time, and rows with its faults and leaders as spans, from the tables of a report."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from reports.charts import Chart, Row, Span, TimeAxis, chart, span
from reports.jobs.definition import SECOND_NS
from reports.jobs.in_force import Period
from reports.terminal import place

READS: Final = ("poll", "fetch")
_SPANS_MAX: Final = 150
_LANES_MAX: Final = 3
_PARTITIONS_MAX: Final = 6


def seconds(nanoseconds: int) -> str:
    """Return a duration as text, in seconds."""
    return f"{nanoseconds / SECOND_NS:,.2f} s"


def charts_of(tables: Mapping[str, list[dict[str, Any]]], axis: TimeAxis) -> list[Chart | None]:
    """Return all charts of a run, with None for a chart without data."""
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
                f"Latency of {name}",
                f"milliseconds, by the second of the call, on the slowest node{worst}",
                "ms",
                axis,
                {
                    quantile: axis.binned(
                        [(row["second"], row[column] / 1e6) for row in tables["latency"] if row["f"] in kinds], max
                    )
                    for quantile, column in (("99th percentile", "p99_ns"), ("median", "p50_ns"))
                },
                log=True,
            )
            for name, kinds in (("produce", ("produce",)), ("poll and fetch", READS))
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
            f"of the reader that is furthest behind in any partition{worst}",
            "records",
            axis,
            {"lag": axis.binned([(row["second"], row["lag"]) for row in tables["consumer_lag"]], max)},
        ),
        chart("Ends of logs", "summed over partitions, as last returned", "offset", axis, _ends(tables, axis)),
    ]


def _ends(tables: Mapping[str, list[dict[str, Any]]], axis: TimeAxis) -> dict[str, dict[int, float]]:
    """Return acknowledged end, high watermark and furthest position, summed over partitions that are not internal."""
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


def fault_rows(faults: Sequence[Mapping[str, Any]], axis: TimeAxis) -> list[Row]:
    """Return a row for each kind of fault. If faults of a kind overlap, return up to _LANES_MAX rows for this kind.

    Of each kind, only the first _SPANS_MAX faults are drawn. The first row of the kind has the number of the others.
    """
    rows: list[Row] = []
    for kind in dict.fromkeys(fault["kind"] for fault in faults):
        lanes: list[list[Mapping[str, Any]]] = []
        own = [fault for fault in faults if fault["kind"] == kind]
        for fault in own[:_SPANS_MAX]:
            free = (lane for lane in lanes if _end_s(lane[-1], axis) <= fault["inject_ns"] / SECOND_NS)
            lane = next(free, None) or (lanes[-1] if len(lanes) == _LANES_MAX else None)
            if lane is None:
                lanes.append([fault])
            else:
                lane.append(fault)
        rows += [
            Row(
                "" if number else kind,
                tuple(_fault_span(fault, axis) for fault in lane),
                left_out=0 if number else max(len(own) - _SPANS_MAX, 0),
            )
            for number, lane in enumerate(lanes)
        ]
    return rows


def shades(periods: Sequence[Period], axis: TimeAxis) -> Iterator[tuple[float, float]]:
    """Yield left edge and width of each shaded area; periods that touch on the page are merged."""
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
    healed = "never healed" if fault["heal_ns"] is None else f"to {seconds(fault['heal_ns'])}"
    fault_text = f"{fault['kind']} {fault['target'] or ''} {fault['argument'] or ''}".strip()
    return f"{fault_text}: from {seconds(fault['inject_ns'])} {healed}"


def leader_rows(spells: Sequence[Mapping[str, Any]], axis: TimeAxis, nodes: Sequence[int]) -> list[Row]:
    """Return a row for each of the partitions with the most changes. A span has one leader, leader epoch and ISR."""
    by_partition: dict[tuple[str, str, int], list[Mapping[str, Any]]] = {}
    for spell in spells:
        by_partition.setdefault((spell["topic"], spell["topic_id"], spell["partition"]), []).append(spell)
    busiest = sorted(by_partition.items(), key=lambda item: (-len(item[1]), item[0]))[:_PARTITIONS_MAX]
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
                    f" from {seconds(spell['begin_ns'])} to {seconds(spell['end_ns'])}",
                    style=f"node-{nodes.index(spell['leader']) % 6}" if spell["leader"] in nodes else "no-leader",
                )
                for spell in own[:_SPANS_MAX]
            ),
            left_out=max(len(own) - _SPANS_MAX, 0),
        )
        for (topic, _, partition), own in sorted(busiest)
    ]


def _leader(spell: Mapping[str, Any]) -> str:
    return str(spell["leader"]) if has_leader(spell) else "none"


def has_leader(spell: Mapping[str, Any]) -> bool:
    """Whether a row of the table `leadership` has a leader, which may be node 0."""
    return spell["leader"] is not None and spell["leader"] >= 0
