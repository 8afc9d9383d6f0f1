"""`--packets`: a process whose clusters break links on packets enters a network namespace before it has threads."""

from fixtures.network import namespace
from fixtures.targets.target import NotInstalledError


def enter_namespace() -> None:
    """From now on clusters that are started break their links on packets. Raises `NotInstalledError`."""
    if reason := namespace.why_none_here():
        raise NotInstalledError(f"--packets: {reason}")
    namespace.enter()


def as_option() -> str:
    """What a command line must say to run as this process does: ` --packets`, or nothing."""
    return " --packets" if namespace.is_entered() else ""
