"""New ids, as Kafka's `Uuid.randomUuid` draws them: none begins with a dash, which tools would take for an option."""

from uuid import UUID, uuid4

from reference_broker.protocol.uuids import format_uuid


def new_uuid() -> UUID:
    """One that nobody has had."""
    drawn = uuid4()
    while format_uuid(drawn).startswith("-"):
        drawn = uuid4()
    return drawn
