"""Errors of reading and writing a history. Each message is one line: what is wrong, where, and what to do."""


class HistoryError(Exception):
    """A history that is damaged or breaks a rule of the format."""


class NotARunError(HistoryError):
    """A directory that is no run, or a run of another format version. The path is wrong; no history is damaged."""


class HistoryNotWrittenError(HistoryError):
    """A history, or a file derived from it, that could not be written."""


def one_line(error: Exception) -> str:
    """Return the text of a foreign error, without its line breaks."""
    return " ".join(str(error).split())
