"""Why a broker does not start, or ends: one line for a person, and an exit code for a program."""

EXIT_BROKER_FAILED = 3
"""The port, the data directory or a disk."""
EXIT_USAGE = 4


class ServerError(Exception):
    """The broker cannot start or go on. The message is one clear line."""


class UsageError(Exception):
    """The command line is wrong."""
