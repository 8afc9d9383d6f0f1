"""Reasons why a target cannot run a fault, before anything starts."""

from types import SimpleNamespace

import pytest

from chaos.live.unsupported import unsupported_faults
from fixtures.faults import Kill, Timed, Upgrade
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
