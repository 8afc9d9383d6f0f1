"""Names from a file of its own in place of the system's `/etc/hosts`, so that a test decides where a name leads.

The same lines as `/etc/hosts`, and the same idea as Java's `jdk.net.hosts.file`; a name that is not in the file is left
to the system.
"""

from pathlib import Path

from reference_broker.server.errors import ServerError


def resolve(host: str, hosts_file: Path | None) -> str:
    """The address of a name, or the name. Raises `ServerError` where the file cannot be read."""
    if hosts_file is None:
        return host
    try:
        lines = hosts_file.read_text().splitlines()
    except OSError as error:
        raise ServerError(f"cannot read the hosts file {hosts_file}: {error.strerror}") from error
    for line in lines:
        address, *names = line.partition("#")[0].split() or [""]
        if host in names:
            return address
    return host
