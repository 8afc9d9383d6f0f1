"""Directory of a run: its default name, and one line for a directory that cannot be used."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from kafkatrial.errors import UsageError
from kafkatrial.run_directory import make_run_directory

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def test_the_default_name_has_the_time_and_the_seed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_dir = make_run_directory(None, now=NOW, seed=9)
    assert run_dir == Path(".kafkatrial/runs/20260102T030405-9")
    assert run_dir.is_dir()


def test_an_empty_directory_of_the_user_is_used(tmp_path):
    assert make_run_directory(tmp_path, now=NOW, seed=9) == tmp_path


def test_nothing_is_overwritten(tmp_path):
    (tmp_path / "results.json").touch()
    with pytest.raises(UsageError, match="is not empty"):
        make_run_directory(tmp_path, now=NOW, seed=9)


def test_a_path_that_cannot_be_created_is_named(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match=r"cannot make the run directory .*file"):
        make_run_directory(tmp_path / "file" / "run", now=NOW, seed=9)
