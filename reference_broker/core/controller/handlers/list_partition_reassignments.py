"""ListPartitionReassignments (46), version 0: which partitions are moving (KIP-455).

All of them, or of those that are named; a partition that does not exist or does not move is not told of.
"""

from typing import Any

from reference_broker.core.clock import Now
from reference_broker.core.controller.controller import Controller, only_active
from reference_broker.core.controller.reassignments import reassigning
from reference_broker.core.request import Request
from reference_broker.protocol.errors import ErrorCode


@only_active
def handle(controller: Controller, request: Request, now: Now) -> Any:
    """The partitions that move, with the replicas that come and go."""
    new, topics = request.replies, request.body.topics
    asked = None if topics is None else [(topic.name, topic.partition_indexes) for topic in topics]
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
            for name, partitions in reassigning(controller.image, asked)
        ),
    )
    return controller.respond_when_committed(request, (), response, now)
