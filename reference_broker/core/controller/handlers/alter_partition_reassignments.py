"""AlterPartitionReassignments (45), versions 0-1: partitions move to other replicas, or stay after all (KIP-455).

- Each partition for itself: UNKNOWN_TOPIC_OR_PARTITION(3), INVALID_REPLICA_ASSIGNMENT(39), and where no replicas are
  given, which ends a reassignment, NO_REASSIGNMENT_IN_PROGRESS(85).
- Version 1 can forbid that the replication factor changes: INVALID_REPLICATION_FACTOR(38) (KIP-860).
"""

from typing import Any

from reference_broker.core.clock import Now
from reference_broker.core.controller.controller import Controller, only_active
from reference_broker.core.controller.elections import Elections
from reference_broker.core.controller.errors import ControllerError
from reference_broker.core.controller.reassignments import Reassignment, reassign
from reference_broker.core.request import Request
from reference_broker.protocol.errors import ErrorCode
from reference_broker.protocol.metadata_records import PartitionChangeRecord


@only_active
def handle(controller: Controller, request: Request, now: Now) -> Any:
    """What became of each partition."""
    new = request.replies
    allowed = getattr(request.body, "allow_replication_factor_change", True)
    elections = controller.elections
    records: list[PartitionChangeRecord] = []
    responses = []
    for topic in request.body.topics:
        partitions = []
        for partition in topic.partitions:
            asked = Reassignment(
                topic.name, partition.partition_index, partition.replicas, keep_replication_factor=not allowed
            )
            code, message = _reassign(elections, asked, records)
            partitions.append(
                new.ReassignablePartitionResponse(
                    partition_index=partition.partition_index, error_code=code, error_message=message
                )
            )
        responses.append(new.ReassignableTopicResponse(name=topic.name, partitions=tuple(partitions)))
    response = new.AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=allowed,
        error_code=ErrorCode.none,
        error_message=None,
        responses=tuple(responses),
    )
    return controller.respond_when_committed(request, records, response, now)


def _reassign(
    elections: Elections, asked: Reassignment, records: list[PartitionChangeRecord]
) -> tuple[ErrorCode, str | None]:
    try:
        record = reassign(elections, asked)
    except ControllerError as error:
        return error.code, error.message
    if record is not None:
        records.append(record)
    return ErrorCode.none, None
