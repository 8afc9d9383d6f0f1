"""Anomalies to plant into valid traffic, by their names in the catalogue: each function writes an episode with one.

An episode may show further anomalies: for example, a lost record also tears its transaction.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from linearizability.synthetic.episode import Episode
from linearizability.synthetic.interleavings import INTERLEAVINGS, write_interleaving

PlantAnomaly = Callable[[Episode], None]

_OUTAGE_STEP_NS: Final = 4_000_000_000
_OUTAGE_STEPS: Final = 40
"""The number of produces that are not served, `_OUTAGE_STEP_NS` apart. Together they last longer than `unavailable`
permits."""


def lost_write(e: Episode) -> None:
    """Plant a poll that passes over an acknowledged record without returning it."""
    e.send(e.reserve())
    e.poll(e.start, e.end, {})


def divergent_offset(e: Episode) -> None:
    """Plant two consumers that read different records at one offset."""
    at = e.reserve()
    one, other = e.send(at), e.send(None, 1, "info")
    e.poll(at, e.end, {at: one})
    e.poll(at, e.end, {at: other}, process=2)


def duplicate(e: Episode) -> None:
    """Plant a record that is stored twice."""
    at = e.reserve(2)
    value = e.send(at)
    e.poll(at, e.end, {at: value, at + 1: value})


def phantom_read(e: Episode) -> None:
    """Plant a poll that returns a value that was never sent."""
    at = e.reserve()
    e.poll(at, e.end, {at: e.new_value()})


def aborted_read(e: Episode) -> None:
    """Plant a poll that returns a record whose produce failed."""
    at = e.reserve()
    e.poll(at, e.end, {at: e.send(None, outcome="fail", error="INVALID_RECORD")})


def precommitted_read(e: Episode) -> None:
    """Plant a read of a record before its transaction began to commit."""
    own = _transaction(e, "precommitted")
    e.op(e.process, "begin_txn", **own)
    at = e.reserve(2)
    value = e.send(at, **own)
    e.poll(at, at + 1, {at: value})
    e.op(e.process, "commit_txn", **own)
    e.poll(at + 1, e.end, {})


def offset_mismatch(e: Episode) -> None:
    """Plant a record that is acknowledged at one offset and stored at the next."""
    at = e.reserve(2)
    e.poll(at, e.end, {at + 1: e.send(at)})


def corrupt_record(e: Episode) -> None:
    """Plant a record that is returned with other bytes than were sent."""
    at = e.reserve()
    value = e.send(at)
    op_id = e.poll(at, e.end, {})
    e.record(op_id, 0, "read", at, value, leader_epoch=e.epoch, intact=False)


def producer_order(e: Episode) -> None:
    """Plant two records of one produce, the later one at the lower offset."""
    at = e.reserve(2)
    op_id = e.op(e.process, "produce", acks=-1, producer_id=e.process, producer_epoch=0)
    one, other = e.new_value(), e.new_value()
    e.record(op_id, 0, "send", at + 1, one)
    e.record(op_id, 1, "send", at, other)
    e.poll(at, e.end, {at: other, at + 1: one})


def realtime_order(e: Episode) -> None:
    """Plant a record at a lower offset than another one that was acknowledged before the record was sent."""
    at = e.reserve(2)
    one, other = e.send(at + 1), e.send(at, 1)
    e.poll(at, e.end, {at: other, at + 1: one})


def poll_skip(e: Episode) -> None:
    """Plant a second consumer that skips a record."""
    found = _three(e)
    e.poll(e.start, e.start + 1, {e.start: found[e.start]}, process=5)
    e.poll(e.start + 2, e.end, {e.start + 2: found[e.start + 2]}, process=5)


def poll_regress(e: Episode) -> None:
    """Plant a second consumer that receives a record again."""
    found = _three(e)
    e.poll(e.start, e.end, found, process=5)
    e.poll(e.end - 1, e.end, {e.end - 1: found[e.end - 1]}, process=5)


def stale_end_offset(e: Episode) -> None:
    """Plant an end offset from the leader that is not above an acknowledged record."""
    _three(e)
    e.list_end_offset(e.start)


def watermark_regress(e: Episode) -> None:
    """Plant a last stable offset that decreases."""
    _three(e)
    for end in (e.end, e.start):
        e.list_end_offset(e.end, isolation="read_committed", high_watermark=None, last_stable_offset=end)


def read_above_watermark(e: Episode) -> None:
    """Plant a read of a record that is not below an end offset returned later."""
    value = e.send(None, outcome="info")
    e.poll(e.start, e.start + 1, {e.start: value}, process=5)
    e.list_end_offset(e.start)
    at = e.reserve()
    e.poll(at, e.end, {})


def epoch_regress(e: Episode) -> None:
    """Plant a batch of an older leader epoch after one of a newer epoch."""
    at = e.reserve(2)
    values = [e.send(at), e.send(at + 1)]
    op_id = e.poll(at, e.end, {})
    e.record(op_id, 0, "read", at, values[0], leader_epoch=e.epoch + 1)
    e.record(op_id, 1, "read", at + 1, values[1], leader_epoch=e.epoch)
    e.topic.epoch[e.partition] += 1


def two_leaders(e: Episode) -> None:
    """Plant two nodes that acknowledge in one leader epoch."""
    at = e.reserve(2)
    values = [e.send(at + number, number, epoch=e.epoch, node=1 + number) for number in range(2)]
    e.poll(at, e.end, dict(enumerate(values, at)))


def fenced_leader_write(e: Episode) -> None:
    """Plant a node that acknowledges in an older leader epoch after another node did in a newer one."""
    at = e.reserve(2)
    e.topic.epoch[e.partition] += 2
    values = [e.send(at, 0, epoch=e.epoch, node=1), e.send(at + 1, 1, epoch=e.epoch - 1, node=2)]
    e.poll(at, e.end, dict(enumerate(values, at)))


def commit_lost(e: Episode) -> None:
    """Plant fetches that do not find a group's committed offset."""
    _group_offsets(e, 1, None)


