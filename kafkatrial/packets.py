"""Option `--packets`: link faults on packets. The process enters a network namespace before it starts threads."""

from fixtures.network import namespace
from fixtures.targets.target import NotInstalledError


def enter_namespace() -> None:
    """Enter a network namespace. Raises `NotInstalledError`.

    Clusters that start later inject link faults by firewall rules on packets, not by Toxiproxy.
    """
    if reason := namespace.why_no_namespace():
        raise NotInstalledError(f"--packets: {reason}")
    namespace.enter()


def as_option() -> str:
    """Return ` --packets` if this process has entered the namespace, otherwise an empty string."""
    return " --packets" if namespace.is_entered() else ""
