"""ElectLeaders (43), versions 0-2: elect leaders on request, from version 1 also uncleanly.

Follows: org.apache.kafka.controller.ReplicationControlManager (KIP-183, KIP-460).

- Errors of single partitions: UNKNOWN_TOPIC_OR_PARTITION(3) and ELECTION_NOT_NEEDED(84). If no replica can be elected:
  PREFERRED_LEADER_NOT_AVAILABLE(80) for a preferred election, ELIGIBLE_LEADERS_NOT_AVAILABLE(83) for an unclean one.
- A null list selects every partition; those that need no election are omitted from the response.
- Unknown election type: INVALID_REQUEST(42).
"""

from collections.abc import Iterator
from typing import Any

from reference_broker.core.clock import Now
from reference_broker.core.controller.controller import Controller, require_active
from reference_broker.core.controller.elections import Elections, ElectionType
from reference_broker.core.controller.errors import ControllerError
from reference_broker.core.request import Request
from reference_broker.protocol.errors import ErrorCode
from reference_broker.protocol.metadata_records import PartitionChangeRecord

_MESSAGES = {
    ErrorCode.election_not_needed: "Leader election not needed for topic partition.",
    ErrorCode.preferred_leader_not_available: "The preferred leader was not available.",
    ErrorCode.eligible_leaders_not_available: "Eligible topic partition leaders are not available.",
}


@require_active
def handle(controller: Controller, request: Request, now: Now) -> Any:
    """Elect a leader of each partition, and return its error or success."""
    body, new = request.body, request.replies
    election_type = getattr(body, "election_type", ElectionType.PREFERRED)
    if election_type not in set(ElectionType):
        raise ControllerError(ErrorCode.invalid_request, f"Unknown election type {election_type}")
    elections = controller.elections
    records: list[PartitionChangeRecord] = []
    results = []
    for topic, indexes in _requested_partitions(controller, body):
        partitions = []
        for index in indexes:
            code, message = _elect(elections, topic, index, ElectionType(election_type), records)
            if body.topic_partitions is not None or code is not ErrorCode.election_not_needed:
                partitions.append(new.PartitionResult(partition_id=index, error_code=code, error_message=message))
        results.append(new.ReplicaElectionResult(topic=topic, partition_result=tuple(partitions)))
    response = new.ElectLeadersResponse(error_code=ErrorCode.none, replica_election_results=tuple(results))
    return controller.respond_when_committed(request, records, response, now)


def _requested_partitions(controller: Controller, body: Any) -> Iterator[tuple[str, tuple[int, ...]]]:
    if body.topic_partitions is None:
        return ((topic.name, tuple(topic.partitions)) for topic in controller.image.topics.values())
    return ((topic.topic, topic.partitions) for topic in body.topic_partitions)


def _elect(
    elections: Elections, topic: str, index: int, election_type: ElectionType, records: list[PartitionChangeRecord]
) -> tuple[ErrorCode, str | None]:
    try:
        records.append(elections.elect_leader(topic, index, election_type))
    except ControllerError as error:
        return error.code, error.message or _MESSAGES.get(error.code)
    return ErrorCode.none, None
