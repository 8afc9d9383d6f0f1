"""The part of a partition's log around the evidence, for a picture: values by offset, and the reads that cover them."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final

from linearizability.history.reader import History
from linearizability.judgement import Evidence
from linearizability.picture import rows
from linearizability.picture.drawing import Log, LogRow, Reader, Seen, short
from linearizability.picture.labels import sent_by

Row = dict[str, Any]

OFFSETS_BESIDE: Final = 8
"""Number of offsets that are shown below and above each offset of the evidence."""
_CENTRES_MAX: Final = 4
"""Maximum number of offsets of the evidence around which the log is shown."""
ROWS_MAX: Final = 60
READERS_MAX: Final = 12


def draw_log(history: History, evidence: Evidence) -> Log | None:
    """Return the part of the log around the evidence; None if the evidence has no partition or no known offset."""
    if evidence.topic is None or evidence.partition is None:
        return None
    offsets = _offsets(history, evidence)
    if not offsets:
        return None
    records = rows.records_near(history, evidence, offsets)
    positions = rows.reads_covering(history, evidence, offsets)
    reads = _reads(history, evidence, records, positions)
    if history.is_absent("positions"):
        positions = _positions_from_records(history, evidence, reads)
    return Log(
        f"{evidence.topic}-{evidence.partition}",
        tuple(_reader(read, positions, evidence) for read in reads),
        tuple(_log_rows(history, evidence, records, positions, reads)),
    )


def _offsets(history: History, evidence: Evidence) -> set[int]:
    """Return the offset of the evidence, the offsets of its value, and the offsets beside these."""
    centres = set() if evidence.offset is None else {evidence.offset}
    if evidence.value is not None:
        own = rows.records_near(history, evidence, ())
        centres |= {row["offset"] for row in own if row["offset"] is not None}
    return {
        offset
        for centre in sorted(centres)[:_CENTRES_MAX]
        for offset in range(max(0, centre - OFFSETS_BESIDE), centre + OFFSETS_BESIDE + 1)
    }


def _reads(history: History, evidence: Evidence, records: Sequence[Row], positions: Sequence[Row]) -> list[Row]:
    """Return at most `READERS_MAX` reads, by op_id: those of the evidence, and those nearest to them."""
    found = [*positions, *records, *rows.partition_rows(history, "records", evidence, evidence.op_ids)]
    op_ids = {row["op_id"] for row in found if row.get("direction") != "send"}
    reads = rows.operations(history, sorted(op_ids))
    centres = [number for number, read in enumerate(reads) if read["op_id"] in evidence.op_ids]

    def distance(number: int) -> int:
        return min((abs(number - centre) for centre in centres), default=number)

    nearest = sorted(range(len(reads)), key=distance)[:READERS_MAX]
    return [reads[number] for number in sorted(nearest)]


def _positions_from_records(history: History, evidence: Evidence, reads: Sequence[Row]) -> list[Row]:
    """Return the range of offsets of each read's records, as a position; for a history without positions."""
    offsets: dict[int, list[int]] = defaultdict(list)
    for row in rows.partition_rows(history, "records", evidence, [read["op_id"] for read in reads]):
        if row["direction"] == "read" and row["offset"] is not None:
            offsets[row["op_id"]].append(row["offset"])
    return [{"op_id": op_id, "before": min(own), "after": max(own) + 1} for op_id, own in offsets.items()]


def _log_rows(
    history: History, evidence: Evidence, records: Sequence[Row], positions: Sequence[Row], reads: Sequence[Row]
) -> Iterator[LogRow]:
    sends = {(row["offset"], row["value"]): row for row in records if row["direction"] == "send"}
    senders = {op["op_id"]: op for op in rows.operations(history, [row["op_id"] for row in sends.values()])}
    returned = {(row["op_id"], row["offset"], row["value"]) for row in records if row["direction"] == "read"}
    ranges = defaultdict(list)
    for row in positions:
        ranges[row["op_id"]].append((row["before"], row["after"]))
    for offset, value in _places(records, evidence)[:ROWS_MAX]:
        send = sends.get((offset, value)) or sends.get((None, value))
        own = [row for row in records if (row["offset"], row["value"]) == (offset, value)]
        epochs = sorted({row["leader_epoch"] for row in own if row["leader_epoch"] is not None})
        yield LogRow(
            offset=offset,
            value="tombstone" if value is None else str(value),
            key=short(next((row["key"] for row in own if row["key"] is not None), ""), 24),
            sent=sent_by(None if send is None else senders.get(send["op_id"]), send),
            epoch=", ".join(map(str, epochs)),
            seen=tuple(_seen(read["op_id"], offset, value, returned, ranges[read["op_id"]]) for read in reads),
            is_evidence=value == evidence.value if evidence.value is not None else offset == evidence.offset,
        )


def _places(records: Sequence[Row], evidence: Evidence) -> list[tuple[int | None, int | None]]:
    """Return the pairs of offset and value in the records, by offset. Values without a known offset are last.

    If no record has the offset of the evidence, the pair of this offset and the value of the evidence is added.
    """
    places = {(row["offset"], row["value"]) for row in records if row["offset"] is not None}
    values = {value for _, value in places}
    places |= {(None, row["value"]) for row in records if row["value"] not in values}
    if evidence.offset is not None and not any(offset == evidence.offset for offset, _ in places):
        places.add((evidence.offset, evidence.value))
    return sorted(places, key=lambda place: (place[0] is None, place[0] or 0, place[1] is None, place[1] or 0))


def _seen(
    op_id: int,
    offset: int | None,
    value: int | None,
    returned: Collection[tuple[int, int | None, int | None]],
    ranges: Sequence[tuple[int, int]],
) -> Seen:
    if (op_id, offset, value) in returned:
        return Seen.RETURNED
    is_covered = offset is not None and any(before <= offset < after for before, after in ranges)
    return Seen.PASSED if is_covered else Seen.NOT_COVERED


def _reader(read: Row, positions: Sequence[Row], evidence: Evidence) -> Reader:
    own = [row for row in positions if row["op_id"] == read["op_id"]]
    return Reader(
        name=f"op {read['op_id']}",
        process=f"process {read['process']}",
        begin_ns=read["invoke_ns"],
        moved=f"{own[0]['before']}→{own[-1]['after']}" if own else "",
        isolation=read["isolation"] or "",
        is_evidence=read["op_id"] in evidence.op_ids,
    )
