"""Armed power cut of the simulation: the given number of changes completes before it, as on a disk in FUSE."""

from types import SimpleNamespace

import pytest

from chaos.simulation.simulated_controls import SimulatedDisks
from reference_broker.simulation.disk import PowerFailureError, SimulatedDisk


def test_the_power_is_cut_during_the_change_after_the_given_number_of_changes():
    disk = SimulatedDisk()
    disks = SimulatedDisks(SimpleNamespace(machines={1: SimpleNamespace(node=object(), disk=disk)}))
    disks.arm_power_cut(1, 2)
    disk.append("a", b"1")
    disk.append("a", b"2")
    with pytest.raises(PowerFailureError):
        disk.append("a", b"3")