def commit_regress(e: Episode) -> None:
    """Plant fetches that return a group offset that was never committed."""
    _group_offsets(e, 1, 1_000)


def double_ownership(e: Episode) -> None:
    """Plant two members that are assigned one partition in one generation and both continue to work."""
    for process in range(2):
        own = {"group": f"group-{e.process}", "member_id": f"member-{process}", "generation": 1}
        e.add("assignments", at_ns=e.now_ns, process=e.process + process, event="assigned", **own, **e.place)
        e.wait(1)
    for process in range(2):
        e.op(e.process + process, "heartbeat", group=f"group-{e.process}")


def reprocessed_input(e: Episode) -> None:
    """Plant two committed transactions that contain an output of the same input."""
    e.poll(e.start, e.start + 1, {e.reserve(): e.send(e.start)})
    for number in range(2):
        own = _transaction(e, "processor", number)
        e.op(e.process, "begin_txn", **own)
        at = e.reserve(2)
        value = e.new_value()
        op_id = e.op(e.process, "produce", acks=-1, **own)
        e.record(op_id, 0, "send", at, value)
        e.add("inputs", op_id=op_id, seq=0, offset=e.start, **e.place)
        _group_offset(
            e, e.op(e.process, "commit_offsets", group="processors", **own), "processors", e.start + 1, "commit"
        )
        e.op(e.process, "commit_txn", **own)
        e.poll(at, e.end, {at: value})


def not_converged(e: Episode) -> None:
    """Plant two replicas whose logs contain different records at one offset."""
    at = e.reserve()
    value = e.send(at)
    e.poll(at, e.end, {at: value})
    for node, found in enumerate((value, e.new_value()), 1):
        columns: dict[str, Any] = {"node": node, "isolation": "read_uncommitted"}
        e.poll(at, e.end, {at: found}, process=node, f="read_replica", **columns)


