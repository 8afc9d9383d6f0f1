"""What an active controller answers follows from its metadata as they are when it decides: `answer-of-controller`.

A decision is a request, the records that carry it out, and the answer that is given once these are committed. It is
held against the controller's image before the records and after them, and not against the code that decides. This
module has what brokers ask of it, `topic_decisions` what administrators ask.

| request             | what must hold                                                                                |
|---------------------|-----------------------------------------------------------------------------------------------|
| any                 | what is refused as a whole leaves no records                                                  |
| AlterPartition      | each partition is answered once. What is taken comes from its leader in its epochs, and names |
|                     | replicas that may be in sync (KIP-497, 841, 903); the answer is the partition as it is then.  |
|                     | What is refused stays as it is, and has what it is refused for                                |
| BrokerRegistration  | the record says what the broker said; the same run keeps its epoch, another one begins fenced |
| BrokerHeartbeat     | only the registered epoch is accepted; the response has the fencing of the metadata then; no  |
|                     | broker is unfenced before it has read its registration, or shuts down while it leads; one     |
|                     | that leads nothing may shut down at once (KIP-631)                                            |
| AllocateProducerIds | the block begins where the last one ended                                                     |
| UnregisterBroker    | the broker is gone                                                                            |
| AssignReplicasTo-   | each partition has one result; without an error the broker's replica is then in the directory |
| Dirs                | of the request, and with one there is no such replica (KIP-858)                               |
"""

from collections.abc import Callable, Iterator
from typing import Any, Final

from reference_broker.core.metadata.image import MetadataImage
from reference_broker.core.tracer import RequestDecided
from reference_broker.protocol.errors import ErrorCode
from reference_broker.protocol.metadata_records import PartitionRecord, RegisterBrokerRecord
from reference_broker.simulation.invariants.topic_decisions import CLAIMS as TOPIC_CLAIMS
from reference_broker.simulation.invariants.topic_decisions import Claim, Decision
from reference_broker.simulation.invariants.violation import InvariantViolation
from reference_broker.simulation.invariants.watch import Watched

_ANY_EPOCH: Final = -1
_RECOVERING: Final = 1
_ALTER_PARTITION: Final = 56
_REGISTRATION, _HEARTBEAT, _UNREGISTRATION, _ALLOCATION, _ASSIGNMENT = 62, 63, 64, 67, 73


def check_decision(watched: Watched, event: RequestDecided) -> None:
    """See the table. Raises `InvariantViolation`."""
    request, records, response = event.request, event.records, event.response
    assert watched.node is not None
    assert watched.node.controller is not None
    claims = _CLAIMS.get(request.api_key)
    if claims is None:
        return
    before = after = watched.node.controller.image
    if records:
        after = before.copy()
        for record in records:
            after.apply(record)
    decision = Decision(watched.node.runtime.identity.cluster_id, before, after, records, request.body, response)
    for what, said, is_so in claims(decision):
        if said != is_so:
            detail = f"{type(request.body).__name__} is answered with {what} {said!r}, which should be {is_so!r}"
            raise InvariantViolation("answer-of-controller", f"node {watched.node_id}: {detail}")


# --- brokers


def _check_registered(image: MetadataImage, asked: Any) -> Iterator[Claim]:
    broker = image.brokers.get(asked.broker_id)
    yield "broker_epoch", asked.broker_epoch, None if broker is None else broker.broker_epoch


def _of_registration(decision: Decision) -> Iterator[Claim]:
    asked, before = decision.asked, decision.before.brokers.get(decision.asked.broker_id)
    yield "cluster_id", asked.cluster_id, decision.cluster_id
    record = decision.after.brokers.get(asked.broker_id)
    assert isinstance(record, RegisterBrokerRecord)
    yield "broker_epoch", decision.response.broker_epoch, record.broker_epoch
    yield "incarnation_id", record.incarnation_id, asked.incarnation_id
    yield "rack", record.rack, asked.rack
    listeners = [(each.name, each.host, each.port) for each in asked.listeners]
    yield "end_points", [(each.name, each.host, each.port) for each in record.end_points], listeners
    features = [(each.name, each.min_supported_version, each.max_supported_version) for each in asked.features]
    said = [(each.name, each.min_supported_version, each.max_supported_version) for each in record.features]
    yield "features", said, features
    yield "log_dirs", record.log_dirs, tuple(getattr(asked, "log_dirs", ()))
    if before is not None and before.incarnation_id == asked.incarnation_id:
        kept = before.broker_epoch, before.fenced, before.in_controlled_shutdown
        yield "epoch and state", (record.broker_epoch, record.fenced, record.in_controlled_shutdown), kept
    else:
        yield "state", (record.fenced, record.in_controlled_shutdown), (True, False)
        yield "a later epoch", before is None or record.broker_epoch > before.broker_epoch, True


