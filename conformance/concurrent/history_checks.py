"""History checks of requirements, beside the checkers' anomalies: pure functions from tables to findings.

Each check covers every topic of a run. It reports violations, or that the history does not show the behaviour: a
history without a cut link does not test an ISR that shrinks.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from conformance.concurrent.topic_history import Row, rows_of
from linearizability.history.reader import History
from linearizability.judgement import Verdict


@dataclass(frozen=True, slots=True)
class HistoryFinding:
    """A violation, or a reason for the verdict unknown. `topic` is None for a finding about the whole run."""

    verdict: Verdict
    text: str
    topic: str | None = None


HistoryCheck = Callable[[History], Sequence[HistoryFinding]]


def violation(topic: str | None, text: str) -> HistoryFinding:
    """Return a finding that violates the requirement."""
    return HistoryFinding(Verdict.VIOLATION, text, topic)


def unknown(text: str) -> HistoryFinding:
    """Return the finding for a history that does not show the behaviour to check."""
    return HistoryFinding(Verdict.UNKNOWN, text)


def _reads(history: History) -> Iterator[dict[str, Any]]:
    """Yield the read records in the order in which their processes received them."""
    reads = [row for row in rows_of(history, "records") if row["direction"] == "read"]
    yield from sorted(reads, key=lambda row: (row["op_id"], row["seq"]))


def reads_ascend(history: History) -> Sequence[HistoryFinding]:
    """Check that each process reads increasing offsets of a partition. The processes of these scripts never seek."""
    operations = {row["op_id"]: row for row in rows_of(history, "operations")}
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
    """Check that the offset of each read record is below every later high watermark and every later end offset.

    A high watermark of a Fetch response, or an end offset of ListOffsets, is later if it was requested after the read
    had completed. The high watermark of the same response is not compared: Kafka determines it before it reads the
    records, and a follower's fetch may advance it in between. The check is valid only for a history without faults and
    with one leader.
    """
    operations = {row["op_id"]: row for row in rows_of(history, "operations")}
    ends = _end_offsets(history, operations)
    found = []
    seen = False
    for read in _reads(history):
        end = _lowest_end_after(ends[read["topic"], read["partition"]], operations[read["op_id"]]["complete_ns"])
        seen = seen or end is not None
        if end is not None and read["offset"] >= end.offset:
            place = f"offset {read['offset']} of {read['topic']}-{read['partition']} (op {read['op_id']})"
            found.append(violation(read["topic"], f"{place} was read before {end.source} {end.offset}"))
    return found or ([] if seen else [unknown("no end offset or high watermark was requested after a read")])


@dataclass(frozen=True, slots=True)
class _End:
    """An end offset, when it was requested, and in which response it was returned."""

    requested_ns: int
    offset: int
    source: str


def _end_offsets(history: History, operations: Mapping[int, Row]) -> Mapping[tuple[str, int], list[_End]]:
    """Return the end offsets of each partition in the order of their requests.

    Each is replaced by the lowest of the end offsets that were requested at that time or later.
    """
    rows: list[tuple[tuple[str, int], _End]] = [
        (
            (row["topic"], row["partition"]),
            _End(row["asked_ns"], row["high_watermark"], "ListOffsets returned the end offset"),
        )
        for row in rows_of(history, "states")
        if row["source"] == "list_offsets" and row["high_watermark"] is not None
    ]
    rows += [
        (
            (row["topic"], row["partition"]),
            _End(
                operations[row["op_id"]]["invoke_ns"],
                row["high_watermark"],
                "another Fetch returned the high watermark",
            ),
        )
        for row in rows_of(history, "positions")
        if row["high_watermark"] is not None
    ]
    ends: defaultdict[tuple[str, int], list[_End]] = defaultdict(list)
    for partition, end in sorted(rows, key=lambda row: -row[1].requested_ns):
        later = ends[partition]
        lowest = min([end, *later[-1:]], key=lambda each: each.offset)
        later.append(replace(lowest, requested_ns=end.requested_ns))
    for each in ends.values():
        each.reverse()
    return ends


def _lowest_end_after(ends: Sequence[_End], at_ns: int | None) -> _End | None:
    """Return the lowest end offset that was requested after a time; None if there is none, or the time is unknown."""
    if at_ns is None:
        return None
    index = bisect_right(ends, at_ns, key=lambda end: end.requested_ns)
    return ends[index] if index < len(ends) else None


def acknowledged_offsets_are_unique(history: History) -> Sequence[HistoryFinding]:
    """Check that no two acknowledged records of a partition have the same offset."""
    acknowledged = {row["op_id"] for row in rows_of(history, "operations") if row["outcome"] == "ok"}
    values: dict[tuple[str, int, int], int | None] = {}
    found = []
    for row in rows_of(history, "records"):
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
    """One `cut` row of the history between two nodes, and the later ISRs of partition 0 in Metadata responses."""

    follower: int
    inject_ns: int
    heal_ns: int
    topic: str
    isrs: Sequence[tuple[int, frozenset[int]]]
    """Request time and ISR, ascending."""

    @property
    def shrunk(self) -> Iterator[int]:
        """Request times of the ISRs without the follower."""
        return (requested_ns for requested_ns, isr in self.isrs if self.follower not in isr)


def _cut_followers(history: History) -> Iterator[_CutFollower]:
    metadata: defaultdict[str, list[tuple[int, frozenset[int]]]] = defaultdict(list)
    for row in rows_of(history, "states"):
        if row["source"] == "metadata" and row["partition"] == 0 and row["isr"]:
            metadata[row["topic"]].append((row["asked_ns"], frozenset(row["isr"])))
    for fault in rows_of(history, "faults"):
        source, _, _ = (fault["target"] or "").partition("->")
        if fault["kind"] != "cut" or not source.isdigit() or fault["heal_ns"] is None:
            continue
        for topic, responses in metadata.items():
            if min(at_ns for at_ns, _ in responses) < fault["inject_ns"] < max(at_ns for at_ns, _ in responses):
                isrs = sorted((at_ns, isr) for at_ns, isr in responses if at_ns >= fault["inject_ns"])
                yield _CutFollower(int(source), fault["inject_ns"], fault["heal_ns"], topic, isrs)


def isr_shrinks_and_heals(history: History) -> Sequence[HistoryFinding]:
    """Check that a follower whose fetches are lost under load leaves the ISR, and rejoins it after healing."""
    cuts = list(_cut_followers(history))
    found = []
    for cut in cuts:
        cut_s = (cut.heal_ns - cut.inject_ns) / 1e9
        if not any(requested_ns <= cut.heal_ns for requested_ns in cut.shrunk):
            found.append(
                violation(cut.topic, f"node {cut.follower} was in every ISR while it was cut for {cut_s:.1f} s")
            )
        elif cut.follower not in cut.isrs[-1][1]:
            healed_s = (cut.isrs[-1][0] - cut.heal_ns) / 1e9
            found.append(violation(cut.topic, f"node {cut.follower} is not in the ISR {healed_s:.1f} s after healing"))
    return found or ([] if cuts else [unknown("no follower's link was cut")])


def acks_all_waits_for_isr(lag_time_max_ms: int) -> HistoryCheck:
    """Return the check that no acks=all record is acknowledged before a follower that was cut off can leave the ISR.

    The leader removes a follower that lags for `replica.lag.time.max.ms`, counted from its last fetch, which may be as
    old as `replica.fetch.wait.max.ms` (0.5 s) when the cut takes effect. The tolerance is another 0.5 s. So no correct
    leader, however slow, acknowledges before the lag time minus 1 s has passed since the cut. The steps of a phase
    start only once the cut is in force.
    """
    earliest_after_ns = max(0, lag_time_max_ms - 1000) * 1_000_000

    def check(history: History) -> Sequence[HistoryFinding]:
        cuts = list(_cut_followers(history))
        found = []
        checked = 0
        for cut in cuts:
            earliest_ns = cut.inject_ns + earliest_after_ns
            for row in rows_of(history, "operations"):
                if row["f"] != "produce" or row["acks"] != -1 or row["topic"] != cut.topic or row["outcome"] != "ok":
                    continue
                if not cut.inject_ns < row["invoke_ns"] < earliest_ns:
                    continue
                checked += 1
                if row["complete_ns"] < earliest_ns:
                    after_s = (row["complete_ns"] - cut.inject_ns) / 1e9
                    found.append(
                        violation(
                            cut.topic,
                            f"op {row['op_id']} was acknowledged {after_s:.2f} s after node {cut.follower} was cut, "
                            f"while it was in the ISR",
                        )
                    )
        return found or (
            [] if checked else [unknown("no acks=all record that was sent during the cut was acknowledged")]
        )

    return check
