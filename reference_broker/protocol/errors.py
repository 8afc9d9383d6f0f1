"""Errors of the protocol layer, split by blame, and Kafka's error codes under Kafka's names."""

from kio.schema.errors import ErrorCode

__all__ = ["ErrorCode", "MalformedRequestError", "UnsupportedVersionError", "error_code"]


class MalformedRequestError(Exception):
    """The peer sent bytes that are no request. The one answer that Kafka gives is to close that connection."""


class UnsupportedVersionError(MalformedRequestError):
    """A well-formed header that names an API or a version which this broker does not have."""


def error_code(name: str) -> ErrorCode:
    """The code of an error in Kafka's spelling: `error_code("NOT_LEADER_OR_FOLLOWER")` is 6. Raises `KeyError`."""
    return ErrorCode[name.lower()]
