"""`FileDisk` compared with `MemoryDisk`, and its behaviour on failures."""

import os
import resource
import shutil
import signal
from contextlib import suppress
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from reference_broker.core.disk import MemoryDisk
from reference_broker.server.file_disk import FileDisk

PATHS = st.sampled_from(["a", "b", "d/a", "d/b", "d/c"])
DATA = st.binary(max_size=20)


class Disks(RuleBasedStateMachine):
    """State machine that runs the same operations on both disks. `FileDisk` has a limit of two open files."""

    root = None

    def __init__(self):
        super().__init__()
        directory = self.root / str(len(list(self.root.iterdir())))
        directory.mkdir()
        self.disks = (MemoryDisk(), FileDisk(directory, open_files_max=2))
        for disk in self.disks:
            disk.make_directory("d")

    def both(self, operation):
        """Run an operation on both disks, and assert that the results are equal."""
        results = []
        for disk in self.disks:
            try:
                results.append(operation(disk))
            except FileNotFoundError:
                results.append("missing")
        assert results[0] == results[1]

    @rule(path=PATHS, parts=st.lists(DATA, max_size=3))
    def append(self, path, parts):
        self.both(lambda disk: disk.append(path, *parts))

    @rule(path=PATHS, data=DATA)
    def replace(self, path, data):
        self.both(lambda disk: disk.replace(path, data))

    @rule(path=PATHS, data=DATA)
    def write(self, path, data):
        self.both(lambda disk: disk.write(path, data))

    @rule(path=PATHS, size=st.integers(0, 30))
    def truncate(self, path, size):
        sizes = [disk.size(path) for disk in self.disks if disk.exists(path)]
        self.both(lambda disk: disk.truncate(path, min([size, *sizes])))

    @rule(path=PATHS)
    def delete(self, path):
        self.both(lambda disk: disk.delete(path))

    @rule()
    def delete_directory(self):
        for disk in self.disks:
            disk.delete_directory("d")
            assert not disk.exists("d")
            disk.make_directory("d")

    @rule(path=PATHS, position=st.integers(0, 40), length=st.integers(0, 40))
    def read(self, path, position, length):
        self.both(lambda disk: disk.read(path, position, length))

    @rule(paths=st.lists(PATHS, max_size=3))
    def flush(self, paths):
        self.both(lambda disk: disk.flush(*paths))
        self.both(lambda disk: disk.flush_directory(*{path.rpartition("/")[0] for path in paths}))

    @invariant()
    def files_are_equal(self):
        for directory in ("", "d"):
            self.both(lambda disk: disk.list(directory))  # noqa: B023 - called at once
        for path in ("a", "b", "d/a", "d/b", "d/c"):
            self.both(lambda disk: disk.exists(path) and disk.read(path, 0, disk.size(path)))  # noqa: B023

    def teardown(self):
        self.disks[1].close()


def test_file_disk_behaves_like_memory_disk(tmp_path):
    Disks.root = tmp_path
    run_state_machine_as_test(Disks, settings=settings(max_examples=25, stateful_step_count=25))


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_open_files_do_not_exceed_the_limit(tmp_path):
    disk = FileDisk(tmp_path, open_files_max=3)
    before = open_files()
    for number in range(20):
        disk.append(str(number), b"x")
    assert open_files() - before == 3
    disk.close()
    assert open_files() == before


@pytest.mark.parametrize("empty", [0, 2000])
def test_more_parts_than_one_write_can_have_are_appended(empty, tmp_path):
    disk = FileDisk(tmp_path)
    disk.append("a", b"begin")
    parts = [b""] * empty + [bytes([number % 256]) for number in range(3000)]
    disk.append("a", *parts)
    assert disk.read("a", 0, 5000) == b"begin" + b"".join(parts)
    disk.close()


def test_partial_write_is_truncated(tmp_path):
    """The file-size limit of the process simulates a full disk."""
    disk = FileDisk(tmp_path)
    disk.append("a", b"whole")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    previous = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8, limits[1]))
    try:
        with pytest.raises(OSError, match="large"):
            disk.append("a", b"to", b"rn in two")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, previous)
    assert disk.read("a", 0, 100) == b"whole"
    disk.close()


def test_remains_of_an_interrupted_deletion_do_not_prevent_the_next(tmp_path, monkeypatch):
    disk = FileDisk(tmp_path)
    for attempt in range(2):
        disk.make_directory("orders-0")
        disk.append("orders-0/a", b"x")
        with monkeypatch.context() as patch:
            patch.setattr("shutil.rmtree", crash if attempt == 0 else shutil.rmtree)
            with suppress(KeyboardInterrupt):
                disk.delete_directory("orders-0")
    assert not [name for name in disk.list("") if name.startswith("orders")]
    disk.close()


def crash(*_, ignore_errors=False):
    if not ignore_errors:
        raise KeyboardInterrupt


def test_failed_replace_keeps_the_old_content(tmp_path, monkeypatch):
    disk = FileDisk(tmp_path)
    disk.replace("a", b"old")

    def fail(*_):
        raise OSError("no fsync")

    monkeypatch.setattr(os, "fsync", fail)
    with suppress(OSError):
        disk.replace("a", b"new")
    assert disk.read("a", 0, 10) == b"old"
    disk.close()


def test_path_outside_the_log_directory_is_rejected(tmp_path):
    for path in ("../a", "/a", "d/../../a"):
        with pytest.raises(AssertionError):
            FileDisk(tmp_path).exists(path)
