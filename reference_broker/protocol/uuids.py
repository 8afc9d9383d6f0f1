"""Kafka writes UUIDs as URL-safe base64 without padding: in files, in logs, and as cluster ids."""

import base64
from uuid import UUID


def format_uuid(uuid: UUID) -> str:
    """Twenty-two characters."""
    return base64.urlsafe_b64encode(uuid.bytes).rstrip(b"=").decode()


def parse_uuid(text: str) -> UUID:
    """The inverse. Raises `ValueError`."""
    return UUID(bytes=base64.urlsafe_b64decode(text + "=="))
