"""Agreement of the active controller's responses with its metadata: the invariant `controller-response`.

The records and the response of each request are compared with the controller's image before and after the records. The
expected values are computed here, without the controller's code. This module checks requests of brokers, and
UnregisterBroker; `admin_responses` checks the other requests of administrators.

| request             | what must hold                                                                                |
|---------------------|-----------------------------------------------------------------------------------------------|
| AlterPartition      | each partition is returned once. If a proposal is accepted, its sender leads the partition in |
|                     | the epochs of the proposal, the proposed replicas are eligible (KIP-497, 841, 903), and the   |
|                     | response has the partition after the change. If a proposal is rejected, the partition is      |
|                     | unchanged, and the condition for the error code is met                                        |
| BrokerRegistration  | the record has the fields of the request. The same incarnation keeps its epoch and state. A   |
|                     | new incarnation starts fenced, in a later epoch. It leads no partition, and is in an ISR only |
|                     | as its only member                                                                            |
| BrokerHeartbeat     | the broker epoch is the registered one. The response states whether the broker is fenced      |
|                     | after the records. No broker is unfenced before it has applied its registration. A broker may |
|                     | shut down only when it leads no partition, and at once if it leads none (KIP-631)             |
| AllocateProducerIds | the block starts at the end of the previous block                                             |
| UnregisterBroker    | the broker is no longer in the metadata, and leads no partition                               |
| AssignReplicasTo-   | each partition has one result. Without an error, the directory of the broker's replica is     |
| Dirs                | that of the request. With an error, the broker has no replica of the partition (KIP-858)      |
"""

from collections.abc import Callable, Iterator
from typing import Any, Final

from reference_broker.core.metadata.image import MetadataImage
from reference_broker.core.tracer import RequestDecided
from reference_broker.protocol.errors import ErrorCode
from reference_broker.protocol.metadata_records import PartitionRecord, RegisterBrokerRecord
from reference_broker.simulation.invariants.admin_responses import COMPARISONS as ADMIN_COMPARISONS
from reference_broker.simulation.invariants.admin_responses import Comparison, Decision
from reference_broker.simulation.invariants.violation import InvariantViolation
from reference_broker.simulation.invariants.watch import Watched

_ANY_EPOCH: Final = -1
_RECOVERING: Final = 1
_ALTER_PARTITION: Final = 56
_REGISTRATION, _HEARTBEAT, _UNREGISTRATION, _ALLOCATION, _ASSIGNMENT = 62, 63, 64, 67, 73


def check_controller_response(watched: Watched, event: RequestDecided) -> None:
    """Check the response of the active controller to a request.

    :raises InvariantViolation: `controller-response`.
    """
    request, records, response = event.request, event.records, event.response
    assert watched.node is not None
    assert watched.node.controller is not None
    compare = _COMPARISONS.get(request.api_key)
    if compare is None:
        return
    before = after = watched.node.controller.image
    if records:
        after = before.copy()
        for record in records:
            after.apply(record)
    decision = Decision(watched.node.runtime.identity.cluster_id, before, after, records, request.body, response)
    for field, actual, expected in compare(decision):
        if actual != expected:
            detail = f"response to {type(request.body).__name__}: {field} is {actual!r}, not {expected!r}"
            raise InvariantViolation("controller-response", f"node {watched.node_id}: {detail}")


# --- brokers


def _compare_broker_epoch(image: MetadataImage, request: Any) -> Iterator[Comparison]:
    broker = image.brokers.get(request.broker_id)
    yield "broker_epoch", request.broker_epoch, None if broker is None else broker.broker_epoch


def _compare_registration(decision: Decision) -> Iterator[Comparison]:
    request, before = decision.request, decision.before.brokers.get(decision.request.broker_id)
    yield "cluster_id", request.cluster_id, decision.cluster_id
    record = decision.after.brokers.get(request.broker_id)
    assert isinstance(record, RegisterBrokerRecord)
    yield "broker_epoch", decision.response.broker_epoch, record.broker_epoch
    yield "incarnation_id", record.incarnation_id, request.incarnation_id
    yield "rack", record.rack, request.rack
    listeners = [(each.name, each.host, each.port) for each in request.listeners]
    yield "end_points", [(each.name, each.host, each.port) for each in record.end_points], listeners
    features = [(each.name, each.min_supported_version, each.max_supported_version) for each in request.features]
    recorded = [(each.name, each.min_supported_version, each.max_supported_version) for each in record.features]
    yield "features", recorded, features
    yield "log_dirs", record.log_dirs, tuple(getattr(request, "log_dirs", ()))
    if before is not None and before.incarnation_id == request.incarnation_id:
        kept = before.broker_epoch, before.fenced, before.in_controlled_shutdown
        yield "epoch and state", (record.broker_epoch, record.fenced, record.in_controlled_shutdown), kept
    else:
        yield "state", (record.fenced, record.in_controlled_shutdown), (True, False)
        yield "whether the broker epoch is later", before is None or record.broker_epoch > before.broker_epoch, True
        yield "partitions led by the new incarnation", _led(decision.after, request.broker_id), []
        others = [partition.isr for partition in decision.after.partitions() if request.broker_id in partition.isr]
        yield "ISRs of the new incarnation with other members", [isr for isr in others if len(isr) > 1], []


