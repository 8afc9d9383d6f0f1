"""Errors for a topic that does not exist."""

from typing import Final

from conformance.sequential.expectation import OneOf

UNKNOWN_TOPIC: Final = OneOf(
    ("UNKNOWN_TOPIC_OR_PARTITION", "UNKNOWN_TOPIC_ID"), "requested by name, or by id in newer versions (KIP-516)"
)
