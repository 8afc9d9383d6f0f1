"""Errors: one line and an exit code for each."""

import errno
import importlib
import resource
import shutil
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import duckdb
import pyarrow as pa
import pytest

from fixtures.targets.target import NotInstalledError, TargetError
from kafkatrial.__main__ import exit_code
from kafkatrial.errors import KNOWN_ERRORS, UsageError, exit_code_of, report
from kafkatrial.exit_codes import ExitCode
from linearizability.history.errors import HistoryNotWrittenError

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", KNOWN_ERRORS)
def test_every_known_error_exists(name):
    module, _, qualified = name.rpartition(".")
    assert issubclass(getattr(importlib.import_module(module), qualified), Exception)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (UsageError("x"), ExitCode.USAGE),
        (NotInstalledError("x"), ExitCode.USAGE),
        (TargetError("x"), ExitCode.INTERNAL),
        (type("Narrower", (NotInstalledError,), {})("x"), ExitCode.USAGE),
        (ValueError("x"), None),
    ],
)
def test_a_subclass_counts_as_its_nearest_known_base(error, code):
    assert exit_code_of(error) == code


def test_a_known_error_is_reported_in_one_line(capsys):
    assert report(NotInstalledError("not there:\n  run this")) == ExitCode.USAGE
    assert capsys.readouterr().err == "kafkatrial: not there: run this\n"


def test_an_unexpected_error_leaves_its_traceback_in_the_run_directory(tmp_path, capsys):
    try:
        raise KeyError("oops\nmore")
    except KeyError as error:
        code = report(error, tmp_path)
    kept = tmp_path / "internal-error.txt"
    assert code == ExitCode.INTERNAL
    assert capsys.readouterr().err.count("\n") == 1
    assert "Traceback" in kept.read_text()


def full_disk_error(directory, filename=None):
    return OSError(errno.ENOSPC, "No space left on device", filename and str(directory / filename))


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_reported_in_one_line_that_names_the_directory(tmp_path, capsys, number):
    assert report(OSError(number, "full", str(tmp_path / "history" / "records.parquet")), tmp_path) == ExitCode.INTERNAL
    assert capsys.readouterr().err.startswith(f"kafkatrial: no space is left in {tmp_path / 'history'}; ")
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_without_a_file_name_is_found(tmp_path, monkeypatch, capsys):
    """The error of a failed write has no file name."""
    (tmp_path / "full").mkdir()
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path / "full"))
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=0 if path.name == "full" else 1 << 40))
    report(full_disk_error(tmp_path), tmp_path)
    assert f"no space is left in {tmp_path / 'full'}; " in capsys.readouterr().err


@pytest.mark.parametrize("out", [["--out", "full/new"], ["--out=full/new"]])
def test_a_full_disk_under_the_output_directory_is_named(tmp_path, monkeypatch, capsys, out):
    """Regression: the directory of `--out` was not among the directories that are searched for the full disk."""
    (tmp_path / "full").mkdir()
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=0 if path.name == "full" else 1 << 40))

    def run_command(arguments):
        raise full_disk_error(tmp_path)

    monkeypatch.setattr("kafkatrial.app.run_command", run_command)
    assert exit_code(["chaos", *out]) == ExitCode.INTERNAL
    expected = f"kafkatrial: no space is left in {tmp_path / 'full'}; free some, or name another directory\n"
    assert capsys.readouterr().err == expected


def test_a_full_disk_behind_another_error_is_found(tmp_path, capsys):
    try:
        try:
            raise full_disk_error(tmp_path, "file")
        except OSError:
            raise ValueError("could not be written") from None
    except ValueError as error:
        report(error, tmp_path)
    assert f"no space is left in {tmp_path}; " in capsys.readouterr().err


@pytest.mark.parametrize("kind", [HistoryNotWrittenError, RuntimeError])
def test_a_full_disk_that_cannot_be_found_is_not_guessed(tmp_path, monkeypatch, capsys, kind):
    """The message of a known error names the directory; any other error only shows that a disk is full."""
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=1 << 40))
    error = kind("/data/run: cannot sort the history by topic partition: no space")
    error.__context__ = full_disk_error(tmp_path)
    assert report(error, tmp_path) == ExitCode.INTERNAL
    known = kind is HistoryNotWrittenError
    expected = str(error) if known else "no space is left on a device; free some, or name another directory"
    assert capsys.readouterr().err == f"kafkatrial: {expected}\n"


def test_no_temporary_directory_is_reported_in_one_line(capsys):
    report(FileNotFoundError(errno.ENOENT, "No usable temporary directory found in ['/tmp', '/']"))
    assert capsys.readouterr().err.startswith("kafkatrial: No usable temporary directory found in ['/tmp', '/']; free ")


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        pa.ArrowMemoryError("malloc of size 64 failed"),
        duckdb.OutOfMemoryException("Out of Memory Error: could not allocate block\nmore"),
        OSError(errno.ENOMEM, "Cannot allocate memory"),
        RuntimeError("can't start new thread"),
        pa.ArrowException("Unknown error: Failed to launch worker thread: Resource temporarily unavailable"),
    ],
)
def test_too_little_memory_is_reported_in_one_line(error, capsys, tmp_path):
    assert report(error, tmp_path) == ExitCode.INTERNAL
    line = capsys.readouterr().err
    assert line.startswith("kafkatrial: out of memory")
    assert line.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("mebibytes", [200, 300, 400])
def test_a_memory_limit_is_reported_in_one_line_and_not_as_a_violation(mebibytes):
    limit = partial(resource.setrlimit, resource.RLIMIT_AS, (mebibytes << 20, mebibytes << 20))
    command = [sys.executable, "-m", "kafkatrial", "check", "examples/histories/lost-write"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, preexec_fn=limit)
    assert done.returncode == ExitCode.INTERNAL
    assert done.stderr.startswith(f"kafkatrial: out of memory (this process may use {mebibytes} MiB, by ulimit -v)")
    assert done.stderr.count("\n") == 1


def test_an_error_that_cannot_be_saved_is_still_one_line(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "absent"))
    assert report(KeyError("oops")) == ExitCode.INTERNAL
    assert "(traceback not saved: " in capsys.readouterr().err


def test_a_python_without_the_dependencies_is_reported_in_one_line_with_the_command_that_installs_them():
    command = [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{_RUN_CHECK}"]
    process = subprocess.run(command, capture_output=True, text=True, check=False)  # `-S`: without site-packages
    assert process.returncode == ExitCode.INTERNAL
    assert process.stderr.startswith(f"kafkatrial: Python package 'typer' is not installed for {sys.executable}; ")
    assert process.stderr.count("\n") == 1
    assert "make .venv/.synced" in process.stderr


_RUN_CHECK = "from kafkatrial.__main__ import main; main(['check', 'x'])"


def test_a_missing_module_of_ours_is_an_internal_error(capsys, tmp_path):
    assert report(ModuleNotFoundError("No module named 'chaos.x'", name="chaos.x"), tmp_path) == ExitCode.INTERNAL
    assert "internal error: ModuleNotFoundError" in capsys.readouterr().err


def test_every_exit_code_has_a_meaning():
    assert all(code.meaning for code in ExitCode)