def _compare_heartbeat(decision: Decision) -> Iterator[Comparison]:
    request, response, before = decision.request, decision.response, decision.before
    yield from _compare_broker_epoch(before, request)
    was, now = before.brokers[request.broker_id], decision.after.brokers[request.broker_id]
    is_caught_up = request.current_metadata_offset >= request.broker_epoch
    yield "is_caught_up", response.is_caught_up, is_caught_up
    yield "is_fenced", response.is_fenced, now.fenced
    if was.fenced and not request.want_shut_down:
        yield "whether the broker is still fenced", now.fenced, request.want_fence or not is_caught_up
    if not was.fenced and request.want_fence and not request.want_shut_down and not was.in_controlled_shutdown:
        yield "whether the broker is fenced as requested", now.fenced, True
    if was.in_controlled_shutdown and not was.fenced:
        yield "whether the broker is fenced in its shutdown", now.fenced, response.should_shut_down
    if not request.want_shut_down and not was.in_controlled_shutdown:
        yield "should_shut_down", response.should_shut_down, False
        yield "whether the broker is in controlled shutdown", now.in_controlled_shutdown, False
    if request.want_shut_down and not was.in_controlled_shutdown:
        must_move_leaders = not was.fenced and not request.want_fence and bool(_led(before, request.broker_id))
        yield "should_shut_down", response.should_shut_down, not must_move_leaders
    if request.want_shut_down and not response.should_shut_down:
        yield "whether the broker is in controlled shutdown", now.in_controlled_shutdown, True
    if response.should_shut_down:
        yield "partitions led by the broker that shuts down", _led(decision.after, request.broker_id), []


def _led(image: MetadataImage, broker_id: int) -> list[tuple[str, int]]:
    return [
        (image.topics_by_id[partition.topic_id].name, partition.partition_id)
        for partition in image.partitions()
        if partition.leader == broker_id
    ]


def _compare_unregistration(decision: Decision) -> Iterator[Comparison]:
    yield "whether the broker is still registered", decision.request.broker_id in decision.after.brokers, False
    yield "partitions led by the unregistered broker", _led(decision.after, decision.request.broker_id), []


def _compare_allocate_producer_ids(decision: Decision) -> Iterator[Comparison]:
    response = decision.response
    yield from _compare_broker_epoch(decision.before, decision.request)
    yield "producer_id_start", response.producer_id_start, decision.before.next_producer_id
    yield "whether the block has an id", response.producer_id_len > 0, True
    yield "end of the block", response.producer_id_start + response.producer_id_len, decision.after.next_producer_id


