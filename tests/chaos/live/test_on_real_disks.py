"""Power cuts of real file systems: findings on FUSE are also found on ext4 and xfs."""

import pytest

from chaos.live.findings import finding
from chaos.live.session import remove_unsupported_faults, run_on
from fixtures.disk.kinds import DiskKind, why_no_disk


@pytest.mark.nightly
@pytest.mark.timeout(0)
@pytest.mark.parametrize("name", ["power-cut-of-all-loses", "power-cut-of-all-with-flush-keeps"])
@pytest.mark.parametrize("disk", [DiskKind.EXT4, DiskKind.XFS])
def test_a_finding_of_power_cuts_shows_on_a_real_file_system(name, disk, pytestconfig, tmp_path):
    (target,) = pytestconfig.getoption("kafkatrial_target") or ["reference"]
    reason = why_no_disk(disk) or "; ".join(
        remove_unsupported_faults(target, finding(name).trial, disk).unsupported.values()
    )
    if reason:
        pytest.skip(reason)
    assert finding(name).shows(run_on(target, finding(name).trial, tmp_path / "run", disk=disk))
