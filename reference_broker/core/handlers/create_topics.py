"""CreateTopics (19), versions 2-7: topics come into being.

- Each topic for itself; the first check that fails is its error, in Kafka's order: a name twice in the request
  INVALID_REQUEST(42), INVALID_TOPIC_EXCEPTION(17), TOPIC_ALREADY_EXISTS(36), INVALID_CONFIG(40), then
  INVALID_REPLICA_ASSIGNMENT(39) where the client places replicas, else INVALID_REPLICATION_FACTOR(38) and
  INVALID_PARTITIONS(37).
- `validate_only` answers the same and leaves nothing.
- Partitions and replication factor -1 are the broker's defaults (KIP-464); version 5 tells what they came to, and the
  topic's configuration (KIP-525), version 7 its id (KIP-516).

Gaps: no create-topic policy, no quota on mutations (KIP-599).
"""

from collections import Counter
from typing import Any

from reference_broker.core.broker import Broker
from reference_broker.core.clock import Now
from reference_broker.core.controller import ControllerError, NewTopic, PlannedTopic
from reference_broker.core.request import Request
from reference_broker.protocol.errors import ErrorCode


def handle(broker: Broker, request: Request, now: Now) -> Any:
    """What became of each topic."""
    count = Counter(topic.name for topic in request.body.topics)
    asked = {topic.name: topic for topic in request.body.topics}
    return request.replies.CreateTopicsResponse(
        topics=tuple(_create(broker, request, topic, count[name] > 1, now) for name, topic in asked.items())
    )


def _create(broker: Broker, request: Request, topic: Any, repeated: bool, now: Now) -> Any:
    try:
        if repeated:
            raise ControllerError(ErrorCode.invalid_request, "Duplicate topic name.")
        planned = broker.controller.plan_topic(_new_topic(topic))
    except ControllerError as error:
        return request.replies.CreatableTopicResult(
            name=topic.name, topic_id=None, error_code=error.code, error_message=error.message, configs=()
        )
    if not request.body.validate_only:
        broker.commit(planned.records, now)
    return _created(broker, request, topic.name, planned)


def _new_topic(topic: Any) -> NewTopic:
    return NewTopic(
        topic.name,
        topic.num_partitions,
        topic.replication_factor,
        assignments=tuple((assignment.partition_index, assignment.broker_ids) for assignment in topic.assignments),
        overrides={config.name: config.value for config in topic.configs},
    )


def _created(broker: Broker, request: Request, name: str, planned: PlannedTopic) -> Any:
    new = request.replies
    return new.CreatableTopicResult(
        name=name,
        topic_id=planned.topic_id,
        error_code=ErrorCode.none,
        error_message=None,
        num_partitions=planned.num_partitions,
        replication_factor=planned.replication_factor,
        configs=tuple(
            new.CreatableTopicConfigs(
                name=entry.name,
                value=entry.value,
                read_only=False,
                config_source=entry.source,
                is_sensitive=False,
            )
            for entry in broker.configuration.topic(planned.overrides).entries()
        ),
    )
