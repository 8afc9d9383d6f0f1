"""What chaos finds, shown on a cluster by one command each."""

from pathlib import Path
from tempfile import TemporaryDirectory

from rich.text import Text

from chaos.live.failure import told
from chaos.live.findings import FINDINGS, finding
from chaos.live.session import fitted, run_on
from chaos.simulation.source import printed
from fixtures.disk.kinds import DiskKind
from kafkatrial.console import show, stdout_console
from kafkatrial.exit_codes import ExitCode
from kafkatrial.interruption import interruptible

LIST = "list"


def show_finding(name: str, targets: tuple[str, ...], disk: DiskKind | None = None) -> ExitCode:
    """Run a finding's round on each target; a finding that does not show is a violation of ours.

    Raises:
        UnknownFindingError: there is no such one.
    """
    console = stdout_console(quiet=False)
    if name == LIST:
        for each in FINDINGS.values():
            console.print(Text.assemble((each.name, "bold"), "  ", each.text), soft_wrap=True)
        return ExitCode.OK
    sought = finding(name)
    show(console, Text(f"{sought.text}\n{printed(sought.round)}"))
    code = ExitCode.OK
    with interruptible(), TemporaryDirectory(prefix="kafkatrial-") as directory:
        for number, target in enumerate(targets):
            fitting = fitted(target, sought.round, disk)
            if fitting.refused:
                show(console, Text(f"{target}: not applicable: {'; '.join(fitting.refused.values())}", "yellow"))
                code = max(code, ExitCode.NOTHING_RAN)
                continue
            report = run_on(target, sought.round, Path(directory) / str(number), disk=disk)
            seen = sought.shows(report)
            style = "green" if seen else "bold red"
            show(console, Text.assemble(f"{target}: ", ("shown" if seen else "not shown", style), f"\n{told(report)}"))
            code = code if seen else ExitCode.VIOLATION
    return code
