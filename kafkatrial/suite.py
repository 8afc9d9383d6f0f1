"""Import path of the suite's packages in this process.

In a source tree the packages can be imported directly. In a wheel they are in `kafkatrial/_suite`, so that they do not
hide a user's own `fixtures` or `reports`. The command line, printed programs, and scripts that import these packages
call `activate`; the pytest plugin and `kafkatrial.cluster` do not, because they run beside a user's tests.
"""

import os
from contextlib import suppress
from pathlib import Path

from linearizability.cache import cache_directory
from linearizability.isolated_python import isolate, module_command

_PARENT = Path(__file__).parents[1]
"""The directory that contains `kafkatrial`."""


def directory() -> Path:
    """Return the directory that contains the suite's packages."""
    bundled = Path(__file__).parent / "_suite"
    return bundled if bundled.is_dir() else _PARENT


def command() -> list[str]:
    """Return the command line of `kafkatrial` in an isolated child process, without arguments."""
    return module_command(_PARENT, "kafkatrial")


def activate() -> None:
    """Make kafkatrial's own `chaos`, `conformance`, `fixtures`, `reports` and `reference_broker` importable.

    Hypothesis, which some of them import, keeps its files in the cache directory of the user, not in the working
    directory. Idempotent.
    """
    isolate(directory())
    with suppress(RuntimeError):  # the user has no home directory
        os.environ.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", str(cache_directory() / "hypothesis"))
