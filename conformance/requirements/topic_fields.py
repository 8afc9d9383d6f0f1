"""Fields of raw requests that name the script's topics and their partitions.

The APIs and their versions have different names for these fields. A raw request is given all of them, and
`layout.build` drops those that the version does not have.
"""

from collections.abc import Mapping
from typing import Any, Final

Fields = Mapping[str, Any]

TOPICS: Final = (("trial", 3), ("trial-two", 2))
"""Name and number of partitions of each topic in a request for several. A script creates them in this order."""


def one_partition(name: str = "trial", *, partitions: str = "partitions", **fields: Any) -> tuple[Fields, ...]:
    """Return a topic with its first partition, which has these fields.

    :param partitions: name of the field with the partitions.
    """
    return ({**_topic(name, 0), partitions: (_partition(0, fields),)},)


def fetch_fields(topics: tuple[Fields, ...], isolation_level: int = 0) -> Fields:
    """Return the fields of a consumer's Fetch that does not wait."""
    return {
        "replica_id": -1,
        "min_bytes": 0,
        "isolation_level": isolation_level,
        "topics": topics,
        "forgotten_topics_data": (),
    }


def every_partition(*, partitions: str = "partitions", **fields: Any) -> tuple[Fields, ...]:
    """Return the topics (`TOPICS`) with all their partitions, each of which has these fields.

    :param partitions: name of the field with the partitions.
    """
    return tuple(
        {**_topic(name, topic_id), partitions: tuple(_partition(index, fields) for index in range(count))}
        for topic_id, (name, count) in enumerate(TOPICS)
    )


def partition_indexes(name: str = "trial", field: str = "partitions") -> tuple[Fields, ...]:
    """Return a topic with the index of its first partition.

    :param field: name of the field with the indexes.
    """
    return ({**_topic(name, 0), field: (0,)},)


def every_index(field: str = "partitions") -> tuple[Fields, ...]:
    """Return the topics (`TOPICS`) with the indexes of all their partitions.

    :param field: name of the field with the indexes.
    """
    return tuple(
        {**_topic(name, topic_id), field: tuple(range(count))} for topic_id, (name, count) in enumerate(TOPICS)
    )


def _topic(name: str, topic_id: int) -> Fields:
    return {"topic": name, "name": name, "topic_id": topic_id}


def _partition(index: int, fields: Fields) -> Fields:
    return {"index": index, "partition": index, "partition_index": index, **fields}
