"""Host names from a file in the format of `/etc/hosts`, like Java's `jdk.net.hosts.file`.

Tests use it to choose the address of a name. The system resolves names that are not in the file.
"""

from pathlib import Path

from reference_broker.server.errors import ServerError


def resolve(host: str, hosts_file: Path | None) -> str:
    """Return the address of a name in the file, or the name if the file does not have it. Raises `ServerError`."""
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
