"""What a requirement asks of a history beyond the checkers' anomalies: pure functions from tables to findings.

Each examines every topic of a run, takes time linear in its rows, and says what it saw that must not be, or why it
cannot tell: a promise about an ISR that shrinks is not kept by a history in which nothing was cut.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from linearizability.history.reader import History
from linearizability.judgement import Verdict

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class HistoryFinding:
    """One finding: a violation, or something unknown. `topic` null where it is of the whole run."""

    verdict: Verdict
    text: str
    topic: str | None = None


HistoryCheck = Callable[[History], Sequence[HistoryFinding]]


def violation(topic: str | None, text: str) -> HistoryFinding:
    """What must not be was seen."""
    return HistoryFinding(Verdict.VIOLATION, text, topic)


def unknown(text: str) -> HistoryFinding:
    """The history does not show what is to be examined."""
    return HistoryFinding(Verdict.UNKNOWN, text)


def _rows(history: History, table: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = history.table(table).to_pylist()
    return rows


def _reads(history: History) -> Iterator[dict[str, Any]]:
    """Read records in the order in which their processes got them."""
    reads = [row for row in _rows(history, "records") if row["direction"] == "read"]
    yield from sorted(reads, key=lambda row: (row["op_id"], row["seq"]))


def reads_ascend(history: History) -> Sequence[HistoryFinding]:
    """A process that never seeks reads ever higher offsets of a partition."""
    operations = {row["op_id"]: row for row in _rows(history, "operations")}
    last: dict[tuple[int, str, int], int] = {}
    found = []
    for read in _reads(history):
        process = operations[read["op_id"]]["process"]
        place = (process, read["topic"], read["partition"])
        before = last.get(place)
        if before is not None and read["offset"] <= before:
            found.append(
                violation(
                    read["topic"],
                    f"process {process} read offset {read['offset']} of {read['topic']}-{read['partition']} "
                    f"after offset {before} (op {read['op_id']})",
                )
            )
        last[place] = read["offset"]
    return found or ([] if last else [unknown("nothing was read")])


def reads_stay_below_watermark(history: History) -> Sequence[HistoryFinding]:
    """No record is read at or above the high watermark of the same answer, or of an end offset answered later.

    Later: asked after the read completed. Only for a history without faults, in which one leader answers all.
    """
    operations = {row["op_id"]: row for row in _rows(history, "operations")}
    answered: dict[tuple[int, str, int], int] = {
        (row["op_id"], row["topic"], row["partition"]): row["high_watermark"]
        for row in _rows(history, "positions")
        if row["high_watermark"] is not None
    }
    ends = _end_offsets(history)
    found = []
    seen = False
    for read in _reads(history):
        partition = (read["topic"], read["partition"])
        place = f"offset {read['offset']} of {read['topic']}-{read['partition']} (op {read['op_id']})"
        watermark = answered.get((read["op_id"], *partition))
        seen = seen or watermark is not None
        if watermark is not None and read["offset"] >= watermark:
            found.append(violation(read["topic"], f"{place} came with a high watermark of {watermark}"))
        end = _first_asked_after(ends[partition], operations[read["op_id"]]["complete_ns"])
        if end is not None and read["offset"] >= end:
            found.append(violation(read["topic"], f"{place} was read before ListOffsets answered an end of {end}"))
    return found or ([] if seen else [unknown("no fetch answered a record and a high watermark")])


def _end_offsets(history: History) -> Mapping[tuple[str, int], list[tuple[int, int]]]:
    """By partition, read_uncommitted ends with the time they were asked at, the lowest of all later ones: ascending."""
    ends: defaultdict[tuple[str, int], list[tuple[int, int]]] = defaultdict(list)
    for row in sorted(_rows(history, "states"), key=lambda row: -row["asked_ns"]):
        if row["source"] == "list_offsets" and row["high_watermark"] is not None:
            later = ends[row["topic"], row["partition"]]
            later.append(
                (row["asked_ns"], min(row["high_watermark"], later[-1][1] if later else row["high_watermark"]))
            )
    for each in ends.values():
        each.reverse()
    return ends


def _first_asked_after(ends: Sequence[tuple[int, int]], at_ns: int | None) -> int | None:
    """The lowest end that was asked for after a time, by bisection of the ascending list."""
    if at_ns is None:
        return None
    index = bisect_right(ends, at_ns, key=lambda end: end[0])
    return ends[index][1] if index < len(ends) else None


def acknowledged_offsets_are_unique(history: History) -> Sequence[HistoryFinding]:
    """No two acknowledged records of a partition have one offset."""
    acknowledged = {row["op_id"] for row in _rows(history, "operations") if row["outcome"] == "ok"}
    values: dict[tuple[str, int, int], int | None] = {}
    found = []
    for row in _rows(history, "records"):
        if row["direction"] != "send" or row["offset"] is None or row["op_id"] not in acknowledged:
            continue
        place = (row["topic"], row["partition"], row["offset"])
        if place in values and values[place] != row["value"]:
            found.append(
                violation(
                    row["topic"],
                    f"values {values[place]} and {row['value']} were both acknowledged at offset {row['offset']} "
                    f"of {row['topic']}-{row['partition']}",
                )
            )
        values[place] = row["value"]
    return found or ([] if values else [unknown("nothing was acknowledged with an offset")])


# --- replication, while the link from a follower to the leader is cut


@dataclass(frozen=True, slots=True)
class _CutFollower:
    """One `cut` row of the history between two nodes, and what metadata said of partition 0 from then on."""

    follower: int
    inject_ns: int
    heal_ns: int
    topic: str
    isrs: Sequence[tuple[int, frozenset[int]]]
    """When it was asked, and the ISR answered; ascending."""

    @property
    def shrunk(self) -> Iterator[int]:
        """When an ISR without the follower was asked for."""
        return (asked_ns for asked_ns, isr in self.isrs if self.follower not in isr)


def _cut_followers(history: History) -> Iterator[_CutFollower]:
    metadata: defaultdict[str, list[tuple[int, int, frozenset[int]]]] = defaultdict(list)
    for row in _rows(history, "states"):
        if row["source"] == "metadata" and row["partition"] == 0 and row["isr"]:
            metadata[row["topic"]].append((row["asked_ns"], row["answered_ns"], frozenset(row["isr"])))
    for fault in _rows(history, "faults"):
        source, _, _ = (fault["target"] or "").partition("->")
        if fault["kind"] != "cut" or not source.isdigit() or fault["heal_ns"] is None:
            continue
        for topic, answers in metadata.items():
            if min(asked for asked, _, _ in answers) < fault["inject_ns"] < max(asked for asked, _, _ in answers):
                isrs = sorted((asked, isr) for asked, _, isr in answers if asked >= fault["inject_ns"])
                yield _CutFollower(int(source), fault["inject_ns"], fault["heal_ns"], topic, isrs)


def isr_shrinks_and_heals(history: History) -> Sequence[HistoryFinding]:
    """While a follower's fetches are cut off and records come in, it leaves the ISR; after healing it is back."""
    cuts = list(_cut_followers(history))
    found = []
    for cut in cuts:
        cut_s = (cut.heal_ns - cut.inject_ns) / 1e9
        if not any(asked_ns <= cut.heal_ns for asked_ns in cut.shrunk):
            found.append(
                violation(cut.topic, f"node {cut.follower} was in every ISR while it was cut for {cut_s:.1f} s")
            )
        elif cut.follower not in cut.isrs[-1][1]:
            healed_s = (cut.isrs[-1][0] - cut.heal_ns) / 1e9
            found.append(violation(cut.topic, f"node {cut.follower} is not in the ISR {healed_s:.1f} s after healing"))
    return found or ([] if cuts else [unknown("no follower's link was cut")])


