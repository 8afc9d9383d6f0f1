"""Table of a partition's log around the evidence: values by offset, with the reads that returned them."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import Any, Final

from linearizability.history.reader import History
from linearizability.judgement import Evidence
from linearizability.picture import rows
from linearizability.picture.drawing import Log, LogRow, Reader, Seen, short
from linearizability.picture.labels import sent_by

Row = dict[str, Any]

OFFSETS_BESIDE: Final = 8
ROWS_MAX: Final = 60
READERS_MAX: Final = 12


def draw_log(history: History, evidence: Evidence) -> Log | None:
    """Return the rows around the evidence; None if it has no partition, or no known offset."""
    if evidence.topic is None or evidence.partition is None:
        return None
    offsets = _offsets(history, evidence)
    if not offsets:
        return None
    records = rows.records_near(history, evidence, offsets)
    covering = rows.reads_covering(history, evidence, offsets)
    sends = {(row["offset"], row["value"]): row for row in records if row["direction"] == "send"}
    readers = _readers(history, evidence, records, covering)
    if history.is_absent("positions"):
        covering = _derived(history, evidence, readers)
    senders = {op["op_id"]: op for op in rows.operations(history, [row["op_id"] for row in sends.values()])}
    returned = {(row["op_id"], row["offset"], row["value"]) for row in records if row["direction"] == "read"}
    spans = defaultdict(list)
    for move in covering:
        spans[move["op_id"]].append((move["before"], move["after"]))
    shown = []
    for offset, value in _places(records, evidence)[:ROWS_MAX]:
        send = sends.get((offset, value)) or sends.get((None, value))
        seen = tuple(_seen(op["op_id"], offset, value, returned, spans[op["op_id"]]) for op in readers)
        own = [row for row in records if (row["offset"], row["value"]) == (offset, value)]
        epochs = sorted({row["leader_epoch"] for row in own if row["leader_epoch"] is not None})
        shown.append(
            LogRow(
                offset=offset,
                value="tombstone" if value is None else str(value),
                key=short(next((row["key"] for row in own if row["key"] is not None), ""), 24),
                sent=sent_by(None if send is None else senders.get(send["op_id"]), send),
                epoch=", ".join(map(str, epochs)),
                seen=seen,
                is_evidence=value == evidence.value if evidence.value is not None else offset == evidence.offset,
            )
        )
    return Log(
        f"{evidence.topic}-{evidence.partition}",
        tuple(_reader(op, covering, evidence) for op in readers),
        tuple(shown),
    )


def _offsets(history: History, evidence: Evidence) -> set[int]:
    """Return the offset of the evidence, the offsets of its value (at most four in all), and the offsets near them."""
    near = [] if evidence.offset is None else [evidence.offset]
    if evidence.value is not None:
        near += [row["offset"] for row in rows.records_near(history, evidence, ()) if row["offset"] is not None]
    return {
        offset
        for centre in sorted(set(near))[:4]
        for offset in range(max(0, centre - OFFSETS_BESIDE), centre + OFFSETS_BESIDE + 1)
    }


def _places(records: Sequence[Row], evidence: Evidence) -> list[tuple[int | None, int | None]]:
    """Return (offset, value) pairs: each value at every offset where it was acknowledged or read, by offset.

    Values without an offset come last. The offset of the evidence is included even if no record has it.
    """
    places = {(row["offset"], row["value"]) for row in records if row["offset"] is not None}
    placed = {value for _, value in places}
    places |= {(None, row["value"]) for row in records if row["value"] not in placed}
    if evidence.offset is not None and not any(offset == evidence.offset for offset, _ in places):
        places.add((evidence.offset, evidence.value))
    return sorted(places, key=lambda place: (place[0] is None, place[0] or 0, place[1] is None, place[1] or 0))


def _readers(history: History, evidence: Evidence, records: Sequence[Row], covering: Sequence[Row]) -> list[Row]:
    """Return the reads to show: those of the evidence, then those next to them in time."""
    found = [*covering, *records, *rows.partition_rows(history, "records", evidence, evidence.op_ids)]
    op_ids = {row["op_id"] for row in found if row.get("direction") != "send"}
    reads = rows.operations(history, sorted(op_ids))
    marked = [place for place, op in enumerate(reads) if op["op_id"] in evidence.op_ids]
    ranked = sorted(range(len(reads)), key=lambda place: min((abs(place - other) for other in marked), default=place))
    return [reads[place] for place in sorted(ranked[:READERS_MAX])]


def _derived(history: History, evidence: Evidence, readers: Sequence[Row]) -> list[Row]:
    """Return the ranges that reads certainly passed, for a history without positions: lowest to highest record."""
    offsets: dict[int, list[int]] = defaultdict(list)
    for row in rows.partition_rows(history, "records", evidence, [op["op_id"] for op in readers]):
        if row["direction"] == "read" and row["offset"] is not None:
            offsets[row["op_id"]].append(row["offset"])
    return [{"op_id": op_id, "before": min(own), "after": max(own) + 1} for op_id, own in offsets.items()]


def _seen(
    op_id: int,
    offset: int | None,
    value: int | None,
    returned: Collection[tuple[int, int | None, int | None]],
    spans: Sequence[tuple[int, int]],
) -> Seen:
    if (op_id, offset, value) in returned:
        return Seen.RETURNED
    covers = offset is not None and any(before <= offset < after for before, after in spans)
    return Seen.PASSED if covers else Seen.NOT_COVERED


def _reader(op: Row, covering: Sequence[Row], evidence: Evidence) -> Reader:
    own = [move for move in covering if move["op_id"] == op["op_id"]]
    return Reader(
        name=f"op {op['op_id']}",
        process=f"process {op['process']}",
        begin_ns=op["invoke_ns"],
        moved=f"{own[0]['before']}→{own[-1]['after']}" if own else "",
        isolation=op["isolation"] or "",
        is_evidence=op["op_id"] in evidence.op_ids,
    )
