"""Copy of a simulated disk as a directory: changes in it are written back to the disk."""

import shutil
from random import Random

import pytest

from chaos.simulation.disk_copy import DiskCopy
from reference_broker.simulation.disk import SimulatedDisk


@pytest.fixture
def disk():
    disk = SimulatedDisk()
    disk.make_directory("t-0")
    disk.append("t-0/00.log", b"records")
    disk.append("t-0/00.index", b"index")
    disk.replace("checkpoint", b"1")
    return disk


@pytest.fixture
def copy():
    copy = DiskCopy()
    yield copy
    copy.close()
    assert not copy.path.exists()


def files_of(copy):
    return {str(path.relative_to(copy.path)): path.read_bytes() for path in copy.path.rglob("*") if path.is_file()}


def test_a_copy_has_the_state_of_the_disk_at_its_time(disk, copy):
    copy.show(disk)
    assert files_of(copy) == {"t-0/00.log": b"records", "t-0/00.index": b"index", "checkpoint": b"1"}
    disk.append("t-0/00.log", b" more")
    disk.delete("checkpoint")
    disk.make_directory("u-0")
    copy.show(disk)
    assert files_of(copy) == {"t-0/00.log": b"records more", "t-0/00.index": b"index"}
    assert (copy.path / "u-0").is_dir()
    disk.delete_directory("t-0")
    copy.show(disk)
    assert [path.name for path in copy.path.iterdir()] == ["u-0"]


def test_damage_is_written_back_to_the_disk(disk, copy):
    copy.show(disk)
    (copy.path / "t-0/00.index").unlink()
    (copy.path / "checkpoint").unlink()
    with (copy.path / "t-0/00.log").open("ab") as log:
        log.write(b"garbage")
    copy.copy_back(disk)
    assert dict(disk.files) == {"t-0/00.log": b"recordsgarbage"}
    disk.flush_directory("")
    disk.cut_power(Random(1))
    assert dict(disk.files) == {"t-0/00.log": b"recordsgarbage"}
    disk.replace("checkpoint", b"1")
    copy.show(disk)
    assert files_of(copy) == {"t-0/00.log": b"recordsgarbage", "checkpoint": b"1"}


def test_a_directory_deleted_from_the_copy_is_deleted_from_the_disk(disk, copy):
    copy.show(disk)
    shutil.rmtree(copy.path / "t-0")
    copy.copy_back(disk)
    assert disk.list("") == ["checkpoint"]


def test_unchanged_files_are_not_more_durable_than_before(disk, copy):
    copy.show(disk)
    copy.copy_back(disk)
    assert disk.cut_power(Random(1)) > 0
    assert disk.files["checkpoint"] == b"1"
