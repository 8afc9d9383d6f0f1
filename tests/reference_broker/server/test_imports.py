"""Modules that a node's process imports: unneeded imports would delay the start."""

import subprocess
import sys

IMPORTED = (
    "import sys, reference_broker.server.__main__; print(*(name for name, module in sys.modules.items() if module))"
)


def imported() -> set[str]:
    return set(
        subprocess.run([sys.executable, "-c", IMPORTED], capture_output=True, text=True, check=True).stdout.split()
    )


def test_only_requests_that_every_start_sends_are_imported() -> None:
    requests = {
        name.split(".")[2] for name in imported() if name.startswith("kio.schema.") and name.endswith(".request")
    }
    assert requests == {"broker_registration", "broker_heartbeat"}


def test_neither_hypothesis_nor_ssl_is_imported() -> None:
    assert not {"hypothesis", "ssl"} & imported()
