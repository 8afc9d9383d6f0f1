"""Temporary folders: removed after their process has ended; those of running processes and other users are kept."""

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
{then}
print(folder.path, flush=True)
{end}
"""


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """Yield the folder for the temporary files of this test."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    remove_abandoned.cache_clear()
    yield tmp_path
    remove_abandoned.cache_clear()


def run(end, then=""):
    program = PROGRAM.format(end=end, then=then)
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False).stdout.strip()


KILLED = "os.kill(os.getpid(), signal.SIGKILL)"


def test_a_folder_is_removed_with_its_context_and_with_the_process(place):
    with TemporaryFolder() as path:
        assert path.parent == place
    run("sys.exit(1)")
    assert list(place.iterdir()) == []


def test_folder_of_a_killed_process_is_removed_by_the_next_start(place):
    left = run(KILLED)
    assert [str(path) for path in place.iterdir()] == [left]
    with TemporaryFolder() as path:
        assert list(place.iterdir()) == [path]


def test_folders_of_running_processes_stay(place):
    program = PROGRAM.format(end="sys.stdin.read()", then="")
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as living:
        held = living.stdout.readline().strip()
        remove_abandoned(str(place))
        assert (place / held / "inner" / "file").exists()
        living.kill()
    remove_abandoned.cache_clear()
    remove_abandoned(str(place))
    assert list(place.iterdir()) == []


def test_a_kept_folder_stays(place):
    kept = run(KILLED, then="folder.keep()")
    remove_abandoned(str(place))
    assert [str(path) for path in place.iterdir()] == [kept]


def test_links_are_neither_followed_nor_removed(place):
    theirs = place / "theirs"
    theirs.mkdir()
    (theirs / "file").touch()
    (place / "kafkatrial-held-link").symlink_to(theirs)
    left = run(KILLED, then=f"(folder.path / 'link').symlink_to({str(theirs)!r})")
    remove_abandoned(str(place))
    assert not os.path.lexists(left)
    assert (theirs / "file").exists()
    assert (place / "kafkatrial-held-link").is_symlink()


@pytest.mark.skipif(os.geteuid() != 0, reason="changing the owner of a directory needs root")
def test_folders_of_other_users_stay(place):
    left = run(KILLED)
    os.chown(left, 12345, 12345)
    remove_abandoned(str(place))
    assert Path(left).is_dir()
