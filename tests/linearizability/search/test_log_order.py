"""Conflicts in a partition log: the result of `find_log_conflict`, compared with a search of every order."""

import random
from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest

from linearizability.history.errors import HistoryError
from linearizability.search.log_order import UNKNOWN_OFFSET, FetchColumns, ReadColumns, SendColumns, find_log_conflict
from linearizability.search.zones import Ending
from tests.linearizability.many import parametrize_count

OFFSETS = 5


class History:
    """Operations on one log. Times are in ns, and an offset is -1 if it is unknown.

    :param sends: tuples (value, offset, invoke, complete, ending), in which `ending` is an `Ending`.
    :param fetches: tuples (invoke, complete, before, after, watermark).
    :param reads: for each fetch, a list of (offset, value).
    :param may_abort: values of transactions whose commit is not known.
    :param committed_only: indexes of the fetches that are read_committed.
    """

    def __init__(self, sends, fetches, reads, may_abort=(), committed_only=()):
        self.sends, self.fetches, self.reads = sends, fetches, reads
        self.may_abort, self.committed_only = may_abort, committed_only

    def conflict(self, **options):
        """Return the result of `find_log_conflict`."""

        def columns(rows, width):
            return [np.array([row[index] for row in rows], np.int64) for index in range(width)]

        value, offset, invoke, complete, ending = columns(self.sends, 5)
        may_abort = np.isin(value, self.may_abort)
        sends = SendColumns(value, offset, invoke, complete, ending.astype(np.int8), may_abort)
        committed_only = np.isin(np.arange(len(self.fetches)), self.committed_only)
        fetches = FetchColumns(*columns(self.fetches, 5), committed_only)
        reads = [(fetch, *row) for fetch, own in enumerate(self.reads) for row in own]
        return find_log_conflict(sends, fetches, ReadColumns(*columns(reads, 3)), **options)


def random_history(rng):
    """Generate a log, fetches of parts of it, and a few wrong results."""
    log, sends, log_end = {}, [], 0
    for value in range(rng.randrange(1, 4)):
        invoke, ending = rng.randrange(8), rng.choice([Ending.OK] * 5 + [Ending.INFO] * 2 + [Ending.FAIL])
        offset = log_end + (rng.random() < 0.2)
        if ending is not Ending.FAIL and rng.random() < 0.9:
            log[offset], log_end = value, offset + 1
        returned = rng.choice([offset] * 8 + [UNKNOWN_OFFSET, rng.randrange(OFFSETS)]) if ending is Ending.OK else -1
        sends.append((value, returned, invoke, invoke + rng.randrange(6), ending))
    may_abort = [value for value, *_ in sends if rng.random() < 0.3]
    fetches, reads, committed_only = [], [], []
    for _ in range(rng.randrange(1, 4)):
        invoke, before, after = rng.randrange(8), rng.randrange(2), rng.randrange(1, OFFSETS)
        if rng.random() < 0.3:
            committed_only.append(len(fetches))
        passed = may_abort if len(fetches) in committed_only and rng.random() < 0.5 else []
        own = [(at, log[at]) for at in range(before, after) if at in log and log[at] not in passed]
        own = [row for row in own if rng.random() < 0.95]
        own = [(rng.randrange(OFFSETS) if rng.random() < 0.03 else at, value) for at, value in own]
        own += own[-1:] if rng.random() < 0.02 else []
        watermark = rng.choice([UNKNOWN_OFFSET, after, after, log_end, rng.randrange(OFFSETS)])
        has_range = rng.random() < 0.7
        bounds = (before, after) if has_range else (UNKNOWN_OFFSET, UNKNOWN_OFFSET)
        fetches.append((invoke, invoke + rng.randrange(6), *bounds, watermark))
        reads.append(own)
    return History(sends, fetches, reads, may_abort, committed_only)


def is_valid(history, linearizable):
    """Whether an order that respects real time is valid, if each unknown offset is chosen suitably.

    A send whose offset is unknown may also have appended nothing.
    """
    choices = []
    for _, offset, _, _, ending in history.sends:
        if ending is Ending.FAIL:
            choices.append([None])
        elif ending is Ending.OK and offset != UNKNOWN_OFFSET:
            choices.append([offset])
        else:
            choices.append([None, *range(OFFSETS)])
    return any(_has_order(history, offsets, linearizable) for offsets in product(*choices))


def _has_order(history, offsets, linearizable):
    steps = [
        (send[2], send[3] if send[4] is Ending.OK else 10**9, "append", (offset, send[0]))
        for send, offset in zip(history.sends, offsets, strict=True)
        if offset is not None
    ]
    steps += [
        (fetch[0], fetch[1], "fetch", (fetch, own, history.may_abort if at in history.committed_only else ()))
        for at, (fetch, own) in enumerate(zip(history.fetches, history.reads, strict=True))
    ]

    def can_complete(left, log, taken):
        if not left:
            return True
        first_end = min(steps[at][1] for at in left)
        for at in left:
            if steps[at][0] <= first_end:
                after = _apply(steps[at], log, taken, linearizable)
                if after is not None and can_complete(left - {at}, *after):
                    return True
        return False

    return can_complete(frozenset(range(len(steps))), {}, 0)


