"""CreateTopics (19), versions 2-7: create topics.

Follows: org.apache.kafka.controller.ReplicationControlManager (KIP-464, KIP-516, KIP-525).

- Errors of single topics, in Kafka's order: INVALID_REQUEST(42) if a name occurs twice or is `__cluster_metadata`,
  INVALID_TOPIC_EXCEPTION(17), TOPIC_ALREADY_EXISTS(36), INVALID_CONFIG(40).
- After these, with manual assignments: INVALID_REQUEST(42) if the topic has a number of partitions or a replication
  factor too, INVALID_REPLICA_ASSIGNMENT(39) if the replicas are invalid.
- After these, without manual assignments: INVALID_REPLICATION_FACTOR(38), INVALID_PARTITIONS(37).
- More than 10,000 partitions in one request: POLICY_VIOLATION(44) for the whole request.
- `validate_only` returns the same response and writes nothing.
- A number of partitions or a replication factor of -1 selects the default in the controller's configuration (KIP-464).
  From version 5 the response has the values used and the topic's configuration (KIP-525), from version 7 the topic id
  (KIP-516).

Gaps: no create-topic policy, no controller mutation quota (KIP-599).
"""

from collections import Counter
from functools import cache, partial
from typing import Any

from reference_broker.core.configuration.configuration import BrokerConfiguration
from reference_broker.core.controller.controller import (
    MAX_RECORDS_PER_USER_OP,
    Controller,
    Decision,
    check_record_count,
    decide_in_steps,
)
from reference_broker.core.controller.errors import ControllerError
from reference_broker.core.controller.topics import USE_DEFAULT, CreationContext, NewTopic, PlannedTopic, create_topic
from reference_broker.core.request import Request
from reference_broker.protocol.encoding import SharedArray
from reference_broker.protocol.errors import ErrorCode
from reference_broker.protocol.metadata_records import MetadataRecord
from reference_broker.protocol.steps import Pace, Steps


@decide_in_steps
def handle(controller: Controller, request: Request) -> Steps[Decision]:
    """Create each topic, and return its error or its properties."""
    if _count_partitions(controller, request) > MAX_RECORDS_PER_USER_OP:
        raise ControllerError(ErrorCode.policy_violation, "Excessively large number of partitions per request.")
    count = Counter(topic.name for topic in request.body.topics)
    topics = {topic.name: topic for topic in request.body.topics}
    runtime = controller.runtime
    context = CreationContext(runtime.configuration, runtime.new_uuid, runtime.random_below)
    records: list[MetadataRecord] = []
    results = []
    configs = cache(partial(_configs, request, runtime.configuration))
    pace = Pace()
    for name, topic in topics.items():
        if pace.is_due():
            yield
        if not request.body.validate_only:
            check_record_count(records)
        try:
            if count[name] > 1:
                raise ControllerError(ErrorCode.invalid_request, "Duplicate topic name.")
            planned = create_topic(controller.image, _new_topic(topic), context)
        except ControllerError as error:
            results.append(_rejected(request, name, error))
        else:
            records += planned.records
            pace.elements += planned.num_partitions
            results.append(_created(request, name, planned, configs(tuple(planned.overrides.items()))))
    response = request.replies.CreateTopicsResponse(topics=tuple(results))
    return () if request.body.validate_only else records, response


def _count_partitions(controller: Controller, request: Request) -> int:
    default = controller.runtime.configuration.integer("num.partitions")
    return sum(
        len(topic.assignments) or (default if topic.num_partitions == USE_DEFAULT else max(topic.num_partitions, 0))
        for topic in request.body.topics
    )


def _new_topic(topic: Any) -> NewTopic:
    return NewTopic(
        topic.name,
        topic.num_partitions,
        topic.replication_factor,
        assignments=tuple((assignment.partition_index, assignment.broker_ids) for assignment in topic.assignments),
        overrides={config.name: config.value for config in topic.configs},
    )


def _rejected(request: Request, name: str, error: ControllerError) -> Any:
    return request.replies.CreatableTopicResult(
        name=name, topic_id=None, error_code=error.code, error_message=error.message, configs=()
    )


def _created(request: Request, name: str, planned: PlannedTopic, configs: tuple[Any, ...]) -> Any:
    return request.replies.CreatableTopicResult(
        name=name,
        topic_id=planned.topic_id,
        error_code=ErrorCode.none,
        error_message=None,
        num_partitions=planned.num_partitions,
        replication_factor=planned.replication_factor,
        configs=configs,
    )


def _configs(request: Request, broker: BrokerConfiguration, overrides: tuple[tuple[str, str], ...]) -> tuple[Any, ...]:
    """Return the configuration of a topic. Topics with the same overrides share it, so it is encoded once.

    :param broker: configuration of the controller's node, which has the defaults.
    """
    return SharedArray(
        request.replies.CreatableTopicConfigs(
            name=entry.name,
            value=entry.value,
            read_only=False,
            config_source=entry.source,
            is_sensitive=False,
        )
        for entry in broker.topic(dict(overrides)).entries()
    )
