"""Tables with one or a few rows for each run: its main figures and its judgement."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from linearizability.judgement import Judgement, in_report_order
from reports.jobs.definition import SECOND_NS, Column, Table, number, small, text
from reports.jobs.inputs import Run

Tables = Mapping[str, pa.Table]


class Better(StrEnum):
    """The better direction of a figure."""

    LOW = "lower is better"
    HIGH = "higher is better"
    NEITHER = ""


@dataclass(frozen=True, slots=True)
class Figure:
    """One main figure of a run."""

    name: str
    meaning: str
    better: Better
    compute: Callable[[Tables], float | None]
    """Function that computes the figure from the tables of one run; None if they lack the data."""
    is_count: bool = True
    """Counts are compared exactly, measured figures with the tolerance `reports.jobs.comparison.NOTABLE`."""


def _total(table: str, column: str, **where: str) -> Callable[[Tables], float]:
    return lambda tables: _sum(_where(tables[table], where)[column])


def _latency(column: str, f: str) -> Callable[[Tables], float | None]:
    def compute(tables: Tables) -> float | None:
        found = _where(tables["latency_overall"], {"f": f})[column].to_pylist()
        return found[0] / 1e6 if found else None

    return compute


def _where(table: pa.Table, where: Mapping[str, str]) -> pa.Table:
    for column, value in where.items():
        table = table.filter(pc.equal(table[column], value))
    return table


def _sum(column: pa.ChunkedArray) -> float:
    return float(pc.sum(column).as_py() or 0)


def _max(column: pa.ChunkedArray) -> float | None:
    found = pc.max(column).as_py()
    return None if found is None else float(found)


def _acknowledged_per_s(tables: Tables) -> float | None:
    busy = tables["throughput"].filter(pc.greater(tables["throughput"]["acknowledged"], 0))["second"]
    if not len(busy):
        return None
    seconds = pc.max(busy).as_py() - pc.min(busy).as_py() + 1
    return _sum(tables["throughput"]["acknowledged"]) / float(seconds)


def _longest_silence(tables: Tables) -> float | None:
    windows = _where(tables["availability"], {"f": "produce"})
    tried = windows.filter(pc.greater(windows["called"], 0))
    longest = _max(pc.subtract(tried["end_ns"], tried["begin_ns"]))
    return 0.0 if longest is None else longest / SECOND_NS


def _leader_changes(tables: Tables) -> float:
    """Return how often the leader of a partition changed from one row of `leadership` to the next."""
    rows = tables["leadership"].select(["topic", "topic_id", "partition", "leader"]).to_pylist()
    return float(
        sum(
            before["leader"] != after["leader"]
            for before, after in pairwise(rows)
            if all(before[key] == after[key] for key in ("topic", "topic_id", "partition"))
        )
    )


def _operations(tables: Tables) -> float:
    return sum(_sum(tables["throughput"][name]) for name in ("ok", "failed", "unknown"))


def _not_ok(tables: Tables) -> float:
    return sum(_sum(tables["throughput"][name]) for name in ("failed", "unknown"))


FIGURES: Final = (
    Figure("operations", "number of operations, including those that never returned", Better.NEITHER, _operations),
    Figure("sent", "records that were sent, without tombstones", Better.NEITHER, _total("delivery", "sent")),
    Figure("acknowledged", "records that were acknowledged", Better.NEITHER, _total("delivery", "acknowledged")),
    Figure(
        "lost",
        "acknowledged records that no read returned although a read passed their offset, even if Kafka permits the"
        " loss",
        Better.LOW,
        _total("delivery", "lost"),
    ),
    Figure("unread", "acknowledged records whose offset no read passed", Better.LOW, _total("delivery", "unread")),
    Figure("duplicated", "records read at more than one offset", Better.LOW, _total("producers", "duplicated")),
    Figure(
        "out_of_order",
        "records at a lower offset than an earlier record of the same producer in the partition",
        Better.LOW,
        _total("producers", "out_of_order"),
    ),
    Figure("errors", "operations that did not succeed", Better.LOW, _not_ok),
    Figure("leader_changes", "number of leader changes in all partitions", Better.LOW, _leader_changes),
    Figure("acknowledged_per_s", "acknowledged records per second", Better.HIGH, _acknowledged_per_s, is_count=False),
    Figure("produce_p50_ms", "median latency of a produce", Better.LOW, _latency("p50_ns", "produce"), is_count=False),
    Figure(
        "produce_p99_ms",
        "99th percentile latency of a produce",
        Better.LOW,
        _latency("p99_ns", "produce"),
        is_count=False,
    ),
    Figure(
        "longest_silence_s",
        "longest window in which produces were called and none succeeded",
        Better.LOW,
        _longest_silence,
        is_count=False,
    ),
    Figure(
        "largest_lag",
        "largest lag of a reader in one partition",
        Better.LOW,
        lambda t: _max(t["consumer_lag"]["lag"]),
        is_count=False,
    ),
)


RUNS: Final = Table(
    "runs",
    "Runs",
    "One row for each run: its target and seed, its judgement, and its main figures.",
    (
        text("target", "cluster under test; null if unknown"),
        text("seed", "seed from which the run was generated, an integer of any size; null if none"),
        Column("complete", pa.bool_(), "whether the run ended by itself"),
        text("verdict", "ok, violation or unknown"),
        text("reasons", "reasons for an unknown verdict"),
        number(
            "started_ms", "earliest timestamp of a record; if none is known, the time at which `run.json` was written"
        ),
        Column("seconds", pa.float64(), "time from the run's first event to its last one"),
        *(Column(figure.name, pa.float64(), figure.meaning) for figure in FIGURES),
    ),
)

ANOMALIES: Final = Table(
    "anomalies",
    "Anomalies",
    "The anomalies that were found in the run, as `kafkatrial check` reports them.",
    (
        text("anomaly", "name of the anomaly"),
        text("verdict", "violation, unknown or permitted"),
        number("count", "number of findings"),
    ),
)

EVIDENCE: Final = Table(
    "evidence",
    "Evidence",
    "The first ten items of evidence of each anomaly.",
    (
        text("anomaly", "name of the anomaly"),
        text("verdict", "violation, unknown or permitted"),
        number("place", "number of the item, from 1"),
        text("op_ids", "ids of the operations, separated by commas"),
        text("topic", "topic name"),
        small("partition", "partition of the topic"),
        number("offset", "offset in the partition"),
        number("value", "value of the record"),
        text("text", "a sentence that explains the evidence"),
    ),
)


def tables_of_run(tables: Tables, run_id: str) -> dict[str, pa.Table]:
    """Return the rows of one run."""
    return {name: _where(table, {"run_id": run_id}) for name, table in tables.items()}


def figures_of(tables: Tables) -> dict[str, float | None]:
    """Return the main figures, by name, from the tables of one run."""
    return {figure.name: figure.compute(tables) for figure in FIGURES}


def run_row(run: Run, judgement: Judgement, end_ns: int, figures: Mapping[str, float | None]) -> dict[str, Any]:
    """Return a row of RUNS."""
    return {
        "run_id": run.name,
        "target": run.info.target,
        "seed": None if run.info.seed is None else str(run.info.seed),
        "complete": run.info.complete,
        "verdict": str(judgement.verdict),
        "reasons": "; ".join(judgement.reasons),
        "started_ms": run.started_ms,
        "seconds": end_ns / SECOND_NS,
        **figures,
    }


def anomaly_rows(run_id: str, judgement: Judgement) -> list[dict[str, Any]]:
    """Return rows of ANOMALIES."""
    found = in_report_order(judgement.anomalies)
    return [{"run_id": run_id, "anomaly": a.name, "verdict": str(a.verdict), "count": a.count} for a in found]


def evidence_rows(run_id: str, judgement: Judgement) -> list[dict[str, Any]]:
    """Return rows of EVIDENCE."""
    return [
        {
            "run_id": run_id,
            "anomaly": anomaly.name,
            "verdict": str(anomaly.verdict),
            "place": place,
            "op_ids": ",".join(map(str, row.op_ids)),
            "topic": row.topic,
            "partition": row.partition,
            "offset": row.offset,
            "value": row.value,
            "text": row.text,
        }
        for anomaly in in_report_order(judgement.anomalies)
        for place, row in enumerate(anomaly.evidence, 1)
    ]