def _of_heartbeat(decision: Decision) -> Iterator[Claim]:
    asked, said, before = decision.asked, decision.response, decision.before
    yield from _check_registered(before, asked)
    was, now = before.brokers[asked.broker_id], decision.after.brokers[asked.broker_id]
    is_caught_up = asked.current_metadata_offset >= asked.broker_epoch
    yield "is_caught_up", said.is_caught_up, is_caught_up
    yield "is_fenced", said.is_fenced, now.fenced
    if was.fenced and not asked.want_shut_down:
        yield "fenced from then on", now.fenced, asked.want_fence or not is_caught_up
    if not was.fenced and asked.want_fence and not asked.want_shut_down and not was.in_controlled_shutdown:
        yield "fenced, as it wishes", now.fenced, True
    if was.in_controlled_shutdown and not was.fenced:
        yield "fenced while it shuts down", now.fenced, said.should_shut_down
    if not asked.want_shut_down and not was.in_controlled_shutdown:
        yield "should_shut_down", said.should_shut_down, False
        yield "in controlled shutdown", now.in_controlled_shutdown, False
    if asked.want_shut_down and not was.in_controlled_shutdown:
        needs_others_to_lead = not was.fenced and not asked.want_fence and bool(_led(before, asked.broker_id))
        yield "should_shut_down", said.should_shut_down, not needs_others_to_lead
    if asked.want_shut_down and not said.should_shut_down:
        yield "in controlled shutdown", now.in_controlled_shutdown, True
    if said.should_shut_down:
        yield "led by who goes", _led(decision.after, asked.broker_id), []


def _led(image: MetadataImage, broker_id: int) -> list[tuple[str, int]]:
    return [
        (image.topics_by_id[partition.topic_id].name, partition.partition_id)
        for partition in image.partitions()
        if partition.leader == broker_id
    ]


def _of_unregistration(decision: Decision) -> Iterator[Claim]:
    yield "registered still", decision.asked.broker_id in decision.after.brokers, False
    yield "led by who is gone", _led(decision.after, decision.asked.broker_id), []


def _of_allocation(decision: Decision) -> Iterator[Claim]:
    said = decision.response
    yield from _check_registered(decision.before, decision.asked)
    yield "producer_id_start", said.producer_id_start, decision.before.next_producer_id
    yield "an empty block", said.producer_id_len > 0, True
    yield "the end", said.producer_id_start + said.producer_id_len, decision.after.next_producer_id


def _of_assignment(decision: Decision) -> Iterator[Claim]:
    broker_id = decision.asked.broker_id
    yield from _check_registered(decision.before, decision.asked)
    results = [
        (part.partition_index, part.error_code)
        for directory in decision.response.directories
        for topic in directory.topics
        for part in topic.partitions
    ]
    replicas = [
        (directory.id_, topic.topic_id, part.partition_index)
        for directory in decision.asked.directories
        for topic in directory.topics
        for part in topic.partitions
    ]
    yield "partitions", [index for index, _ in results], [index for *_, index in replicas]
    for (directory_id, topic_id, index), (_, code) in zip(replicas, results, strict=True):
        partition = decision.after.partition_by_id(topic_id, index)
        known = {} if partition is None else dict(zip(partition.replicas, partition.directories, strict=True))
        where = f"{topic_id}-{index}: directory of replica {broker_id}"
        yield where, known.get(broker_id), directory_id if code is ErrorCode.none else None


# --- in-sync replicas


def _of_alter_partition(decision: Decision) -> Iterator[Claim]:
    asked, said = decision.asked, decision.response
    yield from _check_registered(decision.before, asked)
    wanted = [(topic.topic_id, part.partition_index) for topic in asked.topics for part in topic.partitions]
    told = [(topic.topic_id, part.partition_index) for topic in said.topics for part in topic.partitions]
    yield "partitions", told, wanted
    answers = iter([part for topic in said.topics for part in topic.partitions])
    for topic in asked.topics:
        for wish, answer in zip(topic.partitions, answers, strict=False):
            before = decision.before.partition_by_id(topic.topic_id, wish.partition_index)
            after = decision.after.partition_by_id(topic.topic_id, wish.partition_index)
            yield from _of_proposal(decision, _Members(wish), answer, before, after)


