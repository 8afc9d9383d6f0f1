"""Disk faults of the simulation act as on a disk in FUSE: an armed power cut, and faults that overlap."""

from types import SimpleNamespace

import pytest

from chaos.simulation.simulated_controls import SimulatedDisks
from fixtures.disk.faults import DiskFault, DiskOperation
from reference_broker.simulation.disk import PowerFailureError, SimulatedDisk


@pytest.fixture
def disk():
    return SimulatedDisk()


@pytest.fixture
def disks(disk):
    return SimulatedDisks(SimpleNamespace(machines={1: SimpleNamespace(node=object(), disk=disk)}))


def test_the_power_is_cut_during_the_change_after_the_given_number_of_changes(disk, disks):
    disks.arm_power_cut(1, 2)
    disk.append("a", b"1")
    disk.append("a", b"2")
    with pytest.raises(PowerFailureError):
        disk.append("a", b"3")


def test_the_newest_of_several_limits_of_the_free_space_applies(disk, disks):
    first, second, third = disks.fill(1, 100), disks.fill(1, 200), disks.fill(1, 300)
    limits = []
    for change in (first.__enter__, second.__enter__, third.__enter__):
        change()
        limits.append(disk.free_bytes)
    for limit in (third, first, second):
        limit.__exit__(None, None, None)
        limits.append(disk.free_bytes)
    assert limits == [100, 200, 300, 200, 200, None]


def test_the_end_of_an_older_limit_frees_no_space(disk, disks):
    first, second = disks.fill(1, 100), disks.fill(1, 200)
    first.__enter__()
    second.__enter__()
    disk.append("a", b"12345")
    first.__exit__(None, None, None)
    assert disk.free_bytes == 195
    second.__exit__(None, None, None)


def test_delays_of_flushes_add_up(disk, disks):
    flushes = [DiskFault(frozenset({DiskOperation.FLUSH}), error=None, delay_ms=delay_ms) for delay_ms in (100, 20)]
    first, second = (disks.inject(1, slow) for slow in flushes)
    delays = []
    for change in (first.__enter__, second.__enter__):
        change()
        delays.append(disk.flush_ms)
    for slow in (first, second):
        slow.__exit__(None, None, None)
        delays.append(disk.flush_ms)
    assert delays == [100, 120, 20, 0]


@pytest.mark.parametrize("error", [None, "EIO"], ids=["slow flushes", "errors"])
def test_a_fault_ends_with_an_exception_in_its_context(error, disk, disks):
    fault = DiskFault(frozenset({DiskOperation.FLUSH}), error=error, delay_ms=100)
    with pytest.raises(TimeoutError), disks.inject(1, fault):
        raise TimeoutError
    assert (disk.flush_ms, disk.failures) == (0, [])