def acks_all_waits_for_isr(lag_time_max_ms: int) -> HistoryCheck:
    """No acks=all record sent while a follower is cut is acknowledged before that follower can have left the ISR.

    The leader drops it once it lags for `replica.lag.time.max.ms`, counted from its last fetch, which may be as old as
    `replica.fetch.wait.max.ms` (half a second) when the cut takes hold. With another half second to spare that is a
    bound that no correct leader breaks, however slow. A run starts a phase's steps only when the cut holds.
    """
    earliest_after_ns = max(0, lag_time_max_ms - 1000) * 1_000_000

    def check(history: History) -> Sequence[HistoryFinding]:
        cuts = list(_cut_followers(history))
        found = []
        held = 0
        for cut in cuts:
            earliest_ns = cut.inject_ns + earliest_after_ns
            for row in _rows(history, "operations"):
                if row["f"] != "produce" or row["acks"] != -1 or row["topic"] != cut.topic or row["outcome"] != "ok":
                    continue
                if not cut.inject_ns < row["invoke_ns"] < earliest_ns:
                    continue
                held += 1
                if row["complete_ns"] < earliest_ns:
                    after_s = (row["complete_ns"] - cut.inject_ns) / 1e9
                    found.append(
                        violation(
                            cut.topic,
                            f"op {row['op_id']} was acknowledged {after_s:.2f} s after node {cut.follower} was cut, "
                            f"while it was in the ISR",
                        )
                    )
        return found or ([] if held else [unknown("no acks=all record was acknowledged that was sent during the cut")])

    return check
