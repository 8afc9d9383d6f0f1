"""Which states a cluster came to in a round, read from its history: pure.

What nodes said (`states`) and what was injected (`faults`) tell of them; a state that lasted for less than the time
between two questions may go unseen.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from linearizability.history.reader import History

STATES: Final = (
    "leader elected",
    "partition without a leader",
    "ISR shrunk",
    "ISR grown",
    "ISR of one",
    "ISR below min.insync.replicas",
    "leader outside the last ISR (unclean)",
    "leader deposed without knowing",
    "log truncated",
    "log start moved",
    "controller elected",
    "acks=all refused: NOT_ENOUGH_REPLICAS",
    "acks=all refused after the append",
    "produce answered by a former leader",
    "produce without an answer",
)
"""By name, in the order of a table."""

Row = Mapping[str, Any]
_OF_LEADERS: Final = frozenset({"fetch", "list_offsets"})


def coverage_of(history: History, topic: str, min_insync_replicas: int) -> Counter[str]:
    """How often each state was reached."""
    found: Counter[str] = Counter()
    states = history.table("states").to_pylist()
    of_partition: defaultdict[int, list[Row]] = defaultdict(list)
    for row in states:
        if row["topic"] == topic and row["source"] == "metadata" and row["error"] in {None, "LEADER_NOT_AVAILABLE"}:
            of_partition[row["partition"]].append(row)
    for rows in of_partition.values():
        found.update(_of_partition(sorted(rows, key=lambda row: row["answered_ns"]), min_insync_replicas))
    found.update(
        _of_ends(row for row in states if row["topic"] == topic and row["source"] in {"fetch", "list_offsets"})
    )
    quorum = {row["leader_epoch"] for row in states if row["source"] == "describe_quorum" and row["leader"] is not None}
    found["controller elected"] += max(0, len(quorum) - 1)
    found.update(_of_operations(history))
    return +found


def _of_partition(rows: Iterable[Row], min_insync_replicas: int) -> Iterator[str]:
    """What the newest answers say, one after the other.

    What lags behind is passed over: an older epoch, and within an epoch whatever is not the leader's own word.
    """
    epoch, leader, isr = -1, None, frozenset[int]()
    for row in rows:
        now_epoch, now_leader, now_isr = row["leader_epoch"], row["leader"], frozenset(row["isr"] or ())
        if now_epoch is None or now_epoch < epoch:
            if now_leader is not None and now_leader == row["node"]:
                yield "leader deposed without knowing"
            continue
        if now_epoch == epoch and now_leader != row["node"]:
            continue
        if now_epoch > epoch >= 0:
            yield from _of_elections(now_leader, leader, isr)
        if isr:
            yield from _of_isrs(isr, now_isr, min_insync_replicas)
        epoch, leader, isr = now_epoch, now_leader, now_isr or isr


def _of_elections(now_leader: int | None, leader: int | None, isr: frozenset[int]) -> Iterator[str]:
    if now_leader is None:
        yield "partition without a leader"
        return
    yield "leader elected"
    if isr and now_leader not in isr and now_leader != leader:
        yield "leader outside the last ISR (unclean)"


def _of_isrs(isr: frozenset[int], now_isr: frozenset[int], min_insync_replicas: int) -> Iterator[str]:
    if now_isr > isr:
        yield "ISR grown"
    elif now_isr < isr:
        yield "ISR shrunk"
        if len(now_isr) == 1:
            yield "ISR of one"
        if len(now_isr) < min_insync_replicas:
            yield "ISR below min.insync.replicas"


def _of_ends(rows: Iterable[Row]) -> Iterator[str]:
    """End offsets of one node that fell: it has cut its log short. Log starts that rose."""
    ends: dict[tuple[int, int], int] = {}
    starts: dict[tuple[int, int], int] = {}
    for row in sorted(rows, key=lambda row: row["answered_ns"]):
        place = (row["partition"], row["node"])
        end, start = row["high_watermark"], row["log_start_offset"]
        if end is not None:
            if end < ends.get(place, 0):
                yield "log truncated"
            ends[place] = end
        if start is not None:
            if start > starts.get(place, 0):
                yield "log start moved"
            starts[place] = start


_OF_ERRORS: Final = {
    "NOT_ENOUGH_REPLICAS": "acks=all refused: NOT_ENOUGH_REPLICAS",
    "NOT_ENOUGH_REPLICAS_AFTER_APPEND": "acks=all refused after the append",
    "NOT_LEADER_OR_FOLLOWER": "produce answered by a former leader",
    "REQUEST_TIMED_OUT": "produce without an answer",
    "NETWORK_EXCEPTION": "produce without an answer",
}


def _of_operations(history: History) -> Iterator[str]:
    for row in history.table("operations", ["f", "error"]).to_pylist():
        if row["f"] == "produce" and row["error"] in _OF_ERRORS:
            yield _OF_ERRORS[row["error"]]
