"""Known findings of chaos: `kafkatrial chaos --show NAME` runs the round that shows one."""

import shutil
from datetime import datetime
from pathlib import Path

from rich.console import Console, Group
from rich.text import Text

from chaos.campaign.interruption import interruptible
from chaos.live.failure import describe
from chaos.live.findings import FINDINGS, ChaosFinding, finding
from chaos.live.session import remove_unsupported_faults, run_on
from conformance.trial.source import printed
from fixtures.disk.kinds import DiskKind
from kafkatrial.chaos_session import CHAOS
from kafkatrial.console import show, stdout_console
from kafkatrial.exit_codes import ExitCode
from linearizability.temporary_folder import TemporaryFolder
from reports.program import render_program

LIST = "list"
NOT_SHOWN = CHAOS / "not-shown"
_WORST_FIRST = (ExitCode.VIOLATION, ExitCode.OK, ExitCode.NOTHING_RAN)
"""Precedence of the exit codes of several targets: NOTHING_RAN only if no target could run the round."""


def show_finding(name: str, targets: tuple[str, ...], disk: DiskKind | None = None) -> ExitCode:
    """Run a finding's round on each target, or list the findings if the name is `list`.

    Return VIOLATION if a round does not show the finding, NOTHING_RAN if no target supports its faults, else OK.

    Raises:
        UnknownFindingError: there is no such finding.
    """
    console = stdout_console(quiet=False)
    if name == LIST:
        for each in FINDINGS.values():
            console.print(Text.assemble((each.name, "bold"), "  ", each.text), soft_wrap=True)
        return ExitCode.OK
    sought = finding(name)
    show(console, Group(Text(sought.text), render_program(printed(sought.trial))))
    with interruptible():
        codes = [_show_on(target, sought, disk, console) for target in targets]
    return min(codes, key=_WORST_FIRST.index)


def _show_on(target: str, sought: ChaosFinding, disk: DiskKind | None, console: Console) -> ExitCode:
    supported = remove_unsupported_faults(target, sought.trial, disk)
    if supported.unsupported:
        show(console, Text(f"{target}: not applicable: {supported.reasons}", "yellow"))
        return ExitCode.NOTHING_RAN
    with TemporaryFolder() as directory:
        run_dir = Path(directory) / "run"
        report = run_on(target, sought.trial, run_dir, disk=disk)
        shown = sought.shows(report)
        style = "green" if shown else "bold red"
        text = Text.assemble(f"{target}: ", ("shown" if shown else "not shown", style), f"\n{describe(report)}")
        if not shown:
            text.append(f"\nhistory and logs in {_keep(run_dir, target, sought)}")
    show(console, text)
    return ExitCode.OK if shown else ExitCode.VIOLATION


def _keep(run_dir: Path, target: str, sought: ChaosFinding) -> Path:
    """Copy the run of a finding that was not shown, and return its new directory."""
    now = datetime.now().astimezone()
    directory = NOT_SHOWN / f"{now:%Y%m%dT%H%M%S}-{target.replace(':', '-')}-{sought.name}"
    shutil.copytree(run_dir, directory, dirs_exist_ok=True)
    return directory
