"""ListPartitionReassignments (46), version 0: list ongoing reassignments.

Follows: org.apache.kafka.controller.ReplicationControlManager (KIP-455).

The response has all ongoing reassignments, or those of the requested partitions. Partitions that are unknown or not in
reassignment are omitted.
"""

from typing import Any

from reference_broker.core.clock import Now
from reference_broker.core.controller.controller import Controller, require_active
from reference_broker.core.controller.reassignments import list_partition_reassignments
from reference_broker.core.request import Request
from reference_broker.protocol.errors import ErrorCode


@require_active
def handle(controller: Controller, request: Request, now: Now) -> Any:
    """Return the partitions in reassignment, with adding and removing replicas."""
    new, topics = request.replies, request.body.topics
    requested = None if topics is None else [(topic.name, topic.partition_indexes) for topic in topics]
    response = new.ListPartitionReassignmentsResponse(
        error_code=ErrorCode.none,
        error_message=None,
        topics=tuple(
            new.OngoingTopicReassignment(
                name=name,
                partitions=tuple(
                    new.OngoingPartitionReassignment(
                        partition_index=partition.partition_id,
                        replicas=partition.replicas,
                        adding_replicas=partition.adding_replicas,
                        removing_replicas=partition.removing_replicas,
                    )
                    for partition in partitions
                ),
            )
            for name, partitions in list_partition_reassignments(controller.image, requested)
        ),
    )
    return controller.respond_when_committed(request, (), response, now)
