"""Operations of transactional producers, reduced to the columns that the judgement of a whole run needs."""

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from linearizability.anomalies.faults import NEVER_NS

TRANSACTIONAL_FIELDS: Final = (
    "op_id", "process", "f", "invoke_ns", "complete_ns", "outcome", "txn_id", "txn_seq", "producer_id",
    "producer_epoch", "topic", "partition",
)  # fmt: skip
"""The columns of `operations` that are read."""

TRANSACTIONAL_ROWS: Final = pa.schema(
    [
        pa.field("op_id", pa.int64()),
        pa.field("process", pa.int64()),
        pa.field("invoke_ns", pa.int64()),
        pa.field("complete_ns", pa.int64()),
        pa.field("ok", pa.bool_()),
        pa.field("txn_id", pa.string()),
        pa.field("txn_seq", pa.int64()),
        pa.field("producer_id", pa.int64()),
        pa.field("producer_epoch", pa.int32()),
        pa.field("inits", pa.bool_()),
        pa.field("writes", pa.bool_()),
        pa.field("commits", pa.bool_()),
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
    ]
)
"""Operations with a transactional id that are ok, and commits that may have succeeded. `writes`: a produce, or group
offsets inside a transaction."""


def transactional_rows(table: pa.Table) -> pa.Table:
    """Return the TRANSACTIONAL_ROWS of rows of `operations`."""
    table = table.filter(pc.is_valid(table["txn_id"]))
    if not table.num_rows:
        return TRANSACTIONAL_ROWS.empty_table()
    commits = pc.equal(table["f"], "commit_txn")
    ok = pc.equal(table["outcome"], "ok")
    kept = pc.or_(ok, pc.and_(commits, pc.equal(table["outcome"], "info")))
    offsets = pc.and_(pc.equal(table["f"], "commit_offsets"), pc.is_valid(table["txn_seq"]))
    made = {
        "ok": ok,
        "inits": pc.equal(table["f"], "init_producer_id"),
        "writes": pc.or_(pc.equal(table["f"], "produce"), offsets),
        "commits": commits,
        "complete_ns": pc.fill_null(table["complete_ns"], NEVER_NS),
    }
    columns = [made[field.name] if field.name in made else table[field.name] for field in TRANSACTIONAL_ROWS]
    return pa.table(columns, names=TRANSACTIONAL_ROWS.names).cast(TRANSACTIONAL_ROWS).filter(kept)
