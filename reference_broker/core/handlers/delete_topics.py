"""DeleteTopics (20), versions 1-6: topics end, their logs and committed offsets with them.

- By name, from version 6 by id (KIP-516): unknown name UNKNOWN_TOPIC_OR_PARTITION(3), unknown id UNKNOWN_TOPIC_ID(100),
  both at once or the same topic twice INVALID_REQUEST(42).
- `delete.topic.enable=false`: TOPIC_DELETION_DISABLED(73), before version 3 INVALID_REQUEST(42) (KIP-322).

Gaps: the log directory is deleted at once; Kafka renames it and waits for `file.delete.delay.ms`.
"""

from collections import Counter
from typing import Any

from reference_broker.core.broker import Broker
from reference_broker.core.clock import Now
from reference_broker.core.controller import ControllerError
from reference_broker.core.metadata.image import TopicImage
from reference_broker.core.request import Request
from reference_broker.protocol.errors import ErrorCode

_Asked = tuple[str | None, Any]
"""A topic's name or its id, the other null."""


def handle(broker: Broker, request: Request, now: Now) -> Any:
    """What became of each topic."""
    asked = _asked(request)
    count = Counter(asked)
    return request.replies.DeleteTopicsResponse(
        responses=tuple(_delete(broker, request, topic, now, repeated=count[topic] > 1) for topic in count)
    )


def _asked(request: Request) -> list[_Asked]:
    if request.api_version < 6:
        return [(name, None) for name in request.body.topic_names]
    return [(topic.name, topic.topic_id) for topic in request.body.topics]


def _delete(broker: Broker, request: Request, asked: _Asked, now: Now, *, repeated: bool) -> Any:
    name, topic_id = asked
    try:
        if repeated:
            raise ControllerError(ErrorCode.invalid_request, f"Duplicate topic {'id' if name is None else 'name'}.")
        topic = _find(broker, request, name, topic_id)
        broker.commit(broker.controller.delete_topic(topic.topic_id), now)
        broker.groups.forget_topic(topic.name, now)
    except ControllerError as error:
        return request.replies.DeletableTopicResult(
            name=name, topic_id=topic_id, error_code=error.code, error_message=error.message
        )
    return request.replies.DeletableTopicResult(name=topic.name, topic_id=topic.topic_id, error_code=ErrorCode.none)


def _find(broker: Broker, request: Request, name: str | None, topic_id: Any) -> TopicImage:
    if not broker.configuration.value("delete.topic.enable"):
        code = ErrorCode.invalid_request if request.api_version < 3 else ErrorCode.topic_deletion_disabled
        raise ControllerError(code)
    if name is not None and topic_id is not None:
        raise ControllerError(ErrorCode.invalid_request, "You may not specify both topic name and topic id.")
    if name is None and topic_id is None:
        raise ControllerError(ErrorCode.invalid_request, "Neither topic name nor id were specified.")
    if name is not None:
        topic = broker.image.topics.get(name)
        message = "This server does not host this topic-partition."
        unknown = ControllerError(ErrorCode.unknown_topic_or_partition, message)
    else:
        topic = broker.image.topics_by_id.get(topic_id)
        unknown = ControllerError(ErrorCode.unknown_topic_id, "This server does not host this topic ID.")
    if topic is None:
        raise unknown
    return topic