class _Members:
    """A proposal, of any version."""

    def __init__(self, wish: Any) -> None:
        self.leader_epoch: int = wish.leader_epoch
        self.partition_epoch: int = wish.partition_epoch
        self.is_recovering = wish.leader_recovery_state == _RECOVERING
        with_epochs = getattr(wish, "new_isr_with_epochs", None)
        if with_epochs is None:
            self.isr = [(member, _ANY_EPOCH) for member in wish.new_isr]
        else:
            self.isr = [(member.broker_id, member.broker_epoch) for member in with_epochs]

    def ineligible(self, image: MetadataImage) -> list[int]:
        """Those that may not be in sync."""
        found = []
        for broker_id, epoch in self.isr:
            broker = image.brokers.get(broker_id)
            is_here = broker is not None and not broker.fenced and not broker.in_controlled_shutdown
            if not is_here or (broker is not None and epoch not in {_ANY_EPOCH, broker.broker_epoch}):
                found.append(broker_id)
        return found


def _of_proposal(
    decision: Decision, wish: _Members, answer: Any, before: PartitionRecord | None, after: PartitionRecord | None
) -> Iterator[Claim]:
    code, leader_id = answer.error_code, decision.asked.broker_id
    if before is None or after is None:
        yield "error of a partition that is not there", code in _NOT_THERE, True
        return
    where = f"{decision.before.topics_by_id[before.topic_id].name}-{before.partition_id}"
    members = [broker_id for broker_id, _ in wish.isr]
    is_sound = len(set(members)) == len(members) and leader_id in members and set(members) <= set(before.replicas)
    if code in _MADE:
        epochs = before.leader_epoch, before.partition_epoch
        yield f"{where}: epochs of who asks", (wish.leader_epoch, wish.partition_epoch), epochs
        yield f"{where}: the leader", leader_id, before.leader
        yield f"{where}: sound members", is_sound, True
        yield f"{where}: ineligible members", wish.ineligible(decision.before), []
        yield f"{where}: in sync without being asked for", set(after.isr) - set(members), set()
        if code is ErrorCode.none:
            said = answer.leader_id, answer.leader_epoch, answer.isr, answer.partition_epoch
            is_so = after.leader, after.leader_epoch, after.isr, after.partition_epoch
            yield f"{where}: leader, epoch, ISR, partition epoch", said, is_so
            yield f"{where}: is recovering", after.leader_recovery_state == _RECOVERING, wish.is_recovering
            if not before.adding_replicas and not before.removing_replicas:
                yield f"{where}: members", set(after.isr), set(members)
        else:
            yield f"{where}: led by who asks", after.leader == leader_id, False
        return
    yield f"{where}: what is refused", after, before
    recovers = wish.is_recovering and (len(members) > 1 or before.leader_recovery_state != _RECOVERING)
    reasons = {
        ErrorCode.not_controller: wish.leader_epoch > before.leader_epoch
        or wish.partition_epoch > before.partition_epoch,
        ErrorCode.fenced_leader_epoch: wish.leader_epoch < before.leader_epoch,
        ErrorCode.invalid_update_version: wish.partition_epoch < before.partition_epoch,
        ErrorCode.ineligible_replica: bool(wish.ineligible(decision.before)),
        ErrorCode.invalid_request: not is_sound or leader_id != before.leader or recovers,
    }
    yield f"{where}: {code.name} for no reason", reasons.get(code, False), True


_MADE: Final = frozenset({ErrorCode.none, ErrorCode.new_leader_elected})
_NOT_THERE: Final = frozenset({ErrorCode.unknown_topic_id, ErrorCode.unknown_topic_or_partition})

_CLAIMS: Final[dict[int, Callable[[Decision], Iterator[Claim]]]] = {
    **TOPIC_CLAIMS,
    _ALTER_PARTITION: _of_alter_partition,
    _REGISTRATION: _of_registration,
    _HEARTBEAT: _of_heartbeat,
    _UNREGISTRATION: _of_unregistration,
    _ALLOCATION: _of_allocation,
    _ASSIGNMENT: _of_assignment,
}
