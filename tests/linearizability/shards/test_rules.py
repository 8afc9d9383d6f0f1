"""Rules of the format, checked while a layout is created by any number of tasks: the result is that of `validate`."""

import itertools

import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from linearizability.history.reader import HistoryError, open_history
from linearizability.history.validate import validate
from linearizability.shards import laying_out
from linearizability.shards.laying_out import lay_out
from linearizability.shards.rules import overlaps
from linearizability.shards.running import run_here
from tests.linearizability.history.foreign import operation, record, valid_tables, write_history
from tests.linearizability.history.test_validate import BROKEN, mutations

pytestmark = pytest.mark.sampled(3)

ROWS = st.sampled_from([1, 2, 3, 10**6])


def rejection(judge, run):
    try:
        judge(open_history(run))
    except HistoryError as error:
        return str(error)
    return None


def assert_rejected_as_by_validation(folder, tables, rows):
    """Assert that `lay_out` raises the error that `validate` raises, or none.

    :param rows: numbers of rows in a row group, in a task, in a share that is read for a second check, and in a part.
    """
    run = write_history(folder / "run", tables)
    for path in (run / "history").glob("*.parquet"):
        pq.write_table(pq.read_table(path), path, row_group_size=rows[0])
    expected = rejection(validate, run)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(laying_out, "_TASK_ROWS", rows[1])
        patch.setattr(laying_out, "SHARE_ROWS", rows[2])
        assert rejection(lambda history: lay_out(history, run_here, rows[3]), run) == expected
    assert (run / "history" / "_shards").exists() == (expected is None)


@settings(max_examples=30)
@given(tables=mutations(), rows=st.tuples(ROWS, ROWS, ROWS, ROWS))
@example(tables=valid_tables(), rows=(1, 1, 1, 1))
def test_layout_rejects_the_histories_that_validation_rejects(tmp_path_factory, tables, rows):
    assert_rejected_as_by_validation(tmp_path_factory.mktemp("mutated"), tables, rows)


@pytest.mark.parametrize("tables", [tables for tables, _ in BROKEN])
@pytest.mark.parametrize("rows", [1, 10**6])
def test_every_rule_is_checked(tmp_path, tables, rows):
    assert_rejected_as_by_validation(tmp_path, tables, (rows, rows, rows, rows))


@pytest.mark.parametrize("value", [100, 999])
@pytest.mark.parametrize("rows", [1, 10**6])
def test_two_names_with_one_topic_id_are_one_topic(tmp_path, value, rows):
    tables = valid_tables()
    renamed = {"topic": "orders-of-old", "topic_id": "ID-A", "partition": 0}
    tables["operations"].append(operation(8, 1, "produce", 90, 91))
    tables["records"].append(record(8, 0, "send", renamed, 3, value))
    assert_rejected_as_by_validation(tmp_path, tables, (rows, rows, rows, rows))
    assert (tmp_path / "run" / "history" / "_shards").exists() == (value == 999)


def test_valid_history_is_not_read_again(tmp_path, monkeypatch):
    monkeypatch.setattr(laying_out, "_validate", lambda *_: pytest.fail("read again"))
    lay_out(open_history(write_history(tmp_path / "run", valid_tables())), run_here)


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 8)).map(lambda span: (span[0], span[0] + span[1]))))
def test_overlaps_are_the_numbers_in_several_spans(spans):
    found = overlaps(spans)
    several = {number for number in range(40) if sum(low <= number <= high for low, high in spans) > 1}
    covered = {number for low, high in found for number in range(low, high + 1)}
    assert covered == several
    assert all(one[1] < other[0] for one, other in itertools.pairwise(found))
