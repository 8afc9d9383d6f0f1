"""Kafka's text form of UUIDs in files, logs and cluster ids: URL-safe base64 without padding.

Follows: org.apache.kafka.common.Uuid.
"""

import base64
from uuid import UUID


def format_uuid(uuid: UUID) -> str:
    """Return the text form: 22 characters."""
    return base64.urlsafe_b64encode(uuid.bytes).rstrip(b"=").decode()


def parse_uuid(text: str) -> UUID:
    """Parse the text form. Raises `ValueError`."""
    return UUID(bytes=base64.urlsafe_b64decode(text + "=="))
