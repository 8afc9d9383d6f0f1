"""CreatePartitions (37), versions 0-3: add partitions to topics.

Follows: org.apache.kafka.controller.ReplicationControlManager (KIP-195).

| problem of a topic                                 | error                          |
|----------------------------------------------------|--------------------------------|
| the topic occurs twice                             | INVALID_REQUEST(42)            |
| the topic is unknown                               | UNKNOWN_TOPIC_OR_PARTITION(3)  |
| the count is not larger than the present count     | INVALID_PARTITIONS(37)         |
| a manual assignment is invalid                     | INVALID_REPLICA_ASSIGNMENT(39) |
| the controller cannot place the replicas           | INVALID_REPLICATION_FACTOR(38) |

- More than 10,000 new partitions in one request: POLICY_VIOLATION(44) for the whole request.
- `validate_only` returns the same response and writes nothing.

Gaps: no controller mutation quota (KIP-599).
"""

from collections import Counter
from typing import Any

from reference_broker.core.controller.controller import (
    MAX_RECORDS_PER_USER_OP,
    TOO_MANY_RECORDS,
    Controller,
    Decision,
    decide_in_steps,
)
from reference_broker.core.controller.errors import ControllerError
from reference_broker.core.controller.partitions import add_partitions
from reference_broker.core.request import Request
from reference_broker.protocol.errors import ErrorCode
from reference_broker.protocol.metadata_records import MetadataRecord
from reference_broker.protocol.steps import Pace, Steps


@decide_in_steps
def handle(controller: Controller, request: Request) -> Steps[Decision]:
    """Add partitions to each topic, and return its error or success."""
    if _count_new(controller, request) > MAX_RECORDS_PER_USER_OP:
        raise ControllerError(ErrorCode.policy_violation, TOO_MANY_RECORDS)
    count = Counter(topic.name for topic in request.body.topics)
    topics = {topic.name: topic for topic in request.body.topics}
    records: list[MetadataRecord] = []
    results = []
    pace = Pace()
    for name, topic in topics.items():
        if pace.is_due():
            yield
        try:
            if count[name] > 1:
                raise ControllerError(ErrorCode.invalid_request, "Duplicate topic name.")
            records += _plan(controller, topic)
        except ControllerError as error:
            results.append(_result(request, name, error.code, error.message))
        else:
            results.append(_result(request, name, ErrorCode.none, None))
    response = request.replies.CreatePartitionsResponse(results=tuple(results))
    return () if request.body.validate_only else records, response


def _count_new(controller: Controller, request: Request) -> int:
    """Count the partitions to add, before any of them is placed."""
    topics = ((topic, controller.image.topics.get(topic.name)) for topic in request.body.topics)
    return sum(max(topic.count - len(known.partitions), 0) for topic, known in topics if known is not None)


def _plan(controller: Controller, topic: Any) -> list[MetadataRecord]:
    assignments = None
    if topic.assignments is not None:
        assignments = [assignment.broker_ids for assignment in topic.assignments]
    return add_partitions(controller.image, topic.name, topic.count, assignments, controller.runtime.random_below)


def _result(request: Request, name: str, code: ErrorCode, message: str | None) -> Any:
    return request.replies.CreatePartitionsTopicResult(name=name, error_code=code, error_message=message)
