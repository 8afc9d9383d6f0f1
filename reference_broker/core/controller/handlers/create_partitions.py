"""CreatePartitions (37), versions 0-3: topics get more partitions (KIP-195).

- A topic twice in the request INVALID_REQUEST(42); no such topic UNKNOWN_TOPIC_OR_PARTITION(3); not more than there are
  INVALID_PARTITIONS(37); replicas that cannot be INVALID_REPLICA_ASSIGNMENT(39), as many as cannot be placed
  INVALID_REPLICATION_FACTOR(38).
- More than 10,000 new partitions in one request: POLICY_VIOLATION(44) for all of it.
- `validate_only` answers the same and leaves nothing.

Gaps: no quota on mutations (KIP-599).
"""

from collections import Counter
from typing import Any

from reference_broker.core.clock import Now
from reference_broker.core.controller.controller import (
    MAX_RECORDS_PER_USER_OP,
    TOO_MANY_RECORDS,
    Controller,
    only_active,
)
from reference_broker.core.controller.errors import ControllerError
from reference_broker.core.controller.partitions import add_partitions
from reference_broker.core.request import Request
from reference_broker.protocol.errors import ErrorCode
from reference_broker.protocol.metadata_records import MetadataRecord


@only_active
def handle(controller: Controller, request: Request, now: Now) -> Any:
    """What became of each topic."""
    if _count_new(controller, request) > MAX_RECORDS_PER_USER_OP:
        raise ControllerError(ErrorCode.policy_violation, TOO_MANY_RECORDS)
    count = Counter(topic.name for topic in request.body.topics)
    asked = {topic.name: topic for topic in request.body.topics}
    records: list[MetadataRecord] = []
    results = []
    for name, topic in asked.items():
        try:
            if count[name] > 1:
                raise ControllerError(ErrorCode.invalid_request, "Duplicate topic name.")
            records += _plan(controller, topic)
        except ControllerError as error:
            results.append(_result(request, name, error.code, error.message))
        else:
            results.append(_result(request, name, ErrorCode.none, None))
    response = request.replies.CreatePartitionsResponse(results=tuple(results))
    return controller.respond_when_committed(request, () if request.body.validate_only else records, response, now)


def _count_new(controller: Controller, request: Request) -> int:
    """The partitions to add, counted before any of them is placed."""
    topics = ((topic, controller.image.topics.get(topic.name)) for topic in request.body.topics)
    return sum(max(topic.count - len(known.partitions), 0) for topic, known in topics if known is not None)


def _plan(controller: Controller, topic: Any) -> list[MetadataRecord]:
    assignments = None
    if topic.assignments is not None:
        assignments = [assignment.broker_ids for assignment in topic.assignments]
    return add_partitions(controller.image, topic.name, topic.count, assignments, controller.runtime.random_below)


def _result(request: Request, name: str, code: ErrorCode, message: str | None) -> Any:
    return request.replies.CreatePartitionsTopicResult(name=name, error_code=code, error_message=message)
