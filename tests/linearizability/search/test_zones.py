"""Zones of a register whose writes are unique: their conflicts, compared with the verdict of the depth-first search."""

import random

import numpy as np
import pytest

from linearizability.history.errors import HistoryError
from linearizability.judgement import Verdict
from linearizability.models.register import register
from linearizability.operation import Operation, Outcome
from linearizability.search.competition import EngineName
from linearizability.search.zones import NEVER, Ending, RegisterColumns, find_conflict
from linearizability.verify import Budget, check
from tests.linearizability.many import parametrize_count

ENDING = {Outcome.OK: Ending.OK, Outcome.FAIL: Ending.FAIL, Outcome.INFO: Ending.INFO}


def random_register(rng: random.Random, size: int) -> list[Operation]:
    ticks, history = rng.choice([size, 3 * size]), []
    values = iter(range(1, size + 1))
    for op_id in range(size):
        invoke_ns = rng.randrange(ticks)
        complete_ns = invoke_ns + rng.randrange(max(2, ticks // 2))
        outcome = rng.choice([Outcome.OK] * 6 + [Outcome.INFO, Outcome.FAIL])
        is_write = rng.random() < 0.5
        history.append(
            Operation(
                op_id=op_id,
                input=("write", next(values)) if is_write else ("read",),
                output=None if is_write else rng.randrange(size // 2 + 1),
                invoke_ns=invoke_ns,
                complete_ns=complete_ns,
                outcome=outcome,
            )
        )
    return history


def columns_of(history: list[Operation]) -> RegisterColumns:
    return RegisterColumns(
        is_write=np.array([op.input[0] == "write" for op in history], bool),
        value=np.array([op.input[1] if op.input[0] == "write" else op.output for op in history], np.int64),
        invoke_ns=np.array([op.invoke_ns for op in history], np.int64),
        complete_ns=np.array([op.complete_ns if op.complete_ns is not None else NEVER for op in history], np.int64),
        ending=np.array([ENDING[op.outcome] for op in history], np.int8),
    )


def compare(seeds: range) -> set[bool]:
    seen = set()
    for seed in seeds:
        rng = random.Random(f"zones {seed}")
        history = random_register(rng, rng.randrange(1, 9))
        verdict = check(history, register(0), Budget(time_s=None), engines=(EngineName.DEPTH_FIRST,)).verdict
        conflict = find_conflict(columns_of(history), 0)
        assert (conflict is None) is (verdict is Verdict.OK), f"seed {seed}: {conflict}, the search returns {verdict}"
        seen.add(conflict is None)
        if conflict is not None:
            # The rows of the conflict and the writes of their values are a violation without the other rows.
            values = {columns_of(history).value[row] for row in conflict.rows}
            needed = [
                op
                for row, op in enumerate(history)
                if row in conflict.rows or op.input in [("write", v) for v in values]
            ]
            assert check(needed, register(0)).verdict is Verdict.VIOLATION, f"seed {seed}: {conflict}"
    return seen


@parametrize_count(4_000, nightly=200_000)
def test_conflicts_of_small_histories_are_found_as_by_the_search(count: int):
    assert compare(range(count)) == {True, False}


def test_stale_read_is_found_among_a_million_operations():
    """Check a valid history of a writer and its readers, then the same with a stale read in the middle."""
    size = 1_000_000
    begin = np.arange(size, dtype=np.int64) * 10
    is_write = np.arange(size) % 4 == 0
    value = np.arange(size, dtype=np.int64) // 4 + 1
    columns = RegisterColumns(is_write, value, begin, begin + 25, np.zeros(size, np.int8))
    assert find_conflict(columns, 0) is None
    stale = value.copy()
    stale[500_003] -= 5
    conflict = find_conflict(RegisterColumns(is_write, stale, begin, begin + 25, columns.ending), 0)
    assert conflict is not None
    assert 500_003 in conflict.rows


def test_value_written_twice_is_rejected():
    history = [
        Operation(op_id=op_id, input=("write", value), output=None, invoke_ns=op_id, complete_ns=op_id)
        for op_id, value in enumerate([4, 5, 4])
    ]
    with pytest.raises(HistoryError, match=r"rows 0 and 2 both write 4"):
        find_conflict(columns_of(history), 0)
    with pytest.raises(HistoryError, match=r"row 1 writes 5, the initial value"):
        find_conflict(columns_of(history[:2]), 5)
