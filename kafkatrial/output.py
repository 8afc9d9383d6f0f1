"""Standard output and error of a process: text in any encoding, and a pipe whose reader has ended.

A command whose reader has ended (`kafkatrial check … | head -1`) stops its cluster, saves its results, and ends with
the exit code that a shell shows for SIGPIPE. The signal itself stays ignored, because a broker that closes its
connection would cause it too.
"""

import fcntl
import io
import os
import select
import sys
from contextlib import suppress
from pathlib import Path

from kafkatrial.errors import print_error
from kafkatrial.exit_codes import ExitCode

_STDIN, _STDOUT, _STDERR = range(3)


def accept_any_text() -> None:
    """Escape characters that the encoding of standard output or error lacks, instead of raising UnicodeEncodeError."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def output_problem() -> str | None:
    """Return why standard output cannot be written; None if it can. Closed streams become the null device.

    If a stream stayed closed, the next file that is opened would get its descriptor, and receive what child processes
    and libraries write to the stream.
    """
    modes = {}
    for descriptor in (_STDIN, _STDOUT, _STDERR):
        try:
            modes[descriptor] = fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free descriptor, which is this one
    if sys.stdout is None or _STDOUT not in modes:
        return "cannot write: standard output is closed"
    return "cannot write: standard output is open for reading only" if modes[_STDOUT] == os.O_RDONLY else None


def is_reader_gone() -> bool:
    """Whether standard output is a pipe or socket that nothing reads any more."""
    try:
        poll = select.poll()
        poll.register(sys.__stdout__.fileno() if sys.__stdout__ else -1, 0)
        return any(events & select.POLLERR for _, events in poll.poll(0))
    except (OSError, ValueError):
        return False


def is_null_device() -> bool:
    """Whether standard output is the null device."""
    try:
        stream = sys.__stdout__
        return stream is not None and os.path.samestat(os.fstat(stream.fileno()), Path(os.devnull).stat())
    except (OSError, ValueError):
        return False


def flush_output(code: ExitCode) -> ExitCode:
    """Flush standard output; return the exit code, or that of a failed write."""
    if sys.stdout is None:
        return code
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        code = ExitCode.OUTPUT_CLOSED
    except OSError as error:
        print_error(f"cannot write: {error.strerror}")
        code = ExitCode.INTERNAL
    else:
        return code
    with suppress(OSError, ValueError):  # otherwise the interpreter flushes again at its end, and changes the exit code
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return code
