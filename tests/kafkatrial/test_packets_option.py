"""`--packets` on a machine without network namespaces; `fixtures/network/test_packets.py` tests it with them."""

import pytest

from fixtures.network import namespace
from fixtures.targets.target import NotInstalledError
from kafkatrial.app import run_command
from kafkatrial.packets import as_option


@pytest.mark.parametrize("command", ["chaos", "nightly"])
def test_a_missing_prerequisite_is_reported_before_anything_starts(monkeypatch, command):
    monkeypatch.setattr(namespace, "why_no_namespace", lambda: "iptables is missing")
    with pytest.raises(NotInstalledError, match=r"^--packets: iptables is missing$"):
        run_command([command, "--packets", "--minutes", "0"])
    assert as_option() == ""
