"""Types of configuration resources, with the numbers of ConfigRecord, DescribeConfigs and AlterConfigs.

Follows: org.apache.kafka.common.config.ConfigResource.
"""

from enum import IntEnum
from typing import Final

_ID_DIGITS_MAX: Final = 1000
"""Maximum number of digits; Python does not parse more than 4,300, leading zeros included."""


class ResourceType(IntEnum):
    """Resource types that have properties on this broker."""

    TOPIC = 2
    BROKER = 4


def parse_node_id(name: str) -> int | None:
    """Return the node id in a resource's name, or null if Java's `Integer.parseInt` would raise an exception."""
    digits = name[1:] if name[:1] in {"+", "-"} else name
    if not digits.isdecimal() or len(digits) > _ID_DIGITS_MAX:
        return None
    node_id = int(name)
    return node_id if -(2**31) <= node_id < 2**31 else None
