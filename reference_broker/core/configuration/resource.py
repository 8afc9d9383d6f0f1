"""What a property belongs to, as ConfigRecord, DescribeConfigs and AlterConfigs number it."""

from enum import IntEnum
from typing import Final

_ID_DIGITS_MAX: Final = 1000
"""Of more digits, leading zeros among them, Python would not parse all."""


class ResourceType(IntEnum):
    """Kafka's `ConfigResource.Type`, as far as this broker keeps properties of it."""

    TOPIC = 2
    BROKER = 4


def parse_node_id(name: str) -> int | None:
    """Return the node id that a resource's name is, or null if Java's `Integer.parseInt` raises an exception."""
    digits = name[1:] if name[:1] in {"+", "-"} else name
    if not digits.isdecimal() or len(digits) > _ID_DIGITS_MAX:
        return None
    node_id = int(name)
    return node_id if -(2**31) <= node_id < 2**31 else None
