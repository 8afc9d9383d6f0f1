"""AlterPartitionReassignments (45), versions 0-1: move partitions to other replicas, or cancel such a reassignment.

Follows: org.apache.kafka.controller.ReplicationControlManager (KIP-455, KIP-860).

- Errors of single partitions: UNKNOWN_TOPIC_OR_PARTITION(3), INVALID_REPLICA_ASSIGNMENT(39).
- Null replicas cancel the reassignment. If there is none, the error is NO_REASSIGNMENT_IN_PROGRESS(85).
- From version 1 a request can forbid that the replication factor changes: INVALID_REPLICATION_FACTOR(38) (KIP-860).
"""

from reference_broker.core.controller.controller import Controller, Decision, decide_in_steps
from reference_broker.core.controller.elections import Elections
from reference_broker.core.controller.errors import ControllerError
from reference_broker.core.controller.reassignments import Reassignment, alter_partition_reassignment
from reference_broker.core.request import Request
from reference_broker.protocol.errors import ErrorCode
from reference_broker.protocol.metadata_records import PartitionChangeRecord
from reference_broker.protocol.steps import Pace, Steps


@decide_in_steps
def handle(controller: Controller, request: Request) -> Steps[Decision]:
    """Reassign each partition, and return its error or success."""
    new = request.replies
    allowed = getattr(request.body, "allow_replication_factor_change", True)
    elections = controller.elections
    records: list[PartitionChangeRecord] = []
    responses = []
    pace = Pace()
    for topic in request.body.topics:
        partitions = []
        for partition in topic.partitions:
            if pace.is_due():
                yield
            reassignment = Reassignment(
                topic.name, partition.partition_index, partition.replicas, keep_replication_factor=not allowed
            )
            code, message = _reassign(elections, reassignment, records)
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
    return records, response


def _reassign(
    elections: Elections, reassignment: Reassignment, records: list[PartitionChangeRecord]
) -> tuple[ErrorCode, str | None]:
    try:
        record = alter_partition_reassignment(elections, reassignment)
    except ControllerError as error:
        return error.code, error.message
    if record is not None:
        records.append(record)
    return ErrorCode.none, None
