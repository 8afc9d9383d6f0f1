"""What an active controller answers to administrators: the other half of `answer-of-controller`.

| request                    | what must hold                                                                         |
|----------------------------|----------------------------------------------------------------------------------------|
| any                        | what was asked for is answered once each, and nothing else; what is refused stays as   |
|                            | it is; `validate_only` leaves everything                                               |
| CreateTopics               | what is made was not there, and has as many partitions and replicas as the answer says |
| DeleteTopics               | what is deleted was there, and is gone                                                 |
| CreatePartitions           | a topic has as many as were asked for, which is more than before; the others stay      |
| AlterPartitionReassign-    | the target's replicas are there, those that it lacks are on their way out, or gone;    |
| ments                      | without a target what was coming is gone (KIP-455)                                     |
| ListPartitionReassignments | what moves, among what was asked for, with who comes and goes                          |
| ElectLeaders               | the first replica leads, or any at all; it was another, or none, before (KIP-460)      |
| IncrementalAlterConfigs,   | the resource has these values, and keeps its others                                    |
| AlterConfigs               | it has these, and no others                                                            |
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from reference_broker.core.metadata.image import MetadataImage
from reference_broker.protocol.errors import ErrorCode
from reference_broker.protocol.metadata_records import MetadataRecord, PartitionRecord

Claim = tuple[str, object, object]
"""What is claimed, as the answer or the records have it, as it must be."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What was asked, the metadata before and after the records that it leads to, and what is answered."""

    cluster_id: str
    before: MetadataImage
    after: MetadataImage
    records: Sequence[MetadataRecord]
    asked: Any
    response: Any


_CREATE_TOPICS, _DELETE_TOPICS, _ALTER_CONFIGS, _CREATE_PARTITIONS, _ELECT_LEADERS = 19, 20, 33, 37, 43
_INCREMENTAL_ALTER_CONFIGS, _REASSIGN, _LIST_REASSIGNMENTS = 44, 45, 46
_DEFAULT: Final = -1
_UNCLEAN: Final = 1
_DELETE, _APPEND, _SUBTRACT = 1, 2, 3


def _same(what: str, said: Sequence[Any], asked: Sequence[Any]) -> Iterator[Claim]:
    """What was asked for is answered once each, in whatever order."""
    yield what, sorted(map(repr, said)), sorted({repr(each) for each in asked})


def _of_validation(decision: Decision) -> Iterator[Claim]:
    if getattr(decision.asked, "validate_only", False):
        yield "records of a validation", len(decision.records), 0


# --- topics


def _of_creations(decision: Decision) -> Iterator[Claim]:
    yield from _of_validation(decision)
    wanted = {topic.name: topic for topic in decision.asked.topics}
    yield from _same("topics", [said.name for said in decision.response.topics], list(wanted))
    made = set()
    for said in decision.response.topics:
        before, after = decision.before.topics.get(said.name), decision.after.topics.get(said.name)
        if said.error_code is ErrorCode.topic_already_exists:
            yield f"{said.name}: there already", before is not None, True
        if said.error_code is not ErrorCode.none:
            continue
        made.add(said.name)
        yield f"{said.name}: there before", before, None
        asked = wanted[said.name]
        if not asked.assignments and hasattr(said, "num_partitions"):
            for field in ("num_partitions", "replication_factor"):
                if getattr(asked, field) != _DEFAULT:
                    yield f"{said.name}: {field}", getattr(said, field), getattr(asked, field)
        if not decision.asked.validate_only:
            yield f"{said.name}: there afterwards", after is not None, True
            assert after is not None
            yield f"{said.name}: topic_id", getattr(said, "topic_id", after.topic_id), after.topic_id
            yield f"{said.name}: partitions", sorted(after.partitions), list(range(len(after.partitions)))
            if hasattr(said, "num_partitions"):
                yield f"{said.name}: num_partitions", said.num_partitions, len(after.partitions)
            for placed in after.partitions.values():
                yield from _of_placed(decision, f"{said.name}-{placed.partition_id}", placed)
                factor = getattr(said, "replication_factor", len(placed.replicas))
                yield f"{said.name}: replication_factor", len(placed.replicas), factor
            if not asked.assignments:
                yield from _of_spread(decision.before, said.name, list(after.partitions.values()))
            kept = {config.name: config.value for config in asked.configs if config.value is not None}
            yield f"{said.name}: configs", decision.after.topic_overrides(said.name), kept
    if not getattr(decision.asked, "validate_only", False):
        yield "topics made", set(decision.after.topics) - set(decision.before.topics), made


