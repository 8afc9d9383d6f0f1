"""What was asked, beside what is answered: pairs of both, and what is wrong where they do not fit together."""

from collections.abc import Iterable
from typing import Any

from fixtures.clients.messages import error_name


class WrongAnswerError(Exception):
    """An answer that no broker may give."""


def check_error(lawful: frozenset[str], code: int) -> None:
    """Raises `WrongAnswerError` for an error that is none of these."""
    if code and (name := error_name(code)) not in lawful:
        raise WrongAnswerError(f"the error {name}, which this API never gives")


def _name_of(topic: Any) -> object:
    """A topic by what this version names it by."""
    for field in ("topic_id", "name", "topic"):
        name = getattr(topic, field, None)
        if name is not None:
            return name
    return None


def _index_of(partition: Any) -> int:
    if isinstance(partition, int):
        return partition
    for field in ("partition_index", "partition", "index"):
        index = getattr(partition, field, None)
        if index is not None:
            return int(index)
    return -1


def _by_place(topics: Iterable[Any], field: str) -> dict[tuple[object, int], Any]:
    return {
        (_name_of(topic), _index_of(partition)): partition for topic in topics for partition in getattr(topic, field)
    }


def check_same(asked: Any, answered: Any) -> None:
    """What was asked for and what the answer is about are not the same."""
    if asked.keys() != answered.keys():
        raise WrongAnswerError(f"an answer about {list(answered)} to a question about {list(asked)}")


def pairs(
    asked_topics: Iterable[Any],
    answered_topics: Iterable[Any],
    lawful: frozenset[str],
    *,
    asked_in: str = "partitions",
    answered_in: str = "partitions",
) -> list[tuple[Any, Any]]:
    """Pairs of a partition as asked and as answered."""
    asked, answered = _by_place(asked_topics, asked_in), _by_place(answered_topics, answered_in)
    check_same(asked, answered)
    for found in answered.values():
        check_error(lawful, found.error_code)
    return [(asked[place], found) for place, found in answered.items()]
