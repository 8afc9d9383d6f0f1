"""Who leads: the changes of partitions that follow from what becomes of brokers, settings, or an administrator's wish.

| what happens                          | partitions looked at            | election                                   |
|---------------------------------------|---------------------------------|--------------------------------------------|
| a broker goes (fenced, shut down, …)  | those with it in their ISR      | from the ISR, without it                   |
| a broker is unfenced                  | those without a leader          | from the ISR, with it                      |
| ElectLeaders, preferred               | those asked for                 | the first replica, if it is in the ISR     |
| ElectLeaders, unclean                 | those asked for                 | any replica, if the ISR has none           |
| `leader.imbalance.check.interval…`    | led by another than the first   | the first replica, if it is in the ISR     |
| `unclean.leader.election.enable` set, | those without a leader          | any replica                                |
|  and every `unclean.…interval.ms`     |                                 |                                            |

Wherever `unclean.leader.election.enable` is true for the topic, the first two elect uncleanly too if need be. A broker
may lead if it is registered, neither fenced nor shutting down (KIP-841), and the directory that the partition has there
is online (KIP-858). Source: Kafka's `ReplicationControlManager`.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from uuid import UUID

from reference_broker.core.configuration.configuration import BrokerConfiguration
from reference_broker.core.configuration.resource import ResourceType
from reference_broker.core.controller.errors import ControllerError
from reference_broker.core.controller.partition_changes import Candidates, Election, Wanted, partition_change
from reference_broker.core.controller.placement import UNASSIGNED, log_directory
from reference_broker.core.metadata.image import CLUSTER_DEFAULT, MetadataImage
from reference_broker.protocol.errors import ErrorCode
from reference_broker.protocol.metadata_records import NO_LEADER, PartitionChangeRecord, PartitionRecord

UNCLEAN_ELECTION = "unclean.leader.election.enable"
_LOST = UUID(int=2)
"""A directory id with a meaning of its own, as `UNASSIGNED` is; null is the third, MIGRATING (KIP-858)."""


class ElectionType(IntEnum):
    """As ElectLeaders (43) numbers them (KIP-460)."""

    PREFERRED = 0
    UNCLEAN = 1


@dataclass(frozen=True, slots=True)
class Elections:
    """The elections that an image calls for.

    :param configuration: of the controller's node, for what neither topic nor cluster set.
    """

    image: MetadataImage
    configuration: BrokerConfiguration
    node_id: int

    def may_be_unclean(self, topic: str) -> bool:
        """Whether a topic's setting lets a replica outside of the ISR lead."""
        image = self.image
        for properties in (
            image.topic_overrides(topic),
            image.overrides(ResourceType.BROKER, str(self.node_id)),
            image.overrides(ResourceType.BROKER, CLUSTER_DEFAULT),
        ):
            if UNCLEAN_ELECTION in properties:
                return properties[UNCLEAN_ELECTION].lower() == "true"
        return bool(self.configuration.value(UNCLEAN_ELECTION))

    def candidates(
        self, partition: PartitionRecord, *, without: int = NO_LEADER, with_also: int = NO_LEADER
    ) -> Candidates:
        """Who may lead a partition.

        :param without: a broker that may not, whatever the image says: it is about to go.
        :param with_also: one that may though it is fenced: it is about to be unfenced.
        """

        def is_acceptable(broker_id: int) -> bool:
            if broker_id == without or not (broker_id == with_also or self.image.is_active(broker_id)):
                return False
            return self._is_directory_online(partition, broker_id)

        return Candidates(is_acceptable, lambda broker_id: log_directory(self.image, broker_id))

    def _is_directory_online(self, partition: PartitionRecord, broker_id: int) -> bool:
        directories = dict(zip(partition.replicas, partition.directories, strict=True))
        directory = directories.get(broker_id, UNASSIGNED)
        broker = self.image.brokers.get(broker_id)
        if broker is None or directory == _LOST:
            return False
        return directory in {None, UNASSIGNED} or not broker.log_dirs or directory in broker.log_dirs

    # What follows from a broker's coming and going

    def without(self, broker_id: int) -> list[PartitionChangeRecord]:
        """A broker leaves every ISR, and leads nothing any more."""
        partitions = (partition for partition in self.image.partitions() if broker_id in partition.isr)
        changes = (
            self._change(partition, Wanted(isr=_except(partition.isr, broker_id)), without=broker_id)
            for partition in partitions
        )
        return [change for change in changes if change is not None]

    def with_also(self, broker_id: int) -> list[PartitionChangeRecord]:
        """Partitions without a leader may have one, now that this broker can lead."""
        changes = (self._change(partition, Wanted(), with_also=broker_id) for partition in self._leaderless())
        return [change for change in changes if change is not None]

    def _change(
        self, partition: PartitionRecord, wanted: Wanted, *, without: int = NO_LEADER, with_also: int = NO_LEADER
    ) -> PartitionChangeRecord | None:
        election = Election.UNCLEAN if self.may_be_unclean(self._topic(partition)) else Election.ONLINE
        wanted = Wanted(isr=wanted.isr, election=election)
        return partition_change(partition, wanted, self.candidates(partition, without=without, with_also=with_also))

    def _topic(self, partition: PartitionRecord) -> str:
        return self.image.topics_by_id[partition.topic_id].name

    def _leaderless(self) -> Iterator[PartitionRecord]:
        return (partition for partition in self.image.partitions() if partition.leader == NO_LEADER)

    # What an administrator or a timer asks for

    def elect(self, topic: str, index: int, election_type: ElectionType) -> PartitionChangeRecord:
        """The election that ElectLeaders asks for. Raises `ControllerError`: ELECTION_NOT_NEEDED and the like."""
        partition = self.image.partition(topic, index)
        if partition is None:
            what = (
                f"No such topic as {topic}"
                if topic not in self.image.topics
                else f"No such partition as {topic}-{index}"
            )
            raise ControllerError(ErrorCode.unknown_topic_or_partition, what)
        if election_type is ElectionType.PREFERRED:
            election, not_available = Election.PREFERRED, ErrorCode.preferred_leader_not_available
            is_needed = partition.leader != partition.replicas[0]
        else:
            election, not_available = Election.UNCLEAN, ErrorCode.eligible_leaders_not_available
            is_needed = partition.leader == NO_LEADER
        if not is_needed:
            raise ControllerError(ErrorCode.election_not_needed)
        change = partition_change(partition, Wanted(election=election), self.candidates(partition))
        if change is None:
            raise ControllerError(not_available)
        return change

    def preferred(self) -> list[PartitionChangeRecord]:
        """Every partition that its first replica could lead, and does not, is led by it (`auto.leader.rebalance`)."""
        imbalanced = (part for part in self.image.partitions() if part.leader != part.replicas[0])
        return self._all(imbalanced, Election.PREFERRED)

    def unclean(self) -> list[PartitionChangeRecord]:
        """Every partition without a leader whose topic permits it is led by any replica that can."""
        permitted = (part for part in self._leaderless() if self.may_be_unclean(self._topic(part)))
        return self._all(permitted, Election.UNCLEAN)

    def _all(self, partitions: Iterable[PartitionRecord], election: Election) -> list[PartitionChangeRecord]:
        changes = (partition_change(part, Wanted(election=election), self.candidates(part)) for part in partitions)
        return [change for change in changes if change is not None]


def _except(replicas: tuple[int, ...], removed: int) -> tuple[int, ...]:
    return tuple(replica for replica in replicas if replica != removed)
