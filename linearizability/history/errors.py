"""Errors of reading and writing a history. Each message is one line: what is wrong, where, and what to do."""


class HistoryError(Exception):
    """A history that is damaged or breaks a rule of the format."""


class NotARunError(HistoryError):
    """A path that is not a history of a known form, has another format version, or does not fit the named model.

    The caller chose the wrong path or model; no history is damaged.
    """


class HistoryNotWrittenError(HistoryError):
    """A history, or a file derived from it, that could not be written."""


def one_line(error: Exception) -> str:
    """Return the text of another library's error, without its line breaks."""
    return " ".join(str(error).split())