def unseen(e: Episode) -> None:
    """Plant an acknowledged record at an offset that no read reaches."""
    e.send(e.reserve())


def torn_transaction(e: Episode) -> None:
    """Plant a poll that returns only one of two records of a committed transaction."""
    own = _transaction(e, "torn")
    e.op(e.process, "begin_txn", **own)
    at = e.reserve(3)
    value = e.send(at, **own)
    e.send(at + 1, **own)
    e.op(e.process, "commit_txn", **own)
    e.poll(at, e.end, {at: value})


def zombie_producer(e: Episode) -> None:
    """Plant a fenced producer that still gets acknowledgements."""
    own = _transaction(e, "zombie")
    e.op(e.process + 1, "init_producer_id", **{**own, "producer_epoch": 1, "txn_seq": None})
    e.op(e.process, "begin_txn", **own)
    at = e.reserve(2)
    value = e.send(at, **own)
    e.op(e.process, "commit_txn", **own)
    e.poll(at, e.end, {at: value})


def unavailable(e: Episode) -> None:
    """Plant an outage of the partition that lasts for minutes, without any fault."""
    for _ in range(_OUTAGE_STEPS):
        e.send(None, outcome="info", error="LEADER_NOT_AVAILABLE", node=None)
        e.wait(_OUTAGE_STEP_NS)


def _transaction(e: Episode, name: str, number: int = 0) -> dict[str, Any]:
    own = {"txn_id": f"{name}-{e.process}", "txn_seq": number}
    return {**own, "producer_id": e.process, "producer_epoch": 0}


def _three(e: Episode) -> dict[int, int]:
    """Write three records that the consumer of the partition reads; return the values by offset."""
    at = e.reserve(3)
    found = {at + number: e.send(at + number) for number in range(3)}
    e.poll(at, e.end, found)
    return found


def _group_offsets(e: Episode, committed: int, fetched: int | None) -> None:
    """Write one commit, and two fetches that return another offset."""
    group = f"group-{e.process}"
    _group_offset(e, e.op(e.process, "commit_offsets", group=group), group, committed, "commit")
    for _ in range(2):
        _group_offset(e, e.op(e.process, "fetch_offsets", group=group), group, fetched, "fetched")


def _group_offset(e: Episode, op_id: int, group: str, offset: int | None, direction: str) -> None:
    e.add("offsets", op_id=op_id, group=group, offset=offset, direction=direction, **e.place)


PLANTED_ANOMALIES: Final[Mapping[str, PlantAnomaly]] = {
    "lost-write": lost_write,
    "divergent-offset": divergent_offset,
    "duplicate": duplicate,
    "phantom-read": phantom_read,
    "aborted-read": aborted_read,
    "precommitted-read": precommitted_read,
    "offset-mismatch": offset_mismatch,
    "corrupt-record": corrupt_record,
    "producer-order": producer_order,
    "realtime-order": realtime_order,
    "poll-skip": poll_skip,
    "poll-regress": poll_regress,
    "stale-end-offset": stale_end_offset,
    "watermark-regress": watermark_regress,
    "read-above-watermark": read_above_watermark,
    "epoch-regress": epoch_regress,
    "two-leaders": two_leaders,
    "fenced-leader-write": fenced_leader_write,
    "commit-lost": commit_lost,
    "commit-regress": commit_regress,
    "double-ownership": double_ownership,
    "reprocessed-input": reprocessed_input,
    "not-converged": not_converged,
    "torn-transaction": torn_transaction,
    "zombie-producer": zombie_producer,
    "unavailable": unavailable,
    **{name: partial(write_interleaving, steps=steps) for name, steps in INTERLEAVINGS.items()},
    "unseen": unseen,
}
"""Every anomaly of the catalogue, with the function that plants it."""
LAST: Final = frozenset({"unseen"})
"""Anomalies that only the last operations of a partition can show."""
