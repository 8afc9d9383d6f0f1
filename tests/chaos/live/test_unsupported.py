"""Reasons why a target cannot run a fault, before anything starts."""

from types import SimpleNamespace

import pytest

from chaos.live.unsupported import required_capabilities, unsupported_faults
from fixtures.faults import Kill, PowerCut, Timed, Upgrade
from fixtures.targets.target import Capability

KAFKA = SimpleNamespace(
    name="apache-kafka:3.9.2", version="3.9.2", capabilities={Capability.UPGRADES, Capability.PROCESS_CONTROL}
)


@pytest.mark.parametrize(
    ("fault", "reasons"),
    [
        (Kill(1), []),
        (Upgrade(1, "4.3.1"), []),
        (Upgrade(1, "3.9.2"), ["apache-kafka:3.9.2 already has that version; the upgrade would only restart it"]),
    ],
)
def test_an_upgrade_to_the_same_version_is_rejected(fault, reasons):
    assert list(unsupported_faults(KAFKA, (Timed(0, fault),)).values()) == reasons


def test_a_target_without_upgrades_is_rejected_for_any_version():
    reference = SimpleNamespace(name="reference", version=None, capabilities=set())
    assert list(unsupported_faults(reference, (Timed(0, Upgrade(1, "4.3.1")),)).values()) == [
        "reference has no upgrades"
    ]


def test_a_power_cut_in_the_middle_of_a_write_needs_a_disk_that_counts_writes():
    real_disk = SimpleNamespace(name="reference", version=None, capabilities={Capability.POWER_CUTS})
    between, inside = PowerCut(), PowerCut(after_writes=8)
    assert unsupported_faults(real_disk, (Timed(0, between), Timed(0, inside))).keys() == {inside}
    assert required_capabilities((Timed(0, between), Timed(0, inside))) == {
        Capability.POWER_CUTS,
        Capability.DISK_FAULTS,
    }
