"""Labels and details of Kafka operations and of reported states, for pictures."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from linearizability.picture.drawing import short
from linearizability.printable import counted

Row = dict[str, Any]
Details = tuple[tuple[str, str], ...]

RECORDS_SHOWN: Final = 12
_DETAILS: Final = (
    ("error", "Error"),
    ("node", "Responding node"),
    ("acks", "acks"),
    ("attempts", "Attempts"),
    ("isolation", "Isolation"),
    ("txn_id", "Transactional id"),
    ("txn_seq", "Transaction"),
    ("producer_id", "Producer id"),
    ("producer_epoch", "Producer epoch"),
    ("group", "Group"),
    ("member_id", "Member"),
    ("generation", "Generation"),
)


def operation_label(op: Row, records: Sequence[Row], moves: Sequence[Row]) -> str:
    """Return a short label: `produce 5 @ 65-69`, `poll 65→74, 8 records`, `commit_txn`.

    :param moves: the operation's rows of `positions`.
    """
    f = str(op["f"])
    if f == "produce":
        sent = [row for row in records if row["direction"] == "send"]
        offsets = [int(row["offset"]) for row in sent if row["offset"] is not None]
        return f"produce {len(sent)}{f' @ {_range(offsets)}' if offsets else ''}{_error(op)}"
    read = [row for row in records if row["direction"] == "read"]
    passed = [move for move in moves if move["cause"] == "read"]
    if passed:
        return f"{f} {passed[0]['before']}→{passed[-1]['after']}, {counted(len(read), 'record') if read else 'none'}"
    if read:
        return f"{f} {counted(len(read), 'record')} @ {_range([int(row['offset'] or 0) for row in read])}"
    if moves:
        return f"{f} to {moves[0]['after']}"
    return f"{f}{'' if op['offset'] is None else ' ' + str(op['offset'])}{_error(op)}"


def operation_details(op: Row, records: Sequence[Row], moves: Sequence[Row]) -> Details:
    """Return pairs of name and text: the known columns of an operation, its records and its positions."""
    return tuple(_operation_details(op, records, moves))


def _operation_details(op: Row, records: Sequence[Row], moves: Sequence[Row]) -> Iterator[tuple[str, str]]:
    yield "Outcome", {"ok": "ok", "fail": "fail: it took no effect", "info": "info: unknown"}[op["outcome"]]
    for column, name in _DETAILS:
        if op[column] is not None:
            yield name, "all" if (column, op[column]) == ("acks", -1) else short(op[column], 60)
    for direction, name in (("send", "Sent"), ("read", "Returned")):
        own = [row for row in records if row["direction"] == direction]
        if own:
            shown = ", ".join(f"{_number(row['offset'])}: {_value(row)}" for row in own[:RECORDS_SHOWN])
            yield (
                f"{name} (offset: value)",
                shown + (f" and {len(own) - RECORDS_SHOWN:,} more" if own[RECORDS_SHOWN:] else ""),
            )
    for move in moves[:4]:
        yield "Position", f"{move['cause']} {move['before']} → {move['after']}{_ends(move)}"


def state_label(state: Row) -> str:
    """Return a short label of a reported state: `e3 end 65`, `e3 ISR 1,2`.

    `e3` is the leader epoch. The offset is `end` (high watermark), else `stable` (last stable offset), else `log end`.
    """
    parts = [] if state["leader_epoch"] is None else [f"e{state['leader_epoch']}"]
    if state["high_watermark"] is not None:
        parts.append(f"end {state['high_watermark']}")
    elif state["last_stable_offset"] is not None:
        parts.append(f"stable {state['last_stable_offset']}")
    elif state["log_end_offset"] is not None:
        parts.append(f"log end {state['log_end_offset']}")
    if state["isr"] is not None:
        parts.append(f"ISR {','.join(map(str, state['isr'][:9]))}")
    return " ".join(parts) or short(state["error"] or state["source"], 30)


def state_details(state: Row) -> Details:
    """Return pairs of name and text: all fields that a node reported."""
    names = (
        ("source", "Request"),
        ("isolation", "Isolation"),
        ("leader", "Leader"),
        ("leader_epoch", "Leader epoch"),
        ("isr", "ISR"),
        ("high_watermark", "High watermark"),
        ("last_stable_offset", "Last stable offset"),
        ("log_start_offset", "Log start"),
        ("log_end_offset", "Log end"),
        ("error", "Error"),
    )
    return tuple((name, short(state[column], 60)) for column, name in names if state[column] is not None)


def sent_by(op: Row | None, send: Row | None) -> str:
    """Describe the operation that sent a record, and whether it was acknowledged."""
    if op is None or send is None:
        return "no operation known"
    acks = "" if op["acks"] is None else f", acks={'all' if op['acks'] == -1 else op['acks']}"
    ended = {"ok": "acknowledged", "fail": "failed", "info": "unknown"}[op["outcome"]]
    if op["outcome"] == "ok":
        ended += " at " + _number(send["offset"])
    transaction = "" if op["txn_seq"] is None else f", transaction {op['txn_seq']}"
    return f"op {op['op_id']}, process {op['process']}{transaction}{acks}: {ended}"


def _value(row: Row) -> str:
    return "tombstone" if row["value"] is None else str(row["value"])


def _number(offset: object) -> str:
    return "?" if offset is None else str(offset)


def _range(offsets: Sequence[int]) -> str:
    low, high = min(offsets), max(offsets)
    return str(low) if low == high else f"{low}-{high}"


def _error(op: Row) -> str:
    return "" if op["error"] is None else f" {short(op['error'], 40)}"


def _ends(move: Row) -> str:
    names = (("high_watermark", "high watermark"), ("last_stable_offset", "last stable"), ("log_start_offset", "start"))
    ends = ", ".join(f"{name} {move[column]}" for column, name in names if move[column] is not None)
    return f" ({ends})" if ends else ""
