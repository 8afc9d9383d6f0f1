"""The simulated disk: after a power failure, every content that a page cache may leave is possible, and no other."""

import errno
from dataclasses import dataclass
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reference_broker.core.disk import MemoryDisk
from reference_broker.simulation.disk import SECTOR_BYTES, Failure, PowerFailureError, SimulatedDisk

PATHS = ["top", "d/a", "d/b", "e/a"]
DIRECTORIES = ["", "d", "e"]
paths = st.sampled_from(PATHS)
contents = st.integers(0, 3 * SECTOR_BYTES).flatmap(
    lambda size: st.integers(1, 255).map(lambda byte: bytes([byte]) * size)
)
operations = st.one_of(
    st.tuples(st.just("append"), paths, contents),
    st.tuples(st.just("write"), paths, contents),
    st.tuples(st.just("replace"), paths, contents),
    st.tuples(st.just("truncate"), paths, st.integers(0, 2 * SECTOR_BYTES)),
    st.tuples(st.just("delete"), paths),
    st.tuples(st.just("flush"), paths),
    st.tuples(st.just("flush_directory"), st.sampled_from(DIRECTORIES)),
    st.tuples(st.just("delete_directory"), st.sampled_from(DIRECTORIES[1:])),
)


def do(disk: MemoryDisk, name: str, path: str, *arguments: object) -> None:
    """Run an operation as the broker does: a directory is created before its files."""
    directory = path.rpartition("/")[0]
    if name in {"append", "write", "replace"} and directory:
        disk.make_directory(directory)
    if disk.exists(path) or name in {"append", "write", "replace", "flush_directory"}:
        getattr(disk, name)(path, *arguments)


@settings(max_examples=200)
@given(st.lists(operations, max_size=30))
def test_simulated_disk_without_power_failures_behaves_like_a_memory_disk(actions):
    simulated, plain = SimulatedDisk(), MemoryDisk()
    for action in actions:
        do(simulated, *action)
        do(plain, *action)
    assert simulated.files == plain.files
    assert {name: simulated.list(name) for name in DIRECTORIES} == {name: plain.list(name) for name in DIRECTORIES}


@dataclass
class Inode:
    """The current and the flushed content of a file. The first `kept` bytes have not changed since the last flush."""

    now: bytes = b""
    durable: bytes = b""
    kept: int = 0

    def may_leave(self, found: bytes) -> bool:
        """Whether a power failure may leave the content `found`.

        It may leave the flushed content, or a prefix of the current content with at least the kept bytes. One sector of
        this prefix after the kept bytes may be zeros.
        """
        if found == self.durable:
            return self.durable == self.now or not self.now.startswith(self.durable) or len(found) >= self.kept
        end = len(found)
        if not self.kept <= end <= len(self.now):
            return False
        sectors = range(0, end, SECTOR_BYTES)
        wrong = [at for at in sectors if found[at : at + SECTOR_BYTES] != self.now[:end][at : at + SECTOR_BYTES]]
        return not wrong or (
            len(wrong) == 1
            and wrong[0] >= self.kept
            and found[wrong[0] : wrong[0] + SECTOR_BYTES] == bytes(SECTOR_BYTES)
        )


