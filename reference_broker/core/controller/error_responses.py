"""Error responses of the controller to whole requests: Kafka's `getErrorResponse`.

Follows: org.apache.kafka.common.requests.AbstractRequest.

A response has either a top-level error code or an error code for each requested element. Only the responses to
ElectLeaders and AlterPartitionReassignments have both.
"""

from collections.abc import Callable
from typing import Any

from reference_broker.core.request import Request
from reference_broker.protocol.errors import ErrorCode


def error_response(request: Request, code: ErrorCode, message: str | None = None) -> Any:
    """Return the response that rejects a whole request with an error."""
    return _ERROR_RESPONSES[request.api_key](request, code, message)


def _top_level(response: str, **rest: Any) -> Callable[[Request, ErrorCode, str | None], Any]:
    """Return a function that makes a response with a top-level error code.

    :param response: name of the response class.
    :param rest: values of the other required fields.
    """

    def make_response(request: Request, code: ErrorCode, message: str | None) -> Any:
        return getattr(request.replies, response)(error_code=code, error_message=message, **rest)

    return make_response


def _create_topics(request: Request, code: ErrorCode, message: str | None) -> Any:
    return request.replies.CreateTopicsResponse(
        topics=tuple(
            request.replies.CreatableTopicResult(
                name=topic.name, topic_id=None, error_code=code, error_message=message, configs=()
            )
            for topic in request.body.topics
        )
    )


def _delete_topics(request: Request, code: ErrorCode, message: str | None) -> Any:
    if request.api_version < 6:
        topics = [(name, None) for name in request.body.topic_names]
    else:
        topics = [(topic.name, topic.topic_id) for topic in request.body.topics]
    return request.replies.DeleteTopicsResponse(
        responses=tuple(
            request.replies.DeletableTopicResult(name=name, topic_id=topic_id, error_code=code, error_message=message)
            for name, topic_id in topics
        )
    )


def _create_partitions(request: Request, code: ErrorCode, message: str | None) -> Any:
    return request.replies.CreatePartitionsResponse(
        results=tuple(
            request.replies.CreatePartitionsTopicResult(name=topic.name, error_code=code, error_message=message)
            for topic in request.body.topics
        )
    )


def _alter_configs(response: str) -> Callable[[Request, ErrorCode, str | None], Any]:
    def make_response(request: Request, code: ErrorCode, message: str | None) -> Any:
        return getattr(request.replies, response)(
            responses=tuple(
                request.replies.AlterConfigsResourceResponse(
                    error_code=code,
                    error_message=message,
                    resource_type=resource.resource_type,
                    resource_name=resource.resource_name,
                )
                for resource in request.body.resources
            )
        )

    return make_response


def _elect_leaders(request: Request, code: ErrorCode, message: str | None) -> Any:
    new = request.replies

    def result(index: int) -> Any:
        return new.PartitionResult(partition_id=index, error_code=code, error_message=message)

    return new.ElectLeadersResponse(
        error_code=code,
        replica_election_results=tuple(
            new.ReplicaElectionResult(topic=topic.topic, partition_result=tuple(map(result, topic.partitions)))
            for topic in request.body.topic_partitions or ()
        ),
    )


def _alter_partition_reassignments(request: Request, code: ErrorCode, message: str | None) -> Any:
    new = request.replies

    def result(partition: Any) -> Any:
        return new.ReassignablePartitionResponse(
            partition_index=partition.partition_index, error_code=code, error_message=message
        )

    return new.AlterPartitionReassignmentsResponse(
        error_code=code,
        error_message=message,
        responses=tuple(
            new.ReassignableTopicResponse(name=topic.name, partitions=tuple(map(result, topic.partitions)))
            for topic in request.body.topics
        ),
    )


_ERROR_RESPONSES: dict[int, Callable[[Request, ErrorCode, str | None], Any]] = {
    19: _create_topics,
    20: _delete_topics,
    33: _alter_configs("AlterConfigsResponse"),
    37: _create_partitions,
    43: _elect_leaders,
    44: _alter_configs("IncrementalAlterConfigsResponse"),
    45: _alter_partition_reassignments,
    46: _top_level("ListPartitionReassignmentsResponse", topics=()),
    55: _top_level("DescribeQuorumResponse", topics=(), nodes=()),
    56: _top_level("AlterPartitionResponse", topics=()),
    62: _top_level("BrokerRegistrationResponse"),
    63: _top_level("BrokerHeartbeatResponse", should_shut_down=False),
    64: _top_level("UnregisterBrokerResponse"),
    67: _top_level("AllocateProducerIdsResponse", producer_id_start=0, producer_id_len=0),
    70: _top_level("ControllerRegistrationResponse"),
    73: _top_level("AssignReplicasToDirsResponse", directories=()),
}
"""Function that makes the error response, by API key."""
