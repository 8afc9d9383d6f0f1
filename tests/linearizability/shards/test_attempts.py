"""Two concurrent attempts of one task, as in Spark (`spark.speculation`), do not affect each other."""

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


def run_twice(tasks):
    """Run each task twice; the second attempt is killed before its end."""
    for task in tasks:
        yield task()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(RunWriter, "close", lambda _: kill())
            patch.setattr(pq, "write_table", lambda _, path, **options: kill(path))
            patch.setattr(Path, "write_text", lambda path, text: kill(path))
            patch.setattr(Path, "unlink", lambda *_, **options: None)
            with contextlib.suppress(KilledError):
                task()


class KilledError(Exception):
    """Simulated kill of an attempt."""


def kill(path=None):
    if path is not None:
        path.write_bytes(b"half")
    raise KilledError


def test_killed_second_attempt_has_no_effect(tmp_path):
    run = tmp_path / "run"
    synthesize(run, Request(4000, 3, 0.5, ["duplicate", "lost-write"]), lambda _: None)
    history = open_history(run)
    layout = lay_out(history, run_twice, 500)
    assert judge_layout(history, layout, run_twice) == judge(run)
    leftover = [path for path in layout.folder.rglob("*") if path.is_file() and path.read_bytes() == b"half"]
    assert leftover
    for path in leftover:
        path.unlink()
    assert current_layout(history) is not None
    assert judge_layout(history, layout, run_twice) == judge(run)
    assert {path.suffix for path in layout.folder.rglob("*") if path.is_file()} == {".parquet", ".json"}
    assert (layout.folder / MANIFEST).exists()