def _of_placed(decision: Decision, where: str, placed: PartitionRecord) -> Iterator[Claim]:
    yield f"{where}: replicas once each", len(set(placed.replicas)), len(placed.replicas)
    yield f"{where}: replicas on brokers", set(placed.replicas) <= decision.before.brokers.keys(), True
    is_active = [decision.before.is_active(replica) for replica in placed.isr]
    yield f"{where}: an ISR of active replicas", all(is_active) and set(placed.isr) <= set(placed.replicas), True
    yield f"{where}: a leader in sync", placed.leader in placed.isr, True
    begun = placed.leader_epoch, placed.partition_epoch, placed.leader_recovery_state
    yield f"{where}: leader epoch, partition epoch, recovery state", begun, (0, 0, 0)
    yield f"{where}: moves", _moves(placed), False


def _of_spread(image: MetadataImage, name: str, placed: Sequence[PartitionRecord]) -> Iterator[Claim]:
    """Each partition is in as many racks as it can be; then who is not fenced comes first, and leads as many as others.

    The first replica, which is to lead, is never a fenced one.
    """
    usable = {broker.broker_id: broker for broker in image.brokers.values() if not broker.in_controlled_shutdown}
    alive = {broker_id for broker_id, broker in usable.items() if not broker.fenced}
    racks = {broker.rack for broker in usable.values()}
    for partition in placed:
        where = f"{name}-{partition.partition_id}"
        found = {usable[replica].rack for replica in partition.replicas if replica in usable}
        yield f"{where}: racks", len(found), min(len(partition.replicas), len(racks))
        yield f"{where}: first on a fenced broker", partition.replicas[0] in alive, True
        is_needed = set(partition.replicas) <= alive or alive <= set(partition.replicas)
        yield f"{where}: on a fenced broker, with others free", is_needed or len(racks) > 1, True
    if len(racks) == 1:
        leads = [sum(partition.replicas[0] == broker_id for partition in placed) for broker_id in sorted(alive)]
        yield f"{name}: leads many more than another: {leads}", max(leads) - min(leads) <= 1, True


def _of_deletions(decision: Decision) -> Iterator[Claim]:
    said = [result for result in decision.response.responses if result.error_code is ErrorCode.none]
    gone = {result.topic_id for result in said if getattr(result, "topic_id", None) is not None}
    yield "topics gone", set(decision.before.topics_by_id) - set(decision.after.topics_by_id), gone
    for result in said:
        known = decision.before.topics_by_id.get(getattr(result, "topic_id", None))  # type: ignore[arg-type]
        if known is not None:
            yield "name", result.name, known.name
    for result in decision.response.responses:
        if result.error_code is ErrorCode.unknown_topic_or_partition:
            yield f"{result.name}: there", result.name in decision.before.topics, False
        if result.error_code is ErrorCode.unknown_topic_id:
            yield f"{result.topic_id}: there", result.topic_id in decision.before.topics_by_id, False
    count = len(getattr(decision.asked, "topics", ()) or getattr(decision.asked, "topic_names", ()))
    yield "no more answers than questions", len(decision.response.responses) <= count, True


