"""Isolated Python child processes: they import from this installation, never from the user's working directory.

    python -E -P -u isolated_python.py DIRECTORY MODULE ARGUMENT…        (started with `module_command`)

Python puts the working directory on the import path of `python -m` and `python -c`, and the directories of PYTHONPATH
before its own library. A user's `fixtures`, `struct.py` or `kio.py` in such a directory would be executed in place of
the module that the child needs. A child started with `module_command` or `script_command` never imports from the
working directory. With `module_command`, the other directories of PYTHONPATH are searched last, because some
installations keep their dependencies there; with `script_command`, they are not searched.
"""

import os
import runpy
import site
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

_PYTHON: Final = sys.executable  # noqa: TID251
_INSTALLATION: Final = Path(__file__).parents[1]
_SAFE_PATH, _PYTHON_PATH = "PYTHONSAFEPATH", "PYTHONPATH"


def module_command(directory: Path | str, module: str, *arguments: str) -> list[str]:
    """Return the command line that runs a module as `python -m` does; its package is in `directory`."""
    return [_PYTHON, "-E", "-P", "-u", __file__, str(directory), module, *arguments]


def script_command(script: Path | str, *arguments: str) -> list[str]:
    """Return the command line of a script that imports nothing but the standard library."""
    return [_PYTHON, "-I", "-S", str(script), *arguments]


def isolate(directory: Path | str) -> None:
    """Make this process search `directory` first and PYTHONPATH last, and never the working directory.

    A `directory` of installed packages that is on the path keeps its place there. The Python processes that this
    process starts do not search the working directory either (`isolate_children`). Idempotent.
    """
    first, listed = str(directory), set(_entries())
    own = [
        entry
        for place, entry in enumerate(sys.path)
        if entry not in listed and not (place == 0 and _is_working_directory(entry))
    ]
    isolate_children()
    if first not in own or first not in _site_directories():
        own = [first, *(entry for entry in own if entry != first)]
    sys.path[:] = [*own, *(entry for entry in _entries() if entry not in own)]


def isolate_children() -> None:
    """Keep the working directory out of the import path of every Python process that this process starts.

    This is for processes that a library starts, such as those of `multiprocessing` and Spark's Python workers.
    """
    os.environ[_SAFE_PATH] = "1"
    if kept := os.pathsep.join(entry for entry in _entries() if not _is_working_directory(entry)):
        os.environ[_PYTHON_PATH] = kept
    else:
        os.environ.pop(_PYTHON_PATH, None)


def _entries() -> Iterator[str]:
    """Yield the entries of PYTHONPATH as absolute paths. An empty entry stands for the working directory."""
    if given := os.environ.get(_PYTHON_PATH):
        yield from map(os.path.abspath, given.split(os.pathsep))


def _is_working_directory(entry: str) -> bool:
    """Whether an entry of the import path is the working directory and not this installation."""
    with suppress(OSError):
        return Path(entry).samefile(os.curdir) and not Path(entry).samefile(_INSTALLATION)
    return False


def _site_directories() -> list[str]:
    """Return the directories of installed packages, which must stay after the standard library on the path."""
    return [*site.getsitepackages(), site.getusersitepackages()]


def main() -> None:
    """Run the module that the command line names."""
    directory, module, *arguments = sys.argv[1:]
    isolate(directory)
    sys.argv[:] = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
