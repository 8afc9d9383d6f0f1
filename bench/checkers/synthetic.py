"""Synthetic history of one partition with fifty clients, generated column by column, for `kafka_log.py`."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from linearizability.history.schema import SCHEMAS

TOPIC = "orders"
ROW_GROUP_ROWS = 131_072
CLIENTS = 50
TICK_NS = 1_000


def write(run_dir: Path, name: str, **columns: pa.Array) -> None:
    """Write a table of the history with the given columns; the others are null."""
    rows = len(next(iter(columns.values())))
    arrays = [columns[field.name].cast(field.type) if field.name in columns else pa.nulls(rows, field.type)
              for field in SCHEMAS[name]]  # fmt: skip
    path = run_dir / "history" / f"{name}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(arrays, schema=SCHEMAS[name]), path, row_group_size=ROW_GROUP_ROWS)


def write_run(run_dir: Path) -> None:
    topics = {TOPIC: {"replication.factor": "3", "min.insync.replicas": "2"}}
    run_dir.mkdir(parents=True, exist_ok=True)
    (run_dir / "run.json").write_text(json.dumps({"format": 1, "run_id": "bench", "topics": topics, "complete": True}))


def constant(value: str | int | bool, rows: int) -> pa.Array:
    return pa.array([value]).take(pa.array(np.zeros(rows, np.int8)))


def write_log_of_one_partition(run_dir: Path, operations: int) -> None:
    """Write a history in which fifty clients take turns, with one operation per turn.

    Operations alternate: one produces a record, and the next fetches the last two records of the log. A fetch also
    returns the end offset. About one produce in two hundred has an unknown outcome; about half of these records are in
    the log.

    The operation number n takes effect at tick n. Its invocation is earlier and its completion is later, each by less
    than half a round of clients. All times are shifted by `reach_ns`, so that none is negative.
    """
    rng = np.random.default_rng(1)
    write_run(run_dir)
    effect_ns = np.arange(operations) * TICK_NS
    reach_ns = (CLIENTS // 2 - 1) * TICK_NS
    invoke_ns = effect_ns - rng.integers(0, reach_ns, operations) + reach_ns
    complete_ns = effect_ns + rng.integers(0, reach_ns, operations) + reach_ns
    is_fetch = np.arange(operations) % 2 == 1
    by_time = np.lexsort((np.arange(operations), invoke_ns))
    op_id = np.empty(operations, np.int64)
    op_id[by_time] = np.arange(operations)
    unknown = ~is_fetch & (rng.random(operations) < 0.005)
    dropped = unknown & (rng.random(operations) < 0.5)
    appended = np.cumsum(~is_fetch & ~dropped)
    end = appended[is_fetch]
    outcome = np.where(unknown, "info", "ok")
    write(
        run_dir,
        "operations",
        op_id=pa.array(op_id[by_time]),
        process=pa.array(by_time % CLIENTS),
        f=pa.array(np.where(is_fetch, "poll", "produce")[by_time]),
        invoke_ns=pa.array(invoke_ns[by_time]),
        complete_ns=pa.array(complete_ns[by_time], mask=unknown[by_time]),
        outcome=pa.array(outcome[by_time]),
        acks=pa.array(np.full(operations, -1), mask=is_fetch[by_time]),
        isolation=pa.array(np.full(operations, "read_uncommitted"), mask=~is_fetch[by_time]),
    )
    in_log = np.flatnonzero(~is_fetch & ~dropped)
    sent, fetches = np.flatnonzero(~is_fetch), np.flatnonzero(is_fetch)
    before = np.maximum(end - 2, 0)
    taken = end - before
    reader = np.repeat(fetches, taken)
    seq = np.arange(len(reader)) - np.repeat(np.cumsum(taken) - taken, taken)
    offset = np.repeat(before, taken) + seq
    rows = len(sent) + len(reader)
    write(
        run_dir,
        "records",
        op_id=pa.array(op_id[np.concatenate([sent, reader])]),
        seq=pa.array(np.concatenate([np.zeros(len(sent), np.int64), seq])),
        direction=pa.array(["send", "read"]).take(pa.array(np.arange(rows) >= len(sent)).cast(pa.int8())),
        topic=constant(TOPIC, rows),
        partition=constant(0, rows),
        offset=pa.array(
            np.concatenate([appended[sent] - 1, offset]),
            mask=np.concatenate([unknown[sent], np.zeros(len(reader), bool)]),
        ),
        value=pa.array(np.concatenate([sent, in_log[offset]])),
        intact=constant(True, rows),
    )
    write(
        run_dir,
        "positions",
        op_id=pa.array(op_id[fetches]),
        topic=constant(TOPIC, len(fetches)),
        partition=constant(0, len(fetches)),
        before=pa.array(before),
        after=pa.array(end),
        cause=constant("read", len(fetches)),
        high_watermark=pa.array(end),
        last_stable_offset=pa.array(end),
        log_start_offset=constant(0, len(fetches)),
    )
