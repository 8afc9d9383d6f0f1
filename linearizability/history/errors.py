"""What reading or writing a history may raise. Each message is one line: what is wrong, where, and what to do."""


class HistoryError(Exception):
    """A history that is damaged, breaks a rule of the format, or cannot be written."""


class NotARunError(HistoryError):
    """A directory that is no run, or one of another format version: the wrong path rather than a damaged one."""


def one_line(error: Exception) -> str:
    """The text of an error of somebody else's, without its line breaks."""
    return " ".join(str(error).split())
