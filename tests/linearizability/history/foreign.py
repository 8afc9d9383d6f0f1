"""Histories for tests, as a tool other than kafkatrial writes them: rows are dictionaries, a table is one file."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from linearizability.history.schema import SCHEMAS

Tables = dict[str, list[dict[str, Any]]]

RUN = {
    "format": 1,
    "run_id": "by-hand",
    "seed": 7,
    "target": "by-hand",
    "versions": {"broker": "4.3.1"},
    "topics": {"orders": {"min.insync.replicas": "2"}},
    "cluster": {"unclean.leader.election.enable": "false"},
    "clients": {"1": {"acks": "all"}},
    "complete": True,
}


def valid_tables() -> Tables:
    """Return a valid history of two producers and a consumer. Every table has rows, and the produces overlap."""
    orders_0, orders_1 = (
        {"topic": "orders", "topic_id": "ID-A", "partition": 0},
        {"topic": "orders", "topic_id": None, "partition": 1},
    )
    return {
        "operations": [
            operation(1, 1, "produce", 10, 40, acks=-1, node=1),
            operation(2, 1, "produce", 10, 30, acks=-1, node=1),
            operation(3, 2, "produce", 15, None, "info", "REQUEST_TIMED_OUT"),
            operation(4, 3, "assign", 16, 17),
            operation(5, 3, "poll", 50, 60, isolation="read_committed"),
            operation(6, 3, "poll", 60, None, "info"),
            operation(7, 3, "commit_offsets", 70, 80, group="g"),
        ],
        "records": [
            record(1, 0, "send", orders_0, 0, 100, "k"),
            record(1, 1, "send", orders_0, 1, 101),
            record(2, 0, "send", orders_1, 0, 100),
            record(3, 0, "send", orders_0, None, 102),
            record(3, 1, "send", orders_0, None, None, "k"),
            record(5, 0, "read", orders_0, 0, 100, "k"),
            record(5, 1, "read", orders_0, 1, 101),
            record(5, 2, "read", orders_0, 2, 102),
        ],
        "positions": [
            position(4, orders_0, 0, 0, "assign"),
            position(5, orders_0, 0, 3, "read", high_watermark=3),
        ],
        "offsets": [{"op_id": 7, "group": "g", **orders_0, "offset": 3, "direction": "commit"}],
        "assignments": [{"at_ns": 16, "process": 3, **orders_0, "event": "assigned"}],
        "inputs": [{"op_id": 1, "seq": 0, **orders_1, "offset": 0}, {"op_id": 1, "seq": 0, **orders_1, "offset": 1}],
        "states": [
            {"asked_ns": 5, "answered_ns": 5, "source": "metadata", **orders_0, "leader": 1, "isr": [1, 2]},
            {"asked_ns": 90, "answered_ns": 91, "source": "list_offsets", "isolation": "read_uncommitted", **orders_0},
        ],
        "faults": [
            {"fault_id": 1, "kind": "cut", "target": "1->2", "inject_ns": 20, "heal_ns": 25},
            {"fault_id": 2, "kind": "kill", "target": "3", "inject_ns": 26},
        ],
    }


def operation(op_id, process, f, invoke_ns, complete_ns, outcome="ok", error=None, **columns):
    times = {"invoke_ns": invoke_ns, "complete_ns": complete_ns}
    return {"op_id": op_id, "process": process, "f": f, **times, "outcome": outcome, "error": error, **columns}


def record(op_id, seq, direction, where, offset, value, key=None, **columns):
    content = {"offset": offset, "value": value, "key": key, "intact": True}
    return {"op_id": op_id, "seq": seq, "direction": direction, **where, **content, **columns}


def position(op_id, where, before, after, cause, **columns):
    return {"op_id": op_id, **where, "before": before, "after": after, "cause": cause, **columns}


def write_history(run_dir: Path, tables: Tables, run: dict[str, Any] = RUN) -> Path:
    (run_dir / "history").mkdir(parents=True)
    (run_dir / "run.json").write_text(json.dumps(run))
    for name, rows in tables.items():
        pq.write_table(arrow(name, rows), run_dir / "history" / f"{name}.parquet")
    return run_dir


def arrow(name: str, rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=SCHEMAS[name])
