"""A task may run twice, as in Spark (`spark.speculation`): an attempt that is killed does not affect the other one."""

import contextlib
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from linearizability.check import judge
from linearizability.history.reader import open_history
from linearizability.shards.engine import judge_layout
from linearizability.shards.laying_out import lay_out
from linearizability.shards.manifest import MANIFEST, current_layout
from linearizability.shards.runs import RunWriter
from linearizability.synthetic.writing import Request, synthesize

INCOMPLETE = b"half"


class KilledError(Exception):
    """Simulated kill of an attempt."""


def kill(path=None):
    """Leave an incomplete file if there is a path, and end the attempt."""
    if path is not None:
        path.write_bytes(INCOMPLETE)
    raise KilledError


def run_twice(tasks):
    """Run each task twice. The second attempt is killed while it writes a file, and cannot remove it."""
    for task in tasks:
        yield task()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(RunWriter, "close", lambda _: kill())
            patch.setattr(pq, "write_table", lambda _, path, **options: kill(path))
            patch.setattr(Path, "write_text", lambda path, text: kill(path))
            patch.setattr(Path, "unlink", lambda *_, **options: None)
            with contextlib.suppress(KilledError):
                task()


def test_killed_second_attempt_has_no_effect(tmp_path):
    run = tmp_path / "run"
    request = Request(records=4000, partitions=3, skew=0.5, planted=["duplicate", "lost-write"])
    synthesize(run, request, lambda _: None)
    history = open_history(run)
    layout = lay_out(history, run_twice, part_rows=500)
    assert judge_layout(history, layout, run_twice) == judge(run)
    incomplete = [path for path in layout.folder.rglob("*") if path.is_file() and path.read_bytes() == INCOMPLETE]
    assert incomplete, "no attempt was killed"
    for path in incomplete:
        path.unlink()
    assert current_layout(history) is not None
    assert judge_layout(history, layout, run_twice) == judge(run)
    assert {path.suffix for path in layout.folder.rglob("*") if path.is_file()} == {".parquet", ".json"}
    assert (layout.folder / MANIFEST).exists()