def _of_new_partitions(decision: Decision) -> Iterator[Claim]:
    yield from _of_validation(decision)
    wanted = {topic.name: topic for topic in decision.asked.topics}
    yield from _same("topics", [said.name for said in decision.response.results], list(wanted))
    for said in decision.response.results:
        before, after = decision.before.topics.get(said.name), decision.after.topics.get(said.name)
        had = 0 if before is None else len(before.partitions)
        has = 0 if after is None else len(after.partitions)
        count = wanted[said.name].count
        if said.error_code is ErrorCode.none:
            yield f"{said.name}: more than before", count > had, True
            yield f"{said.name}: partitions", has, had if decision.asked.validate_only else count
            for index in range(had, has):
                assert after is not None
                yield from _of_placed(decision, f"{said.name}-{index}", after.partitions[index])
        else:
            yield f"{said.name}: partitions after a refusal", has, had
        if said.error_code is ErrorCode.unknown_topic_or_partition:
            yield f"{said.name}: there", before is not None, False
        if said.error_code is ErrorCode.invalid_partitions:
            yield f"{said.name}: more than before", count > had, False


# --- partitions


def _of_reassignments(decision: Decision) -> Iterator[Claim]:
    wanted = {(topic.name, part.partition_index): part for topic in decision.asked.topics for part in topic.partitions}
    said = [(topic.name, part) for topic in decision.response.responses for part in topic.partitions]
    yield from _same("partitions", [(name, part.partition_index) for name, part in said], list(wanted))
    for name, part in said:
        before = decision.before.partition(name, part.partition_index)
        after = decision.after.partition(name, part.partition_index)
        where, target = f"{name}-{part.partition_index}", wanted[name, part.partition_index].replicas
        if part.error_code is not ErrorCode.none:
            yield f"{where}: after a refusal", after, before
        if part.error_code is ErrorCode.unknown_topic_or_partition:
            yield f"{where}: there", before, None
        if part.error_code is ErrorCode.no_reassignment_in_progress:
            yield f"{where}: moves", target is None and before is not None and _moves(before), False
        if part.error_code is ErrorCode.none:
            yield f"{where}: there", before is not None, True
            assert before is not None
            assert after is not None
            yield from _of_target(where, target, before, after)


def _of_target(
    where: str, target: Sequence[int] | None, before: PartitionRecord, after: PartitionRecord
) -> Iterator[Claim]:
    if target is None:
        yield f"{where}: moves afterwards", _moves(after), False
        kept = tuple(replica for replica in before.replicas if replica not in before.adding_replicas)
        yield f"{where}: replicas", after.replicas, kept
        return
    yield f"{where}: replicas of the target that are missing", set(target) - set(after.replicas), set()
    yield f"{where}: in sync without being replicas", set(after.isr) - set(after.replicas), set()
    if _moves(before):
        return  # what that one was moving may go on
    if not _moves(after):
        yield f"{where}: replicas", after.replicas, tuple(target)
        return
    staying = tuple(replica for replica in after.replicas if replica not in after.removing_replicas)
    yield f"{where}: the target", staying, tuple(target)
    yield f"{where}: replicas that come", set(after.adding_replicas), set(target) - set(before.replicas)
    yield f"{where}: replicas that go", set(after.removing_replicas), set(before.replicas) - set(target)


def _moves(partition: PartitionRecord) -> bool:
    return bool(partition.adding_replicas or partition.removing_replicas)


def _of_movements(decision: Decision) -> Iterator[Claim]:
    yield "records of a question", len(decision.records), 0
    asked = decision.asked.topics
    moving = {
        (topic.name, index): (record.replicas, record.adding_replicas, record.removing_replicas)
        for topic in decision.before.topics.values()
        for index, record in topic.partitions.items()
        if _moves(record) and (asked is None or _is_among(asked, topic.name, index))
    }
    told = {
        (topic.name, part.partition_index): (part.replicas, part.adding_replicas, part.removing_replicas)
        for topic in decision.response.topics
        for part in topic.partitions
    }
    yield "what moves", told, moving


def _is_among(asked: Sequence[Any], name: str, index: int) -> bool:
    return any(topic.name == name and index in topic.partition_indexes for topic in asked)