def _compare_assign_replicas(decision: Decision) -> Iterator[Comparison]:
    broker_id = decision.request.broker_id
    yield from _compare_broker_epoch(decision.before, decision.request)
    results = [
        (part.partition_index, part.error_code)
        for directory in decision.response.directories
        for topic in directory.topics
        for part in topic.partitions
    ]
    replicas = [
        (directory.id_, topic.topic_id, part.partition_index)
        for directory in decision.request.directories
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


def _compare_alter_partition(decision: Decision) -> Iterator[Comparison]:
    request, response = decision.request, decision.response
    yield from _compare_broker_epoch(decision.before, request)
    requested = [(topic.topic_id, part.partition_index) for topic in request.topics for part in topic.partitions]
    named = [(topic.topic_id, part.partition_index) for topic in response.topics for part in topic.partitions]
    yield "partitions", named, requested
    partition_responses = iter([part for topic in response.topics for part in topic.partitions])
    for topic in request.topics:
        for proposal, returned in zip(topic.partitions, partition_responses, strict=False):
            before = decision.before.partition_by_id(topic.topic_id, proposal.partition_index)
            after = decision.after.partition_by_id(topic.topic_id, proposal.partition_index)
            yield from _compare_proposal(decision, _Proposal(proposal), returned, before, after)


class _Proposal:
    """Proposed ISR of a partition, from any version of AlterPartition."""

    def __init__(self, proposal: Any) -> None:
        self.leader_epoch: int = proposal.leader_epoch
        self.partition_epoch: int = proposal.partition_epoch
        self.is_recovering = proposal.leader_recovery_state == _RECOVERING
        with_epochs = getattr(proposal, "new_isr_with_epochs", None)
        if with_epochs is None:
            self.isr = [(member, _ANY_EPOCH) for member in proposal.new_isr]
        else:
            self.isr = [(member.broker_id, member.broker_epoch) for member in with_epochs]

    def ineligible(self, image: MetadataImage) -> list[int]:
        """Return the members that must not be in the ISR."""
        found = []
        for broker_id, epoch in self.isr:
            broker = image.brokers.get(broker_id)
            is_active = broker is not None and not broker.fenced and not broker.in_controlled_shutdown
            if not is_active or (broker is not None and epoch not in {_ANY_EPOCH, broker.broker_epoch}):
                found.append(broker_id)
        return found


def _compare_proposal(
    decision: Decision,
    proposal: _Proposal,
    returned: Any,
    before: PartitionRecord | None,
    after: PartitionRecord | None,
) -> Iterator[Comparison]:
    code, leader_id = returned.error_code, decision.request.broker_id
    if before is None or after is None:
        yield "whether the error is one of an unknown partition", code in _UNKNOWN_PARTITION, True
        return
    where = f"{decision.before.topics_by_id[before.topic_id].name}-{before.partition_id}"
    members = [broker_id for broker_id, _ in proposal.isr]
    is_valid = len(set(members)) == len(members) and leader_id in members and set(members) <= set(before.replicas)
    if code in _ACCEPTED:
        epochs = before.leader_epoch, before.partition_epoch
        yield f"{where}: epochs of the proposal", (proposal.leader_epoch, proposal.partition_epoch), epochs
        yield f"{where}: leader", leader_id, before.leader
        yield f"{where}: whether the members are valid", is_valid, True
        yield f"{where}: ineligible members", proposal.ineligible(decision.before), []
        yield f"{where}: members that were not proposed", set(after.isr) - set(members), set()
        if code is ErrorCode.none:
            actual = returned.leader_id, returned.leader_epoch, returned.isr, returned.partition_epoch
            expected = after.leader, after.leader_epoch, after.isr, after.partition_epoch
            yield f"{where}: leader, epoch, ISR, partition epoch", actual, expected
            yield f"{where}: whether the sender is the leader", after.leader == leader_id, True
            is_recovering = after.leader_recovery_state == _RECOVERING
            yield f"{where}: whether the leader is recovering", is_recovering, proposal.is_recovering
            if not before.adding_replicas and not before.removing_replicas:
                yield f"{where}: members", set(after.isr), set(members)
        else:
            yield f"{where}: whether the sender is the leader", after.leader == leader_id, False
        return
    yield f"{where}: partition after a rejection", after, before
    recovers = proposal.is_recovering and (len(members) > 1 or before.leader_recovery_state != _RECOVERING)
    reasons = {
        ErrorCode.not_controller: proposal.leader_epoch > before.leader_epoch
        or proposal.partition_epoch > before.partition_epoch,
        ErrorCode.fenced_leader_epoch: proposal.leader_epoch < before.leader_epoch,
        ErrorCode.invalid_update_version: proposal.partition_epoch < before.partition_epoch,
        ErrorCode.ineligible_replica: bool(proposal.ineligible(decision.before)),
        ErrorCode.invalid_request: not is_valid or leader_id != before.leader or recovers,
    }
    yield f"{where}: whether there is a reason for {code.name}", reasons.get(code, False), True


_ACCEPTED: Final = frozenset({ErrorCode.none, ErrorCode.new_leader_elected})
_UNKNOWN_PARTITION: Final = frozenset({ErrorCode.unknown_topic_id, ErrorCode.unknown_topic_or_partition})

_COMPARISONS: Final[dict[int, Callable[[Decision], Iterator[Comparison]]]] = {
    **ADMIN_COMPARISONS,
    _ALTER_PARTITION: _compare_alter_partition,
    _REGISTRATION: _compare_registration,
    _HEARTBEAT: _compare_heartbeat,
    _UNREGISTRATION: _compare_unregistration,
    _ALLOCATION: _compare_allocate_producer_ids,
    _ASSIGNMENT: _compare_assign_replicas,
}
