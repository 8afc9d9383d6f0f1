"""What a property belongs to, as ConfigRecord, DescribeConfigs and AlterConfigs number it."""

from enum import IntEnum


class ResourceType(IntEnum):
    """Kafka's `ConfigResource.Type`, as far as this broker keeps properties of it."""

    TOPIC = 2
    BROKER = 4
