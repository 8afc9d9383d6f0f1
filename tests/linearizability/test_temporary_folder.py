"""Temporary folders of ended processes are removed, unless they were kept or belong to another user."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from linearizability.temporary_folder import TemporaryFolder, remove_abandoned

PROGRAM = """
import os, signal, sys
from linearizability.temporary_folder import TemporaryFolder
folder = TemporaryFolder()
(folder.path / "inner").mkdir()
(folder.path / "inner" / "file").write_text("content")
{action}
print(folder.path, flush=True)
{end}
"""
KILL_ITSELF = "os.kill(os.getpid(), signal.SIGKILL)"


@pytest.fixture(autouse=True)
def parent(tmp_path, monkeypatch):
    """Yield the directory in which temporary folders are created during this test."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    remove_abandoned.cache_clear()
    yield tmp_path
    remove_abandoned.cache_clear()


def run_program(end, action=""):
    """Run a process that creates a folder; return the path of the folder.

    :param end: the last statement of the process, which ends it.
    :param action: a statement about `folder`, the TemporaryFolder of the process.
    """
    program = PROGRAM.format(action=action, end=end)
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False).stdout.strip()


def test_a_folder_is_removed_at_the_end_of_its_context_or_process(parent):
    with TemporaryFolder() as path:
        assert path.parent == parent
    run_program("sys.exit(1)")
    assert list(parent.iterdir()) == []


def test_the_next_process_removes_the_folder_of_a_killed_process(parent):
    abandoned = run_program(KILL_ITSELF)
    assert [str(path) for path in parent.iterdir()] == [abandoned]
    with TemporaryFolder() as path:
        assert list(parent.iterdir()) == [path]


def test_a_folder_stays_while_its_process_runs(parent):
    program = PROGRAM.format(action="", end="sys.stdin.read()")
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        folder = Path(process.stdout.readline().strip())
        remove_abandoned(str(parent))
        assert (folder / "inner" / "file").exists()
        process.kill()
    remove_abandoned.cache_clear()
    remove_abandoned(str(parent))
    assert list(parent.iterdir()) == []


def test_a_kept_folder_stays(parent):
    kept = run_program(KILL_ITSELF, action="folder.keep()")
    remove_abandoned(str(parent))
    assert [str(path) for path in parent.iterdir()] == [kept]


def test_symbolic_links_are_neither_followed_nor_removed_as_folders(parent):
    target = parent / "target"
    target.mkdir()
    (target / "file").touch()
    (parent / "kafkatrial-held-link").symlink_to(target)
    abandoned = run_program(KILL_ITSELF, action=f"(folder.path / 'link').symlink_to({str(target)!r})")
    remove_abandoned(str(parent))
    assert not os.path.lexists(abandoned)
    assert (target / "file").exists()
    assert (parent / "kafkatrial-held-link").is_symlink()


@pytest.mark.skipif(os.geteuid() != 0, reason="changing the owner of a directory needs root")
def test_folders_of_other_users_stay(parent):
    abandoned = run_program(KILL_ITSELF)
    os.chown(abandoned, 12345, 12345)
    remove_abandoned(str(parent))
    assert Path(abandoned).is_dir()
