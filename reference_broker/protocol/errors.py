"""Exceptions of the protocol layer, and Kafka's error codes by Kafka's names."""

from kio.schema.errors import ErrorCode

__all__ = ["ErrorCode", "MalformedRequestError", "UnsupportedVersionError", "error_code"]


class MalformedRequestError(Exception):
    """Received bytes that are not a valid message. As in Kafka, the connection is closed."""


class UnsupportedVersionError(MalformedRequestError):
    """A valid header with an API or a version that this broker does not support."""


def error_code(name: str) -> ErrorCode:
    """Return the code of an error by Kafka's name: NOT_LEADER_OR_FOLLOWER is 6. Raises `KeyError`."""
    return ErrorCode[name.lower()]
