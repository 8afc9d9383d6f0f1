"""Coverage of a round: the states that the cluster reached, computed from the round's history.

The sources are the responses in the table `states`, and the outcomes of operations. A state that lasted for less than
the time between two requests may be missed.
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
    "log start offset advanced",
    "controller elected",
    "acks=all rejected: NOT_ENOUGH_REPLICAS",
    "acks=all rejected after the append",
    "produce rejected by a former leader",
    "produce without a response",
)
"""Names of the states, in the order of the table of coverage."""

Row = Mapping[str, Any]


def coverage_of(history: History, topic: str, min_insync_replicas: int) -> Counter[str]:
    """Return how often each state was reached."""
    found: Counter[str] = Counter()
    states = history.table("states").to_pylist()
    by_partition: defaultdict[int, list[Row]] = defaultdict(list)
    for row in states:
        if row["topic"] == topic and row["source"] == "metadata" and row["error"] in {None, "LEADER_NOT_AVAILABLE"}:
            by_partition[row["partition"]].append(row)
    for rows in by_partition.values():
        found.update(_partition_states(sorted(rows, key=lambda row: row["answered_ns"]), min_insync_replicas))
    found.update(
        _log_states(row for row in states if row["topic"] == topic and row["source"] in {"fetch", "list_offsets"})
    )
    quorum = {row["leader_epoch"] for row in states if row["source"] == "describe_quorum" and row["leader"] is not None}
    found["controller elected"] += max(0, len(quorum) - 1)
    found.update(_produce_states(history))
    return +found


def _partition_states(rows: Iterable[Row], min_insync_replicas: int) -> Iterator[str]:
    """Yield the states that a partition reached, from responses in the order of time.

    After the first response of an epoch, only responses of the leader itself count. A response of an older epoch is
    outdated. If it comes from a node that names itself as the leader, `leader deposed without knowing` is yielded.
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
            yield from _election_states(now_leader, leader, isr)
        if isr:
            yield from _isr_states(isr, now_isr, min_insync_replicas)
        epoch, leader, isr = now_epoch, now_leader, now_isr or isr


def _election_states(now_leader: int | None, leader: int | None, isr: frozenset[int]) -> Iterator[str]:
    if now_leader is None:
        yield "partition without a leader"
        return
    yield "leader elected"
    if isr and now_leader not in isr and now_leader != leader:
        yield "leader outside the last ISR (unclean)"


def _isr_states(isr: frozenset[int], now_isr: frozenset[int], min_insync_replicas: int) -> Iterator[str]:
    if now_isr > isr:
        yield "ISR grown"
    elif now_isr < isr:
        yield "ISR shrunk"
        if len(now_isr) == 1:
            yield "ISR of one"
        if len(now_isr) < min_insync_replicas:
            yield "ISR below min.insync.replicas"


def _log_states(rows: Iterable[Row]) -> Iterator[str]:
    """Yield `log truncated` when a node's high watermark decreases.

    Yield `log start offset advanced` when its log start offset increases.
    """
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
                yield "log start offset advanced"
            starts[place] = start


_STATES_BY_ERROR: Final = {
    "NOT_ENOUGH_REPLICAS": "acks=all rejected: NOT_ENOUGH_REPLICAS",
    "NOT_ENOUGH_REPLICAS_AFTER_APPEND": "acks=all rejected after the append",
    "NOT_LEADER_OR_FOLLOWER": "produce rejected by a former leader",
    "REQUEST_TIMED_OUT": "produce without a response",
    "NETWORK_EXCEPTION": "produce without a response",
}


def _produce_states(history: History) -> Iterator[str]:
    for row in history.table("operations", ["f", "error"]).to_pylist():
        if row["f"] == "produce" and row["error"] in _STATES_BY_ERROR:
            yield _STATES_BY_ERROR[row["error"]]
