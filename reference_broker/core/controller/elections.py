"""Leader elections: changes of partitions that follow from broker states, configurations and requests.

Follows: org.apache.kafka.controller.ReplicationControlManager (KIP-460, KIP-841, KIP-858).

| event                              | partitions                       | new leader                                  |
|------------------------------------|----------------------------------|---------------------------------------------|
| a broker is fenced or shuts down   | with this broker in the ISR      | from the ISR, without this broker           |
| a broker is unfenced               | without a leader                 | from the ISR, with this broker              |
| ElectLeaders, preferred            | requested                        | the first replica, if it is in the ISR      |
| ElectLeaders, unclean              | requested, without a leader      | any replica, if no ISR member can lead      |
| timer of preferred elections       | not led by the first replica     | the first replica, if it is in the ISR      |
| timer of unclean elections         | without a leader                 | any replica, if no ISR member can lead      |

The timers are in `periodic_tasks`. The election of the last row also occurs when `unclean.leader.election.enable` is
changed. It is limited to topics for which this property is true. For these topics, the first two events may elect
uncleanly too. If a broker is unregistered, or registers with a new incarnation, its partitions change as if it were
fenced.

A broker may lead if it is registered, and is neither fenced nor in controlled shutdown (KIP-841). Moreover, the
replica's log directory must be online (KIP-858).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum

from reference_broker.core.configuration.configuration import BrokerConfiguration
from reference_broker.core.configuration.resource import ResourceType
from reference_broker.core.controller.errors import ControllerError
from reference_broker.core.controller.partition_changes import Candidates, Election, RequestedChange, partition_change
from reference_broker.core.controller.placement import UNASSIGNED, log_directory
from reference_broker.core.metadata.image import CLUSTER_DEFAULT, MetadataImage
from reference_broker.protocol.errors import ErrorCode
from reference_broker.protocol.metadata_records import NO_LEADER, PartitionChangeRecord, PartitionRecord

UNCLEAN_ELECTION = "unclean.leader.election.enable"


class ElectionType(IntEnum):
    """Type of an election, with the numbers of ElectLeaders (KIP-460)."""

    PREFERRED = 0
    UNCLEAN = 1


@dataclass(frozen=True, slots=True)
class Elections:
    """Leader elections that are computed from one metadata image.

    :param configuration: configuration of the controller's node, for properties that the image does not set.
    :param node_id: id of the controller's node, whose dynamic properties count.
    """

    image: MetadataImage
    configuration: BrokerConfiguration
    node_id: int

    def unclean_leader_election_enabled_for_topic(self, topic: str) -> bool:
        """Whether the effective configuration of the topic lets a replica outside the ISR lead."""
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
        self, partition: PartitionRecord, *, broker_to_remove: int = NO_LEADER, broker_to_add: int = NO_LEADER
    ) -> Candidates:
        """Return which brokers may lead a partition, and the directories of new replicas.

        :param broker_to_remove: a broker that may not lead, because it will be fenced or unregistered, or shuts down.
        :param broker_to_add: a fenced broker that may lead, because it is about to be unfenced.
        """

        def is_acceptable(broker_id: int) -> bool:
            if broker_id == broker_to_remove or not (broker_id == broker_to_add or self.image.is_active(broker_id)):
                return False
            return self._is_directory_online(partition, broker_id)

        return Candidates(is_acceptable, lambda broker_id: log_directory(self.image, broker_id))

    def _is_directory_online(self, partition: PartitionRecord, broker_id: int) -> bool:
        """Whether the log directory of a replica on a registered broker is online (`DirectoryId.isOnline`).

        An unknown directory counts as online: `UNASSIGNED`, or Kafka's MIGRATING, which is null in kio. Kafka's LOST is
        never online, because no broker can register this id.
        """
        directories = dict(zip(partition.replicas, partition.directories, strict=True))
        directory = directories.get(broker_id, UNASSIGNED)
        log_dirs = self.image.brokers[broker_id].log_dirs
        return directory in {None, UNASSIGNED} or not log_dirs or directory in log_dirs

    # Changes of a broker's state

    def remove_from_isrs(self, broker_id: int) -> list[PartitionChangeRecord]:
        """Return the changes that remove a broker from every ISR, and that elect other leaders where it led.

        If the broker is the last member of an ISR, it stays in the ISR and the partition has no leader, unless another
        leader is elected uncleanly.
        """
        partitions = (partition for partition in self.image.partitions() if broker_id in partition.isr)
        changes = (
            self._change(partition, RequestedChange(isr=_except(partition.isr, broker_id)), broker_to_remove=broker_id)
            for partition in partitions
        )
        return [change for change in changes if change is not None]

    def elect_leaderless(self, broker_id: int) -> list[PartitionChangeRecord]:
        """Return the changes that elect leaders of partitions without a leader, as if this broker were unfenced."""
        changes = (
            self._change(partition, RequestedChange(), broker_to_add=broker_id) for partition in self._leaderless()
        )
        return [change for change in changes if change is not None]

    def _change(
        self,
        partition: PartitionRecord,
        requested: RequestedChange,
        *,
        broker_to_remove: int = NO_LEADER,
        broker_to_add: int = NO_LEADER,
    ) -> PartitionChangeRecord | None:
        election = (
            Election.UNCLEAN
            if self.unclean_leader_election_enabled_for_topic(self._topic(partition))
            else Election.ONLINE
        )
        requested = RequestedChange(isr=requested.isr, election=election)
        return partition_change(
            partition,
            requested,
            self.candidates(partition, broker_to_remove=broker_to_remove, broker_to_add=broker_to_add),
        )

    def _topic(self, partition: PartitionRecord) -> str:
        return self.image.topics_by_id[partition.topic_id].name

    def _leaderless(self) -> Iterator[PartitionRecord]:
        return (partition for partition in self.image.partitions() if partition.leader == NO_LEADER)

    # Requests and timers

    def elect_leader(self, topic: str, index: int, election_type: ElectionType) -> PartitionChangeRecord:
        """Return the change of a requested election. Raises `ControllerError`, for example ELECTION_NOT_NEEDED."""
        partition = self.image.partition(topic, index)
        if partition is None:
            message = (
                f"No such topic as {topic}"
                if topic not in self.image.topics
                else f"No such partition as {topic}-{index}"
            )
            raise ControllerError(ErrorCode.unknown_topic_or_partition, message)
        if election_type is ElectionType.PREFERRED:
            election, not_available = Election.PREFERRED, ErrorCode.preferred_leader_not_available
            is_needed = partition.leader != partition.replicas[0]
        else:
            election, not_available = Election.UNCLEAN, ErrorCode.eligible_leaders_not_available
            is_needed = partition.leader == NO_LEADER
        if not is_needed:
            raise ControllerError(ErrorCode.election_not_needed)
        change = partition_change(partition, RequestedChange(election=election), self.candidates(partition))
        if change is None:
            raise ControllerError(not_available)
        return change

    def maybe_balance_partition_leaders(self) -> list[PartitionChangeRecord]:
        """Return the changes that move leaderships to preferred replicas (`auto.leader.rebalance.enable`).

        A partition whose preferred replica cannot lead keeps its leader.
        """
        imbalanced = (part for part in self.image.partitions() if part.leader != part.replicas[0])
        return self._all(imbalanced, Election.PREFERRED)

    def maybe_elect_unclean_leaders(self) -> list[PartitionChangeRecord]:
        """Return the changes that elect any available replica where there is no leader, if the topic permits it."""
        permitted = (
            part for part in self._leaderless() if self.unclean_leader_election_enabled_for_topic(self._topic(part))
        )
        return self._all(permitted, Election.UNCLEAN)

    def _all(self, partitions: Iterable[PartitionRecord], election: Election) -> list[PartitionChangeRecord]:
        changes = (
            partition_change(part, RequestedChange(election=election), self.candidates(part)) for part in partitions
        )
        return [change for change in changes if change is not None]


def _except(replicas: tuple[int, ...], removed: int) -> tuple[int, ...]:
    return tuple(replica for replica in replicas if replica != removed)
