"""Fields of raw requests that name the script's topic and its first partition.

The APIs and their versions have different names for these fields. A raw request is given all of them, and
`layout.build` drops those that the version does not have.
"""

from collections.abc import Mapping
from typing import Any, Final

Fields = Mapping[str, Any]

_TOPIC: Final = {"topic": "trial", "name": "trial", "topic_id": 0}
_PARTITION: Final = {"index": 0, "partition": 0, "partition_index": 0}


def one_partition(*, partitions: str = "partitions", **fields: Any) -> tuple[Fields, ...]:
    """Return the topic with one partition, which has these fields.

    :param partitions: name of the field with the partitions.
    """
    return ({**_TOPIC, partitions: ({**_PARTITION, **fields},)},)


def partition_indexes(name: str = "trial", field: str = "partitions") -> tuple[Fields, ...]:
    """Return a topic with the index of its first partition.

    :param field: name of the field with the indexes.
    """
    return ({**_TOPIC, "topic": name, "name": name, field: (0,)},)
