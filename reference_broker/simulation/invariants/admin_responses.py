"""Responses of the active controller to administrators. `controller_responses` has the rest of `controller-response`.

Only fields that depend on fenced brokers or on reassignments in progress are checked here. The requirements specify the
responses of a healthy cluster (`conformance/requirements`: admin, configs, leadership, reassignment).

| request                    | what must hold                                                                         |
|----------------------------|----------------------------------------------------------------------------------------|
| CreateTopics,              | the replicas of new partitions are on distinct registered brokers; the ISR has no      |
| CreatePartitions           | broker that is fenced or shuts down; the leader is in the ISR. CreateTopics creates    |
|                            | the requested number of replicas. If it has no assignments, the replicas of each       |
|                            | partition are on as many racks as possible, and the first is on an unfenced broker     |
| AlterPartitionReassign-    | the partition has all replicas of the target; every other replica is being removed or  |
| ments                      | is removed. A cancellation removes the replicas that the reassignment has added        |
|                            | (KIP-455). It may be rejected only if no other replica is in sync. A reassignment may  |
|                            | replace an ongoing one: if it adds no replica, the adding replicas stay, and if it     |
|                            | removes none, the removing replicas stay (`changePartitionReassignment`). A request    |
|                            | may forbid a change of the replication factor: then INVALID_REPLICATION_FACTOR is      |
|                            | returned for each partition whose replication factor would change, unless it has       |
|                            | another error (KIP-860). A partition with an error is unchanged                        |
| ListPartitionReassignments | the reassignments in progress of the requested partitions, or of all partitions if the |
|                            | topics are null, with the adding and removing replicas                                 |
| ElectLeaders               | a preferred election has no error only if the preferred leader was in the ISR before   |
|                            | the election (KIP-460). Each partition with an error, and no other, has a message. For |
|                            | an unknown partition, it states whether the topic or only the partition is unknown     |
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from reference_broker.core.metadata.image import MetadataImage
from reference_broker.protocol.errors import ErrorCode
from reference_broker.protocol.metadata_records import MetadataRecord, PartitionRecord

Comparison = tuple[str, object, object]
"""The name of a checked value, the value in the response or the records, and the expected value."""


@dataclass(frozen=True, slots=True)
class Decision:
    """A processed request, its records and response, and the metadata before and after the records."""

    cluster_id: str
    before: MetadataImage
    after: MetadataImage
    records: Sequence[MetadataRecord]
    request: Any
    response: Any


_CREATE_TOPICS, _CREATE_PARTITIONS, _ELECT_LEADERS, _REASSIGN, _LIST_REASSIGNMENTS = 19, 37, 43, 45, 46
_PREFERRED: Final = 0
_MAY_CHANGE_FACTOR: Final = "allow_replication_factor_change"


# --- topics


def _compare_create_topics(decision: Decision) -> Iterator[Comparison]:
    requested = {topic.name: topic for topic in decision.request.topics}
    for name in decision.after.topics.keys() - decision.before.topics.keys():
        partitions = list(decision.after.topics[name].partitions.values())
        for partition in partitions:
            yield from _compare_placement(decision, f"{name}-{partition.partition_id}", partition)
        if not requested[name].assignments:
            yield from _compare_spread(decision.before, name, partitions)
        if (factor := requested[name].replication_factor) > 0:
            yield f"{name}: numbers of replicas", {len(partition.replicas) for partition in partitions}, {factor}


def _compare_create_partitions(decision: Decision) -> Iterator[Comparison]:
    for name, topic in decision.after.topics.items():
        for index in topic.partitions.keys() - decision.before.topics[name].partitions.keys():
            yield from _compare_placement(decision, f"{name}-{index}", topic.partitions[index])


def _compare_placement(decision: Decision, where: str, placed: PartitionRecord) -> Iterator[Comparison]:
    yield f"{where}: number of distinct replicas", len(set(placed.replicas)), len(placed.replicas)
    yield f"{where}: replicas on unregistered brokers", set(placed.replicas) - decision.before.brokers.keys(), set()
    active = {replica for replica in placed.replicas if decision.before.is_active(replica)}
    yield f"{where}: members of the ISR that are no active replicas", set(placed.isr) - active, set()
    yield f"{where}: whether the leader is in the ISR", placed.leader in placed.isr, True
    initial = placed.leader_epoch, placed.partition_epoch, placed.leader_recovery_state
    yield f"{where}: leader epoch, partition epoch, recovery state", initial, (0, 0, 0)
    yield f"{where}: whether the partition is being reassigned", _is_reassigned(placed), False


def _compare_spread(image: MetadataImage, name: str, placed: Sequence[PartitionRecord]) -> Iterator[Comparison]:
    """Compare the placement with that of `StripedReplicaPlacer`.

    Each partition is on as many racks as possible. Its first replica, the preferred leader, is on an unfenced broker.
    Two more rules apply if there is only one rack. A fenced broker has a replica only if all unfenced brokers have one.
    The numbers of preferred leaders on the unfenced brokers differ by at most one.
    """
    usable = {broker.broker_id: broker for broker in image.brokers.values() if not broker.in_controlled_shutdown}
    alive = {broker_id for broker_id, broker in usable.items() if not broker.fenced}
    racks = {broker.rack for broker in usable.values()}
    for partition in placed:
        where = f"{name}-{partition.partition_id}"
        found = {usable[replica].rack for replica in partition.replicas if replica in usable}
        yield f"{where}: number of racks", len(found), min(len(partition.replicas), len(racks))
        yield f"{where}: whether the first replica is on an unfenced broker", partition.replicas[0] in alive, True
        is_needed = set(partition.replicas) <= alive or alive <= set(partition.replicas)
        yield f"{where}: whether fenced brokers are used only if necessary", is_needed or len(racks) > 1, True
    if len(racks) == 1:
        leads = [sum(partition.replicas[0] == broker_id for partition in placed) for broker_id in sorted(alive)]
        is_even = max(leads) - min(leads) <= 1
        yield f"{name}: whether the numbers of preferred leaders {leads} differ by at most one", is_even, True


# --- partitions


def _compare_reassignments(decision: Decision) -> Iterator[Comparison]:
    requested = {
        (topic.name, part.partition_index): part for topic in decision.request.topics for part in topic.partitions
    }
    for topic in decision.response.responses:
        for part in topic.partitions:
            before = decision.before.partition(topic.name, part.partition_index)
            after = decision.after.partition(topic.name, part.partition_index)
            where, target = f"{topic.name}-{part.partition_index}", requested[topic.name, part.partition_index].replicas
            if part.error_code is not ErrorCode.none:
                yield f"{where}: partition after an error", after, before
                if target is None and before is not None and _is_reassigned(before):
                    kept = set(before.isr) - set(before.adding_replicas)
                    yield f"{where}: replicas in sync after a cancellation that is rejected", kept, set()
            if before is not None and target is not None and not getattr(decision.request, _MAY_CHANGE_FACTOR, True):
                is_changed = len(target) != len(set(before.replicas) - set(before.removing_replicas))
                is_rejected = part.error_code is ErrorCode.invalid_replication_factor
                is_other_error = not is_rejected and part.error_code is not ErrorCode.none
                label = f"{where}: whether INVALID_REPLICATION_FACTOR is returned"
                yield label, is_rejected, is_changed and not is_other_error
            if part.error_code is ErrorCode.none and before is not None and after is not None:
                yield from _compare_target(where, target, before, after)


def _compare_target(
    where: str, target: Sequence[int] | None, before: PartitionRecord, after: PartitionRecord
) -> Iterator[Comparison]:
    if target is None:
        yield f"{where}: whether the partition is still being reassigned", _is_reassigned(after), False
        kept = tuple(replica for replica in before.replicas if replica not in before.adding_replicas)
        yield f"{where}: replicas", after.replicas, kept
        return
    adding = set(target) - set(before.replicas) or set(before.adding_replicas)
    removing = set(before.replicas) - set(target) or set(before.removing_replicas)
    kept = tuple(replica for replica in target if replica not in removing)
    staying = tuple(replica for replica in after.replicas if replica not in after.removing_replicas)
    yield f"{where}: replicas that stay", staying, kept
    yield f"{where}: members of the ISR that are not replicas", set(after.isr) - set(after.replicas), set()
    if _is_reassigned(after):
        yield f"{where}: replicas that are added", set(after.adding_replicas), adding
        yield f"{where}: replicas that are removed", set(after.removing_replicas), removing


def _is_reassigned(partition: PartitionRecord) -> bool:
    return bool(partition.adding_replicas or partition.removing_replicas)


def _compare_list_reassignments(decision: Decision) -> Iterator[Comparison]:
    yield "number of records of a read-only request", len(decision.records), 0
    requested = decision.request.topics
    reassigned = {
        (topic.name, index): (record.replicas, record.adding_replicas, record.removing_replicas)
        for topic in decision.before.topics.values()
        for index, record in topic.partitions.items()
        if _is_reassigned(record) and (requested is None or _is_among(requested, topic.name, index))
    }
    returned = {
        (topic.name, part.partition_index): (part.replicas, part.adding_replicas, part.removing_replicas)
        for topic in decision.response.topics
        for part in topic.partitions
    }
    yield "reassignments", returned, reassigned


def _is_among(requested: Sequence[Any], name: str, index: int) -> bool:
    return any(topic.name == name and index in topic.partition_indexes for topic in requested)


def _compare_elect_leaders(decision: Decision) -> Iterator[Comparison]:
    is_preferred = getattr(decision.request, "election_type", _PREFERRED) == _PREFERRED
    for result in decision.response.replica_election_results:
        for part in result.partition_result:
            where, has_error = f"{result.topic}-{part.partition_id}", part.error_code is not ErrorCode.none
            yield f"{where}: whether the result has a message", bool(part.error_message), has_error
            if part.error_code is ErrorCode.unknown_topic_or_partition:
                is_known_topic = result.topic in decision.before.topics
                has_such_message = "such partition" in part.error_message
                yield f"{where}: whether only the partition is unknown", has_such_message, is_known_topic
            before = decision.before.partition(result.topic, part.partition_id)
            if is_preferred and not has_error and before is not None:
                yield f"{where}: whether the preferred leader was in sync", before.replicas[0] in before.isr, True


COMPARISONS: Final[dict[int, Callable[[Decision], Iterator[Comparison]]]] = {
    _CREATE_TOPICS: _compare_create_topics,
    _CREATE_PARTITIONS: _compare_create_partitions,
    _ELECT_LEADERS: _compare_elect_leaders,
    _REASSIGN: _compare_reassignments,
    _LIST_REASSIGNMENTS: _compare_list_reassignments,
}
"""The comparisons of a request, by API key."""
