"""What a broker says of a topic that it does not have."""

from typing import Final

from conformance.sequential.expectation import OneOf

UNKNOWN_TOPIC: Final = OneOf(
    ("UNKNOWN_TOPIC_OR_PARTITION", "UNKNOWN_TOPIC_ID"), "asked by name, or by an id in newer versions (KIP-516)"
)
