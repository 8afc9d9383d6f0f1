"""What a client knows of the cluster, as it learns it from Metadata answers: leaders, their epochs, topic ids."""

from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from fixtures.clients.topic_ids import topic_id_text

Place = tuple[str, int]
"""A topic and a partition number."""

NO_NODE = -1
NO_EPOCH = -1


@dataclass(frozen=True, slots=True)
class Leader:
    """Who leads a partition. `NO_NODE`: nobody, as far as anybody said."""

    node: int = NO_NODE
    epoch: int = NO_EPOCH


_NOBODY = Leader()


@dataclass(slots=True)
class View:
    """One client's. Of two answers about a partition the one with the newer leader epoch counts (KIP-320)."""

    topic_ids: dict[str, UUID] = field(default_factory=dict)
    partitions: dict[str, int] = field(default_factory=dict)
    """How many a topic has."""
    _leaders: dict[Place, Leader] = field(default_factory=dict)

    def leader(self, place: Place) -> Leader:
        """Who leads, as far as is known."""
        return self._leaders.get(place, _NOBODY)

    def topic_id_text(self, topic: str) -> str | None:
        """As Kafka prints it."""
        return topic_id_text(self.topic_ids.get(topic))

    def learn(self, response: Any) -> None:
        """Take in a Metadata answer."""
        for of_topic in response.topics:
            if of_topic.error_code:
                continue
            name = of_topic.name
            if of_topic.topic_id is not None and self.topic_ids.get(name) != of_topic.topic_id:
                self._forget(name)
                self.topic_ids[name] = of_topic.topic_id
            self.partitions[name] = len(of_topic.partitions)
            for of_partition in of_topic.partitions:
                place = name, of_partition.partition_index
                if of_partition.leader_epoch >= self.leader(place).epoch:
                    self._leaders[place] = Leader(of_partition.leader_id, of_partition.leader_epoch)

    def _forget(self, topic: str) -> None:
        """It was deleted and created again: its epochs begin anew."""
        self._leaders = {place: leader for place, leader in self._leaders.items() if place[0] != topic}
