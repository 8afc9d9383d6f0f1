"""`kafkatrial doctor`: the clusters and faults that this machine can provide, and how to get the others."""

from kafkatrial.exit_codes import ExitCode

EXAMPLES = ("kafkatrial doctor",)


def doctor() -> ExitCode:
    """Check which clusters and faults this machine can provide, and how to get the others."""
    from fixtures.targets.machine import inspect_machine
    from kafkatrial.console import show, stdout_console
    from kafkatrial.target_tables import render_prerequisites

    show(stdout_console(), render_prerequisites(inspect_machine()))
    return ExitCode.OK
