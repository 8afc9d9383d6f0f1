"""DeleteTopics (20), versions 1-6: delete topics with their logs and committed offsets.

Follows: org.apache.kafka.controller.ReplicationControlManager (KIP-322, KIP-516).

- Topics are given by name, from version 6 also by id (KIP-516). Unknown name: UNKNOWN_TOPIC_OR_PARTITION(3). Unknown
  id: UNKNOWN_TOPIC_ID(100). An element with both or neither, or a topic that occurs twice: INVALID_REQUEST(42), and the
  topic stays.
- `delete.topic.enable=false`: TOPIC_DELETION_DISABLED(73), before version 3 INVALID_REQUEST(42) (KIP-322).

A broker deletes the topic's logs when it applies the RemoveTopicRecord.
"""

from collections import Counter
from typing import Any

from reference_broker.core.controller.controller import Controller, Decision, decide_in_steps
from reference_broker.core.controller.errors import ControllerError
from reference_broker.core.metadata.image import MetadataImage, TopicImage
from reference_broker.core.request import Request
from reference_broker.protocol.errors import ErrorCode
from reference_broker.protocol.metadata_records import RemoveTopicRecord
from reference_broker.protocol.steps import Pace, Steps

_TopicKey = tuple[str | None, Any]
"""Name and id of a requested topic; normally one of them is null."""


@decide_in_steps
def handle(controller: Controller, request: Request) -> Steps[Decision]:
    """Delete each topic, and return its error or success."""
    if not controller.runtime.configuration.value("delete.topic.enable"):
        code = ErrorCode.invalid_request if request.api_version < 3 else ErrorCode.topic_deletion_disabled
        raise ControllerError(code, "Topic deletion is disabled.")
    count = Counter(_requested_topics(request))
    by_id = {topic_id for name, topic_id in count if name is None}
    rejected: list[Any] = []
    found: dict[Any, Any] = {}
    pace = Pace()
    for name, topic_id in count:
        if pace.is_due():
            yield
        try:
            topic = _find(controller.image, name, topic_id, repeated=count[name, topic_id] > 1)
        except ControllerError as error:
            rejected.append(_result(request, name, topic_id, error.code, error.message))
            continue
        if name is not None and topic.topic_id in by_id:
            found.pop(topic.topic_id, None)
            message = "The provided topic name maps to an ID that was already supplied."
            rejected.append(_result(request, name, topic.topic_id, ErrorCode.invalid_request, message))
        else:
            found[topic.topic_id] = _result(request, topic.name, topic.topic_id, ErrorCode.none, None)
    records = [RemoveTopicRecord(topic_id=topic_id) for topic_id in found]
    response = request.replies.DeleteTopicsResponse(responses=(*rejected, *found.values()))
    return records, response


def _requested_topics(request: Request) -> list[_TopicKey]:
    """Return the topics of the request, ids before names as in Kafka."""
    if request.api_version < 6:
        return [(name, None) for name in request.body.topic_names]
    requested = [(topic.name, topic.topic_id) for topic in request.body.topics]
    return sorted(requested, key=lambda topic: topic[0] is not None)


def _find(image: MetadataImage, name: str | None, topic_id: Any, *, repeated: bool) -> TopicImage:
    if name is not None and topic_id is not None:
        raise ControllerError(ErrorCode.invalid_request, "You may not specify both topic name and topic id.")
    if name is None and topic_id is None:
        raise ControllerError(ErrorCode.invalid_request, "Neither topic name nor id were specified.")
    if repeated:
        raise ControllerError(ErrorCode.invalid_request, f"Duplicate topic {'id' if name is None else 'name'}.")
    if name is not None:
        topic = image.topics.get(name)
        message = "This server does not host this topic-partition."
        unknown = ControllerError(ErrorCode.unknown_topic_or_partition, message)
    else:
        topic = image.topics_by_id.get(topic_id)
        unknown = ControllerError(ErrorCode.unknown_topic_id, "This server does not host this topic ID.")
    if topic is None:
        raise unknown
    return topic


def _result(request: Request, name: str | None, topic_id: Any, code: ErrorCode, message: str | None) -> Any:
    return request.replies.DeletableTopicResult(name=name, topic_id=topic_id, error_code=code, error_message=message)
