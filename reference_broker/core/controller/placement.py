"""Placement of the replicas of new partitions, striped over racks and brokers.

Follows: org.apache.kafka.metadata.placement.StripedReplicaPlacer.

Goals in order of priority: replicas are spread over racks; they are spread over brokers; unfenced brokers come before
fenced brokers. Two rules always hold: no broker has two replicas of a partition, and the first replica, which will
lead, is on an unfenced broker.

Each partition is placed in one round. Within a round, racks take turns, and so do the brokers of a rack. Each round
starts with the next rack, and in each rack with the next broker. If there are n > 1 unfenced brokers, the orders of
racks and brokers are shuffled after every n rounds. So the stripes do not repeat.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeVar
from uuid import UUID

from reference_broker.core.controller.errors import ControllerError
from reference_broker.core.metadata.image import MetadataImage
from reference_broker.protocol.errors import ErrorCode

RandomBelow = Callable[[int], int]
"""Returns a random number that is at least 0 and below the argument."""
_T = TypeVar("_T")
UNASSIGNED = UUID(int=1)
"""Directory id of a replica whose broker has not chosen a directory yet (KIP-858)."""


@dataclass(frozen=True, slots=True)
class UsableBroker:
    """A broker that may get a new replica."""

    node_id: int
    rack: str | None = None
    fenced: bool = False


def usable_brokers(image: MetadataImage) -> list[UsableBroker]:
    """Return every registered broker that is not in controlled shutdown."""
    return [
        UsableBroker(broker.broker_id, broker.rack, broker.fenced)
        for broker in image.brokers.values()
        if not broker.in_controlled_shutdown
    ]


def log_directory(image: MetadataImage, node_id: int) -> UUID | None:
    """Return the directory of a new replica: the broker's only one, or UNASSIGNED if it has several (KIP-858).

    The result is null if the broker is unknown or has registered no directory.
    """
    broker = image.brokers.get(node_id)
    if broker is None or not broker.log_dirs:
        return None
    return broker.log_dirs[0] if len(broker.log_dirs) == 1 else UNASSIGNED


def place_replicas(
    brokers: Iterable[UsableBroker], num_partitions: int, replication_factor: int, random_below: RandomBelow
) -> list[tuple[int, ...]]:
    """Return the replicas of each new partition. Raises `ControllerError` with INVALID_REPLICATION_FACTOR."""
    brokers = list(brokers)
    unfenced = sum(not broker.fenced for broker in brokers)
    if replication_factor <= 0:
        raise _invalid_replication_factor(
            f"Invalid replication factor {replication_factor}: the replication factor must be positive."
        )
    if not unfenced:
        raise _invalid_replication_factor(
            "All brokers are currently fenced, or have all their log directories cordoned."
        )
    if replication_factor > len(brokers):
        raise _invalid_replication_factor(
            f"The target replication factor of {replication_factor} cannot be reached because only {len(brokers)} "
            "broker(s) are registered or some brokers have all their log directories cordoned."
        )
    racks = _RackList(brokers, random_below)
    placed = []
    for index in range(num_partitions):
        if index and index % unfenced == 0 and unfenced > 1:
            racks.shuffle()
        placed.append(racks.place(replication_factor))
    return placed


def _invalid_replication_factor(message: str) -> ControllerError:
    return ControllerError(ErrorCode.invalid_replication_factor, message)


def _shuffle(items: list[_T], random_below: RandomBelow) -> None:
    for last in range(len(items) - 1, 0, -1):
        chosen = random_below(last + 1)
        items[last], items[chosen] = items[chosen], items[last]


@dataclass(slots=True)
class _BrokerList:
    """Brokers that take turns, each at most once per round; each round starts with the next broker."""

    brokers: list[int]
    start: int = 0
    taken: int = 0
    round: int = 0

    def take(self, this_round: int) -> int | None:
        """Return the next broker; null if all were taken in this round."""
        if not self.brokers:
            return None
        if self.round != this_round:
            self.round, self.taken = this_round, 0
            self.start = (self.start + 1) % len(self.brokers)
        if self.taken == len(self.brokers):
            return None
        self.taken += 1
        return self.brokers[(self.start + self.taken - 1) % len(self.brokers)]


@dataclass(slots=True)
class _Rack:
    unfenced: _BrokerList = field(default_factory=lambda: _BrokerList([]))
    fenced: _BrokerList = field(default_factory=lambda: _BrokerList([]))

    def take(self, this_round: int) -> int | None:
        broker = self.unfenced.take(this_round)
        return self.fenced.take(this_round) if broker is None else broker

    def broker_lists(self) -> tuple[_BrokerList, _BrokerList]:
        return self.unfenced, self.fenced


class _RackList:
    def __init__(self, brokers: Iterable[UsableBroker], random_below: RandomBelow) -> None:
        by_name: dict[str | None, _Rack] = {}
        for broker in sorted(brokers, key=lambda broker: broker.node_id):
            rack = by_name.setdefault(broker.rack, _Rack())
            (rack.fenced if broker.fenced else rack.unfenced).brokers.append(broker.node_id)
        self._racks = [by_name[name] for name in sorted(by_name, key=lambda name: name or "")]
        self._random_below = random_below
        for broker_list in self._broker_lists():
            broker_list.start = random_below(len(broker_list.brokers)) if broker_list.brokers else 0
        self._first = random_below(len(self._racks))
        self._round = 0

    def _broker_lists(self) -> list[_BrokerList]:
        return [broker_list for rack in self._racks for broker_list in rack.broker_lists()]

    def place(self, replication_factor: int) -> tuple[int, ...]:
        """Return the replicas of one round: the leader on the first rack with an unfenced broker, the rest in turn."""
        self._round += 1
        racks = self._racks[self._first :] + self._racks[: self._first]
        self._first = (self._first + 1) % len(self._racks)
        leaders = ((rack, broker) for rack in racks if (broker := rack.unfenced.take(self._round)) is not None)
        leader_rack, leader = next(leaders)
        replicas = [leader]
        rack_to_skip: _Rack | None = leader_rack  # the leader was this rack's turn in the first pass
        while len(replicas) < replication_factor:
            for rack in racks:
                if rack is rack_to_skip:
                    rack_to_skip = None
                elif (broker := rack.take(self._round)) is not None:
                    replicas.append(broker)
                    if len(replicas) == replication_factor:
                        break
        return tuple(replicas)

    def shuffle(self) -> None:
        """Shuffle the order of racks, and of the brokers within each."""
        _shuffle(self._racks, self._random_below)
        for broker_list in self._broker_lists():
            _shuffle(broker_list.brokers, self._random_below)
