"""`zombie-producer`: a fenced producer wrote (KIP-98 fences by epoch; KIP-360 and KIP-890 bump the epoch).

Choices. With the same producer id, a higher epoch is newer. Another producer id is newer if it was returned by an
init_producer_id that was invoked after an operation with the first id had completed. The order of the numbers means
nothing, because brokers allocate ids in blocks. Operations with an unknown id or epoch are not judged.

Of the commits, only the first one of each transaction is judged, and only if a write of the transaction was
acknowledged. A repeated commit changes nothing, and clients complete an empty transaction without a request.

The brokers may forget that a producer is fenced if `__transaction_state` or the topic could have lost content, or had
an unclean election. Then an operation of a fenced producer is permitted.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from linearizability.anomalies.arrow import numbers
from linearizability.anomalies.columns import Flags, Indexes, Int64s
from linearizability.anomalies.faults import NEVER_NS
from linearizability.anomalies.whole_run import RunDefinition, WholeRun
from linearizability.judgement import EVIDENCE_MAX, Anomaly, Evidence, Verdict

NAME = "zombie-producer"
_STATE_TOPIC: Final = "__transaction_state"
_NO_TRANSACTION: Final = -(2**63)
"""The `txn_seq` of an operation outside a transaction."""
_UNKNOWN_NS: Final = -(2**63)
"""An unknown time of allocation. It is before every other time, so that such an id is not newer than any other."""


@dataclass(frozen=True, slots=True)
class _Uses:
    """Uses of producer ids: operations that are ok and have a transactional id, a known producer id and an epoch."""

    txn: Indexes
    """Number of the transactional id."""
    producer: Indexes
    """Number of the pair of transactional id and producer id, in the order of these pairs."""
    epoch: Int64s
    invoke_ns: Int64s
    complete_ns: Int64s
    inits: Flags
    """Whether the operation is an init_producer_id."""
    op_id: Int64s


def find(run: WholeRun) -> Iterable[Anomaly]:
    """Return the findings, at most one per verdict; each counts operations."""
    table = run.transactional
    known = pc.and_(table["ok"], pc.and_(pc.is_valid(table["producer_id"]), pc.is_valid(table["producer_epoch"])))
    must_fail = pa.chunked_array([pa.array(_must_fail_if_fenced(table))])
    rows = table.append_column("must_fail", must_fail).filter(pc.and_(known, pc.not_equal(table["producer_id"], -1)))
    if not rows.num_rows:
        return
    uses = _uses(rows)
    fenced = _newer_epoch_was_used(uses) | (_successor_known_ns(uses)[uses.producer] < uses.invoke_ns)
    zombies = np.flatnonzero(fenced & rows["must_fail"].to_numpy())
    topics = rows["topic"].take(pa.array(zombies)).to_pylist()
    kept = np.array([all(map(run.context.keeps_content, {_STATE_TOPIC, topic} - {None})) for topic in topics], np.bool_)
    for verdict, chosen in ((Verdict.VIOLATION, zombies[kept]), (Verdict.PERMITTED, zombies[~kept])):
        if len(chosen):
            yield Anomaly(NAME, verdict, len(chosen), tuple(_evidence(rows, uses, chosen)))


def _must_fail_if_fenced(table: pa.Table) -> Flags:
    """Whether each row is an operation that must fail for a fenced producer: a write, or a first commit of writes."""
    process, txn_seq = numbers(table["process"], 0), numbers(table["txn_seq"], _NO_TRANSACTION)
    writes, commits = table["writes"].to_numpy(), table["commits"].to_numpy()
    ok, op_id = table["ok"].to_numpy(), numbers(table["op_id"], 0)
    transaction = np.unique(np.stack([process, txn_seq]), axis=1, return_inverse=True)[1].reshape(-1)
    count = int(transaction.max(initial=-1)) + 1
    wrote = np.zeros(count, np.bool_)
    wrote[transaction[writes & ok]] = True
    first = np.full(count, NEVER_NS, np.int64)
    np.minimum.at(first, transaction[commits], op_id[commits])
    changes_outcome = commits & (txn_seq != _NO_TRANSACTION) & wrote[transaction] & (first[transaction] == op_id)
    must_fail: Flags = writes | changes_outcome
    return must_fail


def _uses(rows: pa.Table) -> _Uses:
    txn = pc.dictionary_encode(rows["txn_id"].combine_chunks()).indices.to_numpy().astype(np.int64)
    pairs = np.stack([txn, numbers(rows["producer_id"], 0)])
    producer = np.unique(pairs, axis=1, return_inverse=True)[1].reshape(-1)
    return _Uses(
        txn=txn,
        producer=producer,
        epoch=numbers(rows["producer_epoch"], 0),
        invoke_ns=numbers(rows["invoke_ns"], 0),
        complete_ns=numbers(rows["complete_ns"], NEVER_NS),
        inits=rows["inits"].to_numpy(),
        op_id=numbers(rows["op_id"], 0),
    )


def _newer_epoch_was_used(uses: _Uses) -> Flags:
    """Whether, for each use, a use of the same producer id with a higher epoch had completed before it was invoked.

    The invocations and completions of all uses are sorted by producer and time. The maximum epoch of the completions up
    to each of these events is then a running maximum: `producer * span + rank` makes it start again at each producer.
    """
    count = len(uses.txn)
    is_invocation = np.repeat([True, False], count)
    time_ns = np.concatenate([uses.invoke_ns, uses.complete_ns])
    producer = np.tile(uses.producer, 2)
    ranks = np.unique(uses.epoch, return_inverse=True)[1].reshape(-1) + 1
    completed_rank = np.concatenate([np.zeros(count, np.int64), ranks])  # 0 for an invocation
    order = np.lexsort((~is_invocation, time_ns, producer))  # Invocations first: "before" excludes the same time.
    span = int(ranks.max()) + 1
    highest = np.maximum.accumulate(producer[order] * span + completed_rank[order]) % span
    newer = np.zeros(count, np.bool_)
    invoked = is_invocation[order]
    newer[order[invoked]] = highest[invoked] > ranks[order[invoked]]
    return newer


def _successor_known_ns(uses: _Uses) -> Int64s:
    """Return, for each producer id, the first completion of a use of a newer id; NEVER_NS if there is none.

    An id is newer if it was allocated after the first completion of a use of the older id.
    """
    count = int(uses.producer.max()) + 1
    known_ns, allocated_ns = np.full(count, NEVER_NS, np.int64), np.full(count, NEVER_NS, np.int64)
    np.minimum.at(known_ns, uses.producer, uses.complete_ns)
    np.minimum.at(allocated_ns, uses.producer[uses.inits], uses.invoke_ns[uses.inits])
    # An id that was used before it was allocated in this history has an unknown time of allocation.
    allocated_ns[(allocated_ns == NEVER_NS) | (allocated_ns > known_ns)] = _UNKNOWN_NS
    txn = np.zeros(count, np.int64)
    txn[uses.producer] = uses.txn
    successor_known_ns = np.full(count, NEVER_NS, np.int64)
    bounds = np.append(np.flatnonzero(np.diff(txn, prepend=-1)), count)
    for begin, end in pairwise(bounds.tolist()):  # the producer ids of one transactional id
        if end - begin > 1:
            by_allocation = begin + np.argsort(allocated_ns[begin:end])
            first_known = np.append(np.minimum.accumulate(known_ns[by_allocation][::-1])[::-1], NEVER_NS)
            first_newer = np.searchsorted(allocated_ns[by_allocation], known_ns[begin:end], side="right")
            successor_known_ns[begin:end] = first_known[first_newer]
    return successor_known_ns


def _evidence(rows: pa.Table, uses: _Uses, zombies: Indexes) -> Iterable[Evidence]:
    """Yield the evidence of the lowest operations, ordered by topic, partition and op_id."""
    table = rows.select(["op_id", "topic", "partition"]).append_column("row", pa.array(np.arange(rows.num_rows)))
    found = table.take(pa.array(zombies)).to_pylist()
    found.sort(key=lambda row: (row["topic"] or "", -1 if row["partition"] is None else row["partition"], row["op_id"]))
    for row in found[:EVIDENCE_MAX]:
        newer = _newer_use(uses, row["row"])
        epoch, newer_epoch = int(uses.epoch[row["row"]]), int(uses.epoch[newer])
        name = rows["txn_id"][row["row"]].as_py()
        ids = [rows["producer_id"][use].as_py() for use in (row["row"], newer)]
        text = (
            f"operation {row['op_id']} of transactional id {name}, with producer id {ids[0]} and epoch {epoch}, was"
            f" acknowledged, though operation {int(uses.op_id[newer])} had already returned with the newer producer id"
            f" {ids[1]} and epoch {newer_epoch}"
        )
        yield Evidence((row["op_id"], int(uses.op_id[newer])), row["topic"], row["partition"], None, None, text)


def _newer_use(uses: _Uses, zombie: int) -> int:
    """Return the lowest use of a newer id or epoch that had completed before this use was invoked."""
    own = uses.producer == uses.producer[zombie]
    known_ns = uses.complete_ns[own].min()
    others = np.unique(uses.producer[(uses.txn == uses.txn[zombie]) & ~own])
    successors = []
    for other in others:
        used = uses.producer == other
        allocated_ns = uses.invoke_ns[used & uses.inits].min(initial=NEVER_NS)
        if known_ns < allocated_ns <= uses.complete_ns[used].min() and allocated_ns != NEVER_NS:
            successors.append(other)
    newer = (own & (uses.epoch > uses.epoch[zombie])) | np.isin(uses.producer, successors)
    rows = np.flatnonzero(newer & (uses.complete_ns < uses.invoke_ns[zombie]))
    return int(rows[np.argmin(uses.op_id[rows])])


ZOMBIE_PRODUCER = RunDefinition(
    name=NAME,
    text="An operation of a fenced producer was acknowledged: a produce, a commit of group offsets inside a"
    " transaction, or the first commit of a transaction with writes. The producer was fenced if, before the operation"
    " was invoked, another operation of the same transactional id had completed with a newer producer id or epoch: an"
    " init_producer_id that returned it, or any operation that used it.",
    levels="A violation; permitted if the brokers may have forgotten that the producer was fenced.",
    counted="operations",
    evidence="the operation, and the lowest one with a newer id or epoch that had completed before it",
    find=find,
)