def _of_elections(decision: Decision) -> Iterator[Claim]:
    asked = decision.asked.topic_partitions
    said = [
        (result.topic, part)
        for result in decision.response.replica_election_results
        for part in result.partition_result
    ]
    if asked is not None:
        wanted = [(topic.topic, index) for topic in asked for index in topic.partitions]
        yield from _same("partitions", [(name, part.partition_id) for name, part in said], wanted)
    is_unclean = getattr(decision.asked, "election_type", 0) == _UNCLEAN
    for name, part in said:
        where = f"{name}-{part.partition_id}"
        before = decision.before.partition(name, part.partition_id)
        after = decision.after.partition(name, part.partition_id)
        if part.error_code is ErrorCode.unknown_topic_or_partition:
            yield f"{where}: there", before, None
        if before is None or after is None:
            continue
        is_needed = before.leader == -1 if is_unclean else before.leader != before.replicas[0]
        yield f"{where}: not needed", part.error_code is ErrorCode.election_not_needed, not is_needed
        if part.error_code is not ErrorCode.none:
            yield f"{where}: after a refusal", after, before
        elif is_unclean:
            yield f"{where}: leader", after.leader in after.isr, True
        else:
            yield f"{where}: leader", after.leader, after.replicas[0]
            yield f"{where}: in sync before", after.leader in before.isr, True


# --- properties


def _of_properties(decision: Decision) -> Iterator[Claim]:
    yield from _of_validation(decision)
    wanted = {(each.resource_type, each.resource_name): each for each in decision.asked.resources}
    told = [(said.resource_type, said.resource_name) for said in decision.response.responses]
    yield from _same("resources", told, list(wanted))
    for said in decision.response.responses:
        resource = said.resource_type, said.resource_name
        before = dict(decision.before.overrides(*resource))
        after = dict(decision.after.overrides(*resource))
        if said.error_code is not ErrorCode.none or decision.asked.validate_only:
            yield f"{resource}: after a refusal", after, before
            continue
        asked = wanted[resource].configs
        if type(decision.asked).__api_key__ == _INCREMENTAL_ALTER_CONFIGS:
            gone = {config.name for config in asked if config.config_operation == _DELETE or config.value is None}
            expected = {name: value for name, value in before.items() if name not in gone}
            lists = [config for config in asked if config.config_operation in {_APPEND, _SUBTRACT}]
            for config in lists:
                yield from _of_list(config, before.get(config.name), after.pop(config.name))
                expected.pop(config.name, None)
            asked = [config for config in asked if config not in lists]
        else:
            gone, expected = set(), {}
        expected |= {config.name: config.value for config in asked if config.name not in gone}
        yield f"{resource}: properties", after, expected


def _of_list(config: Any, before: str | None, after: str) -> Iterator[Claim]:
    """What was in a list, or in its default, stays but for what is taken out, and each part is there once."""
    parts, said = after.split(","), set(config.value.split(","))
    if config.config_operation == _APPEND:
        yield f"{config.name}: appended", said <= set(parts), True
    else:
        yield f"{config.name}: subtracted", said & set(parts), set()
    if before is not None:
        kept = {part for part in before.split(",") if part}
        yield f"{config.name}: the rest", set(parts) - said - {""}, kept - said
    yield f"{config.name}: parts once each", len(set(parts)), len(parts)
    yield f"{config.name}: an empty part", "" in parts and after != "", False


CLAIMS: Final[dict[int, Callable[[Decision], Iterator[Claim]]]] = {
    _CREATE_TOPICS: _of_creations,
    _DELETE_TOPICS: _of_deletions,
    _ALTER_CONFIGS: _of_properties,
    _CREATE_PARTITIONS: _of_new_partitions,
    _ELECT_LEADERS: _of_elections,
    _INCREMENTAL_ALTER_CONFIGS: _of_properties,
    _REASSIGN: _of_reassignments,
    _LIST_REASSIGNMENTS: _of_movements,
}
"""By API key."""
