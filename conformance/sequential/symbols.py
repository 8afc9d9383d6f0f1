"""What the symbols of a script stand for in one run of it: real names, topic ids, producer ids."""

import uuid

_UNKNOWN_TOPIC_ID = uuid.UUID(int=2**64 + 1)


class ScriptSymbols:
    """Both ways: `requests.Names` for what is sent, `answers.Symbols` for what comes back.

    :param unique: makes the real names of this run unlike those of any other.
    """

    def __init__(self, unique: str) -> None:
        self._suffix = f"-{unique}"
        self._topic_ids: list[uuid.UUID] = []
        self._topic_id_by_name: dict[str, uuid.UUID] = {}
        self._producer_ids: list[int] = []

    def real(self, name: str) -> str:
        """The name on the wire: unique if the script's begins with `trial`, else the script's own."""
        return f"{name}{self._suffix}" if name.startswith("trial") else name

    def script_name(self, name: str) -> str | None:
        """The script's name of a real one; null for a topic that is not this run's."""
        return name.removesuffix(self._suffix) if name.endswith(self._suffix) else None

    def topic_id(self, name: str) -> uuid.UUID:
        """The id of a topic by its script's name; the zero id while unknown."""
        return self._topic_id_by_name.get(name, uuid.UUID(int=0))

    def nth_topic_id(self, n: int) -> uuid.UUID:
        """The n-th id seen; for -1, and any that is not there, one that nobody has."""
        return self._topic_ids[n] if 0 <= n < len(self._topic_ids) else _UNKNOWN_TOPIC_ID

    def saw_topic_id(self, name: str | None, topic_id: uuid.UUID | None) -> int | None:
        """Note an id; its place in the order in which they were seen, null for none."""
        if topic_id is None or topic_id.int == 0:
            return None
        if topic_id not in self._topic_ids:
            self._topic_ids.append(topic_id)
        if name is not None:
            self._topic_id_by_name[name] = topic_id
        return self._topic_ids.index(topic_id)

    def forget_topic(self, name: str) -> None:
        """The topic was deleted. Its id keeps its place."""
        self._topic_id_by_name.pop(name, None)

    def producer_id(self, producer: int) -> int:
        """The n-th producer id that was handed out; -1 if there were not so many."""
        return self._producer_ids[producer] if 0 <= producer < len(self._producer_ids) else -1

    def saw_producer_id(self, producer_id: int) -> int:
        """Note an id that was handed out; its place in the order, -1 for none. One handed out twice keeps its place."""
        if producer_id < 0:
            return -1
        if producer_id not in self._producer_ids:
            self._producer_ids.append(producer_id)
        return self._producer_ids.index(producer_id)