def _apply(step, log, taken, linearizable):
    """Return the log and its lowest free offset (`taken`) after a step; None if the step is not permitted."""
    _, _, kind, content = step
    if kind == "append":
        offset, value = content
        return None if offset < taken else ({**log, offset: value}, offset + 1)
    (_, _, before, after, watermark), own, may_pass = content
    if any(one[0] >= other[0] for one, other in pairwise(own)):
        return None
    if any(log.get(offset) != value for offset, value in own):
        return None
    if after != UNKNOWN_OFFSET:
        returned = {at for at, _ in own}
        if any(not before <= at < after for at in returned):
            return None
        if any(before <= at < after and at not in returned and log[at] not in may_pass for at in log):
            return None
    if watermark != UNKNOWN_OFFSET and (after > watermark or any(at >= watermark for at, _ in own)):
        return None
    if linearizable and watermark != UNKNOWN_OFFSET and taken > watermark:
        return None
    return log, max([taken, after, watermark, *(at + 1 for at, _ in own)])


def compare(seeds):
    seen = set()
    for seed in seeds:
        rng = random.Random(f"log {seed}")
        history, linearizable = random_history(rng), rng.random() < 0.5
        conflict = history.conflict(linearizable=linearizable)

        valid = is_valid(history, linearizable)
        assert (conflict is None) is valid, f"seed {seed}, linearizable {linearizable}: {conflict}"
        seen.add((linearizable, valid))
        if conflict is not None:
            assert 1 <= len(conflict.sends) + len(conflict.fetches) <= 3
    return seen


@parametrize_count(4_000, nightly=200_000)
def test_conflicts_of_small_histories_are_found_as_by_the_search(count: int):
    assert compare(range(count)) == {*product((True, False), repeat=2)}


def large(count, fetched=1000):
    """Return `count` sends, one every 10 ns, and fetches that each return the next `fetched` acknowledged records."""
    offset = np.arange(count, dtype=np.int64)
    sends = SendColumns(offset.copy(), offset.copy(), offset * 10, offset * 10 + 25, np.zeros(count, np.int8))
    after = np.arange(fetched, count, fetched)
    fetches = FetchColumns(after * 10 + 40, after * 10 + 60, after - fetched, after, after + 2)
    fetch = np.repeat(np.arange(len(after)), fetched)
    reads = ReadColumns(fetch, np.arange(len(fetch)), np.arange(len(fetch)))
    return sends, fetches, reads


def test_conflicts_of_a_large_log_are_found():
    sends, fetches, reads = large(100_000)
    assert find_log_conflict(sends, fetches, reads) is None
    for fetch, text in ((50, "passed offset"), (51, "returned value")):
        value = reads.value.copy()
        value[fetch * 1000 + 500] = 99_999 if text == "returned value" else value[fetch * 1000 + 500]
        kept = np.arange(len(value)) != (fetch * 1000 + 500 if text == "passed offset" else -1)
        wrong = ReadColumns(reads.fetch[kept], reads.offset[kept], value[kept])
        conflict = find_log_conflict(sends, fetches, wrong)
        assert conflict is not None
        assert conflict.fetches == (fetch,)
        assert text in conflict.text
    watermark = fetches.watermark.copy()
    watermark[70] -= 2
    stale = replace(fetches, watermark=watermark)
    assert find_log_conflict(sends, stale, reads) is None
    conflict = find_log_conflict(sends, stale, reads, linearizable=True)
    assert conflict is not None
    assert conflict.fetches == (70,)


def test_bad_input_is_rejected_and_the_row_named():
    twice = History([(5, 0, 0, 1, 0), (5, 1, 2, 3, 0)], [], [])
    with pytest.raises(HistoryError, match="sends 0 and 1 both have value 5"):
        twice.conflict()
    backwards = History([(5, 0, 4, 1, 0)], [], [])
    with pytest.raises(HistoryError, match="send 0 completes at 1, before it was invoked at 4"):
        backwards.conflict()
    below = History([(5, -2, 0, 1, 0)], [], [])
    with pytest.raises(HistoryError, match="send 0 has the invalid offset -2"):
        below.conflict()


@pytest.mark.parametrize("linearizable", [True, False])
def test_highest_possible_offsets_are_judged(linearizable):
    high = 2**63 - 4
    sends = [(5, high, 0, 1, 0), (6, high + 1, 2, 3, 0)]
    whole = History(sends, [(4, 5, high, high + 2, high + 2)], [[(high, 5), (high + 1, 6)]])
    assert whole.conflict(linearizable=linearizable) is None
    behind = History(sends, [(4, 5, 0, high, high)], [[]])
    assert (behind.conflict(linearizable=linearizable) is not None) is linearizable
