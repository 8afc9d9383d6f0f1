"""Random UUIDs whose text never starts with a dash, because tools would parse such a text as an option.

Follows: org.apache.kafka.common.Uuid.
"""

from uuid import UUID, uuid4

from reference_broker.protocol.uuids import format_uuid


def new_uuid() -> UUID:
    """Return a new random UUID."""
    uuid = uuid4()
    while format_uuid(uuid).startswith("-"):
        uuid = uuid4()
    return uuid
