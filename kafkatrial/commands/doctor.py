"""`kafkatrial doctor`: what this machine has, what it lacks, and how to get it."""

from kafkatrial.exit_codes import ExitCode


def doctor() -> ExitCode:
    """Look what clusters and faults this machine lets us have, and say how to get the rest."""
    from fixtures.targets.machine import examine
    from kafkatrial.console import show, stdout_console
    from kafkatrial.target_tables import render_findings

    show(stdout_console(), render_findings(examine()))
    return ExitCode.OK
