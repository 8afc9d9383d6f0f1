"""Cycles of transactions at scale: time and memory for a million transactions.

    .venv/bin/python bench/checkers/cycles.py [--transactions 1000000] [--json FILE]

There are two histories, each generated with numpy and written as a run directory. In both, 50 clients have concurrent
transactions, and each transaction produces to two of four partitions.

- *pipeline*: each client also reads its own input. The writes are interleaved, as Kafka permits, so that
  write-write edges (G0) form components of thousands of transactions.
- *mesh*: each poll reads two records of one of the four partitions, 100 to 300 records behind its end. With read-write
  edges all transactions are one component.

For each history the benchmark prints the time of a whole `kafkatrial check` (all anomalies, read from Parquet), the
elapsed and CPU time of the cycle search within it, and the peak memory of the judging process. The goal is 60 s for the
cycles of a million transactions.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from linearizability.anomalies import catalogue
from linearizability.anomalies.cycles.edges import EDGE_FACTS
from linearizability.anomalies.definitions.cycles import CYCLES
from linearizability.check import judge_history
from linearizability.history.reader import open_history
from linearizability.history.schema import SCHEMAS

GOAL_S: Final = 60.0
KINDS: Final = ("pipeline", "mesh")
CLIENTS, PARTITIONS, LAG = 50, 4, 200
STEPS: Final = ("begin_txn", "poll", "produce", "produce", "commit_txn")


def write_history(folder: Path, kind: str, count: int) -> None:
    """Write a history of `count` transactions."""
    rng = np.random.default_rng(7)
    (folder / "history").mkdir(parents=True)
    (folder / "run.json").write_text(json.dumps({"format": 1, "run_id": kind, "complete": True}))
    transaction = np.arange(count)
    # A transaction of client n begins when the previous one has ended; its steps are spread over its duration.
    begin = (transaction // CLIENTS) * 1000 + (transaction % CLIENTS) * 19
    steps = len(STEPS)
    at = (begin[:, None] + np.array([0, 100, 300, 500, 800]) + rng.integers(0, 90, (count, steps))).ravel()
    order = np.argsort(at, kind="stable")
    op_id = np.empty(count * steps, np.int64)
    op_id[order] = np.arange(count * steps)
    op_id = op_id.reshape(count, steps)
    _write_operations(folder, order, at)

    first = rng.integers(0, PARTITIONS, count)
    partitions = np.concatenate([first, (first + rng.integers(1, PARTITIONS, count)) % PARTITIONS])
    sender = np.concatenate([op_id[:, 2], op_id[:, 3]])
    place = np.lexsort((sender, partitions))
    offset = np.empty(2 * count, np.int64)
    ends = np.cumsum(np.bincount(partitions, minlength=PARTITIONS))
    offset[place] = np.arange(2 * count) - np.append(0, ends)[partitions[place]]
    sends = {"op_id": sender, "topic": "out", "partition": partitions, "offset": offset, "value": np.arange(2 * count)}
    reads = _pipeline_reads(op_id) if kind == "pipeline" else _mesh_reads(rng, op_id, sends, place, ends)
    _write_records(folder, sends, reads)


def _write_operations(folder: Path, order: Any, at: Any) -> None:
    step, transaction = order % len(STEPS), order // len(STEPS)
    count = len(order)
    _write(
        folder,
        "operations",
        op_id=np.arange(count),
        process=transaction % CLIENTS,
        f=pa.DictionaryArray.from_arrays(step.astype(np.int8), pa.array(STEPS)).cast(pa.string()),
        invoke_ns=at[order],
        complete_ns=at[order] + 5,
        outcome=pa.array(["ok"]).take(pa.array(np.zeros(count, np.int8))),
        acks=pa.array(np.full(count, -1), mask=(step < 2) | (step == 4)),
        txn_seq=transaction // CLIENTS,
        isolation=pa.array(["read_committed"]).take(pa.array(np.zeros(count, np.int8), mask=step != 1)),
    )


def _pipeline_reads(op_id: Any) -> dict[str, Any]:
    offset, partition = np.divmod(np.arange(len(op_id)), CLIENTS)
    return {"op_id": op_id[:, 1], "topic": "in", "partition": partition, "offset": offset, "value": offset}


def _mesh_reads(rng: Any, op_id: Any, sends: dict[str, Any], place: Any, ends: Any) -> dict[str, Any]:
    """Return two adjacent records for each poll, from one partition, 100 to 300 records below its end at that time.

    A poll for which the partition has too few records returns nothing.
    """
    count = len(op_id)
    poll, partition = op_id[:, 1], rng.integers(0, PARTITIONS, count)
    begins = np.append(0, ends)[partition]
    last = np.empty(count, np.int64)
    for number in range(PARTITIONS):
        reading = np.flatnonzero(partition == number)
        written = sends["op_id"][place[begins[reading[0]] : ends[number]]] if len(reading) else np.empty(0, np.int64)
        last[reading] = np.searchsorted(written, poll[reading]) - 1
    highest = last - LAG // 2 - rng.integers(0, LAG, count)
    reads = np.flatnonzero(highest >= 1)
    rows = np.concatenate([begins[reads] + highest[reads] - 1, begins[reads] + highest[reads]])
    return {"op_id": np.tile(poll[reads], 2), **{name: sends[name] if name == "topic" else sends[name][place[rows]]
            for name in ("topic", "partition", "offset", "value")}}  # fmt: skip


def _write_records(folder: Path, sends: dict[str, Any], reads: dict[str, Any]) -> None:
    order = np.lexsort((reads["offset"], reads["op_id"]))
    seq = np.zeros(len(order), np.int64)
    seq[1:] = np.diff(reads["op_id"][order]) == 0
    parts = []
    for source, direction, rows, numbers in (
        (sends, "send", np.arange(len(sends["op_id"])), np.zeros(len(sends["op_id"]), np.int64)),
        (reads, "read", order, seq),
    ):
        columns = {name: values if name == "topic" else values[rows] for name, values in source.items()}
        parts.append({**columns, "direction": direction, "seq": numbers, "intact": True})
    _write(folder, "records", *parts)
    first = np.flatnonzero(seq == 0)
    last = np.append(first[1:], len(order)) - 1
    _write(
        folder,
        "positions",
        op_id=reads["op_id"][order][first],
        topic=reads["topic"],
        partition=reads["partition"][order][first],
        before=reads["offset"][order][first],
        after=reads["offset"][order][last] + 1,
        cause="read",
    )


def _write(folder: Path, name: str, *parts: dict[str, Any], **columns: Any) -> None:
    """Write a table of the history. A column may be a single value, which applies to all rows."""
    schema = SCHEMAS[name]
    with pq.ParquetWriter(folder / "history" / f"{name}.parquet", schema) as writer:
        for part in parts or (columns,):
            count = len(part["op_id"])
            whole = {
                key: pa.repeat(value, count) if isinstance(value, str | bool) else value for key, value in part.items()
            }
            arrays = [
                pa.array(whole[field.name]).cast(field.type) if field.name in whole else pa.nulls(count, field.type)
                for field in schema
            ]
            writer.write_table(pa.table(arrays, schema=schema))


def measure(folder: Path) -> dict[str, Any]:
    """Judge a history once in this process; return the times, the peak memory and the cycles found.

    In this process, the functions of the cycle search in the catalogue are replaced by ones that add up their time.
    """
    spent = spent_cpu = 0.0
    names = {cycle.name for cycle in CYCLES}

    def timed(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(argument: Any) -> Any:
            nonlocal spent, spent_cpu
            begin, begin_cpu = time.perf_counter(), time.process_time()
            result = function(argument)
            result = result if isinstance(result, pa.Table) else list(result)  # runs a generator to its end
            spent, spent_cpu = spent + time.perf_counter() - begin, spent_cpu + time.process_time() - begin_cpu
            return result

        return call

    def with_timed(entry: Any, name: str) -> Any:
        return replace(entry, **{name: timed(getattr(entry, name))})

    facts = tuple(with_timed(fact, "reduce") if fact is EDGE_FACTS else fact for fact in catalogue.FACTS)
    anomalies = tuple(with_timed(each, "find") if each in CYCLES else each for each in catalogue.RUN_ANOMALIES)
    vars(catalogue).update(FACTS=facts, RUN_ANOMALIES=anomalies)
    begin = time.perf_counter()
    judgement = judge_history(open_history(folder))
    return {
        "check_s": round(time.perf_counter() - begin, 1),
        "cycles_s": round(spent, 1),
        "cycles_cpu_s": round(spent_cpu, 1),
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "found": {f"{each.name} {each.verdict}": each.count for each in judgement.anomalies if each.name in names},
    }


def main() -> None:
    """Generate the histories, judge each in a new process, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--transactions", type=int, default=1_000_000, help="Number (default: %(default)s).")
    parser.add_argument("--json", type=Path, help="Also write the results to this file.")
    parser.add_argument("--judge", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.judge:
        print(json.dumps(measure(options.judge)))
        return
    results = {}
    table = Table("history", "transactions", "check, s", "cycles, s", "cpu, s", "goal, s", "peak, MB", "found")
    for kind in KINDS:
        with tempfile.TemporaryDirectory() as folder:
            write_history(Path(folder) / kind, kind, options.transactions)
            command = [sys.executable, __file__, "--judge", str(Path(folder) / kind)]
            output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        results[kind] = measured = json.loads(output)
        found = "\n".join(f"{count} {name}" for name, count in measured["found"].items())
        row = (*(measured[name] for name in ("check_s", "cycles_s", "cycles_cpu_s")), GOAL_S, measured["peak_mb"])
        table.add_row(kind, f"{options.transactions:,}", *map(str, row), found)
    Console().print(table)
    if options.json:
        options.json.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
