"""Versions of kafkatrial and of what its verdicts depend on."""

import platform
from importlib.metadata import PackageNotFoundError, version

_DEPENDENCIES = ("confluent-kafka", "kio", "hypothesis", "pyarrow")
"""Packages for the clients, the protocol's schemas, the scripts that a seed generates, and the history's format."""


def own_version() -> str:
    """Return the version of the installed distribution."""
    return _version_of("kafkatrial")


def version_lines() -> tuple[str, str]:
    """Return name and version, and the versions that belong in a bug report."""
    others = ", ".join(f"{name} {_version_of(name)}" for name in _DEPENDENCIES)
    return f"kafkatrial {own_version()}", f"Python {platform.python_version()}, {others}"


def _version_of(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "unknown"