class Oracle:
    """Simple model of the possible contents after a power failure.

    :ivar names: the files by path.
    :ivar durable_names: the files by path if no unflushed creation or deletion survives.
    :ivar here: the existing directories.
    :ivar certain: the directories that exist after any power failure.
    """

    def __init__(self) -> None:
        self.names: dict[str, Inode] = {}
        self.durable_names: dict[str, Inode] = {}
        self.certain: set[str] = {""}
        self.here: set[str] = {""}

    def do(self, name: str, path: str, *arguments: object) -> None:
        directory = path.rpartition("/")[0]
        file = self.names.get(path)
        match name, arguments:
            case "append", (data,):
                self._make(directory)
                file = self.names.setdefault(path, Inode())
                file.now += data
            case "write", (data,):
                self._make(directory)
                self.names[path] = Inode(data)
            case "replace", (data,):
                self._make(directory)
                self.names[path] = self.durable_names[path] = Inode(data, data, len(data))
                self.certain.add(directory)
            case "truncate", (size,) if file:
                file.now = file.now[:size]
                file.kept = min(file.kept, len(file.now))
            case "delete", () if file:
                del self.names[path]
            case "flush", () if file:
                file.durable, file.kept = file.now, len(file.now)
            case "flush_directory", ():
                inside = {name: found for name, found in self.names.items() if name.rpartition("/")[0] == path}
                self._remove(path)
                self.durable_names |= inside
                self.certain.add(path)
                if not path:
                    for gone in self.certain - self.here:
                        self._remove(gone)
                    self.certain = set(self.here)
            case "delete_directory", ():
                self.names = {name: found for name, found in self.names.items() if name.rpartition("/")[0] != path}
                self.here.discard(path)

    def _make(self, directory: str) -> None:
        if directory not in self.here:
            self._remove(directory)
            self.certain.discard(directory)
            self.here.add(directory)

    def _remove(self, directory: str) -> None:
        gone = [name for name in self.durable_names if name.rpartition("/")[0] == directory]
        for name in gone:
            del self.durable_names[name]

    def error(self, files: dict[str, bytes]) -> str | None:
        """Return why these files are impossible after a power failure; None if they are possible."""
        for path in PATHS:
            candidates = self.durable_names.get(path), self.names.get(path)
            directory = path.rpartition("/")[0]
            is_certain = candidates[0] is candidates[1] and directory in self.certain and directory in self.here
            if path not in files:
                if is_certain and candidates[0] is not None:
                    return f"{path} is missing"
            elif not any(inode is not None and inode.may_leave(files[path]) for inode in candidates):
                return f"{path}: {files[path]!r}"
        return None


@settings(max_examples=400)
@given(st.lists(operations, max_size=25), st.integers(0, 2**32))
def test_power_failure_changes_only_unflushed_data(actions, seed):
    disk, oracle = SimulatedDisk(), Oracle()
    for action in actions:
        if action[0] == "flush_directory" and action[1] and not disk.exists(action[1]):
            continue
        do(disk, *action)
        oracle.do(*action)
    disk.cut_power(Random(seed))
    left = {path: bytes(content) for path, content in disk.files.items()}
    assert oracle.error(left) is None
    for directory in DIRECTORIES[1:]:
        assert not any(path.startswith(f"{directory}/") for path in left) or disk.exists(directory)
    disk.cut_power(Random(seed + 1))
    assert {path: bytes(content) for path, content in disk.files.items()} == left, "remaining data is durable"


def outcomes(prepare, path="d/a", seeds=300):
    """Return the contents of a file after power failures with many seeds; None stands for a missing file."""
    found = set()
    for seed in range(seeds):
        disk = SimulatedDisk()
        disk.make_directory("d")
        prepare(disk)
        disk.cut_power(Random(seed))
        found.add(bytes(disk.files[path]) if disk.exists(path) else None)
    return found


def flushed(disk, data):
    disk.append("d/a", data)
    disk.flush("d/a")
    disk.flush_directory("d")


def test_any_prefix_of_unflushed_appends_may_remain():
    def prepare(disk):
        flushed(disk, b"ab")
        disk.append("d/a", b"cde")

    assert outcomes(prepare) == {b"ab", b"abc", b"abcd", b"abcde"}


def test_a_sector_in_the_middle_may_be_missing():
    sector = b"x" * SECTOR_BYTES

    def prepare(disk):
        flushed(disk, b"")
        disk.append("d/a", 3 * sector)

    found = outcomes(prepare, seeds=2_000)
    assert bytes(SECTOR_BYTES) + sector in {data[: 2 * SECTOR_BYTES] for data in found}


def test_unflushed_truncation_may_be_undone():
    def prepare(disk):
        flushed(disk, b"abcd")
        disk.truncate("d/a", 2)
        disk.append("d/a", b"X")

    assert outcomes(prepare) == {b"abcd", b"ab", b"abX"}


def test_unflushed_write_may_leave_the_old_content_or_a_prefix_of_the_new():
    def prepare(disk):
        flushed(disk, b"old")
        disk.write("d/a", b"new")

    assert outcomes(prepare) == {b"old", b"", b"n", b"ne", b"new"}


