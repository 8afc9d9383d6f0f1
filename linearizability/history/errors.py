"""Errors of reading and writing a history. Each message is one line: what is wrong, where, and what to do."""


class HistoryError(Exception):
    """A history that is damaged or breaks a rule of the format."""


class NotARunError(HistoryError):
    """A directory that is no run, or one of another format version: the wrong path rather than a damaged one."""


class HistoryNotWrittenError(HistoryError):
    """A history, or a file derived from it, that could not be written."""


def one_line(error: Exception) -> str:
    """Return the text of a foreign error, without its line breaks."""
    return " ".join(str(error).split())
