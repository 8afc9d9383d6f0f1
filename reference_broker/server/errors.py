"""Errors that end a node's process: a message of one line, and exit codes."""

EXIT_BROKER_FAILED = 3
"""The broker cannot start or continue, for example because of a port, the log directory or a disk."""
EXIT_USAGE = 4
"""The command line is wrong."""


class ServerError(Exception):
    """Reason for which the broker cannot start or continue. The message is one line."""


class UsageError(Exception):
    """Error in the command line."""