def test_replaced_content_is_durable():
    assert outcomes(lambda disk: disk.replace("d/a", b"new")) == {b"new"}


def test_names_need_a_flush_of_their_directory():
    def prepare(disk):
        disk.append("d/a", b"a")
        disk.flush("d/a")

    assert outcomes(prepare) == {b"a", None}
    assert outcomes(lambda disk: flushed(disk, b"a")) == {b"a"}


@pytest.mark.parametrize("is_flushed", [True, False])
def test_deletion_of_a_directory_may_be_undone(is_flushed):
    def prepare(disk):
        flushed(disk, b"a")
        disk.flush_directory("")
        disk.delete_directory("d")
        if is_flushed:
            disk.flush_directory("")

    assert outcomes(prepare) == ({None} if is_flushed else {b"a", None})


def test_directory_that_does_not_exist_cannot_be_deleted():
    with pytest.raises(FileNotFoundError):
        SimulatedDisk().delete_directory("d")


# Power failure during an operation


@pytest.mark.parametrize("name", ["append", "write", "replace"])
def test_interrupted_operation_may_be_applied_or_not(name):
    def prepare(disk):
        flushed(disk, b"a")
        disk.crashes_after = 0
        with pytest.raises(PowerFailureError):
            getattr(disk, name)("d/a", b"bc")

    left = outcomes(prepare)
    whole = b"abc" if name == "append" else b"bc"
    assert {b"a", whole} <= left
    assert name != "replace" or left == {b"a", b"bc"}, "replace is atomic"


def test_power_fails_after_the_given_number_of_changes():
    disk = SimulatedDisk()
    disk.crashes_after = 2
    disk.append("a", b"1")
    disk.flush("a")
    with pytest.raises(PowerFailureError):
        disk.append("a", b"2")
    disk.cut_power(Random(0))
    disk.append("a", b"3")


# Errors, free space, delays


@pytest.mark.parametrize("operation", ["append", "read", "flush", "replace", "write", "truncate", "delete"])
def test_an_injected_failure_changes_nothing(operation):
    disk = SimulatedDisk()
    disk.make_directory("d")
    arguments = {"append": (b"b",), "read": (0, 1), "replace": (b"b",), "write": (b"b",), "truncate": (0,)}
    for path in ("d/a", "d/b"):
        disk.append(path, b"a")
    failure = Failure(errno.EIO, operation, "a")
    disk.failures.append(failure)
    with pytest.raises(OSError, match="injected") as raised:
        getattr(disk, operation)("d/a", *arguments.get(operation, ()))
    assert raised.value.errno == errno.EIO
    assert disk.files["d/a"] == b"a"
    getattr(disk, operation)("d/b", *arguments.get(operation, ()))
    disk.failures.remove(failure)
    getattr(disk, operation)("d/a", *arguments.get(operation, ()))


def test_full_disk_rejects_writes_until_space_is_freed():
    disk = SimulatedDisk()
    disk.free_bytes = 5
    disk.append("a", b"123")
    with pytest.raises(OSError, match="injected") as raised:
        disk.append("a", b"456")
    assert raised.value.errno == errno.ENOSPC
    disk.truncate("a", 1)
    disk.append("a", b"4567")
    assert (disk.files["a"], disk.free_bytes) == (b"14567", 0)
    disk.free_bytes = None
    disk.append("a", b"8")


def test_flushes_take_time():
    disk = SimulatedDisk()
    disk.flush_ms = 7
    disk.append("a", b"1")
    assert disk.take_delay_ms() == 0
    disk.flush("a")
    disk.flush_directory("")
    assert (disk.take_delay_ms(), disk.take_delay_ms()) == (14, 0)


# Damage of stored data


def test_damage_is_durable():
    disk = SimulatedDisk()
    for path in ("flipped", "short", "gone"):
        disk.append(path, bytes(100))
    disk.flush("flipped", "short", "gone")
    disk.flush_directory("")
    disk.flip_bit("flipped", Random(1))
    disk.cut_short("short", Random(1))
    disk.lose("gone")
    for _ in range(2):
        assert sum(byte.bit_count() for byte in disk.files["flipped"]) == 1
        assert len(disk.files["short"]) < 100
        assert not disk.exists("gone")
        disk.cut_power(Random(2))
