"""How a request to the controller is refused: the answer that says of all of it that it cannot be carried out.

Most answers have one error code for that. The others say it of each thing that was asked for, as Kafka's
`getErrorResponse` does.
"""

from collections.abc import Callable
from typing import Any

from reference_broker.core.request import Request
from reference_broker.protocol.errors import ErrorCode


def refusal(request: Request, code: ErrorCode, message: str | None = None) -> Any:
    """The response that refuses a request of an API in the table."""
    return _REFUSALS[request.api_key](request, code, message)


def _for_all(response: str, **rest: Any) -> Callable[[Request, ErrorCode, str | None], Any]:
    """Of a response with one error code."""

    def refuse(request: Request, code: ErrorCode, message: str | None) -> Any:
        return getattr(request.replies, response)(error_code=code, error_message=message, **rest)

    return refuse


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
        asked = [(name, None) for name in request.body.topic_names]
    else:
        asked = [(topic.name, topic.topic_id) for topic in request.body.topics]
    return request.replies.DeleteTopicsResponse(
        responses=tuple(
            request.replies.DeletableTopicResult(name=name, topic_id=topic_id, error_code=code, error_message=message)
            for name, topic_id in asked
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
    def refuse(request: Request, code: ErrorCode, message: str | None) -> Any:
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

    return refuse


def _elect_leaders(request: Request, code: ErrorCode, message: str | None) -> Any:
    new = request.replies

    def refused(index: int) -> Any:
        return new.PartitionResult(partition_id=index, error_code=code, error_message=message)

    return new.ElectLeadersResponse(
        error_code=code,
        replica_election_results=tuple(
            new.ReplicaElectionResult(topic=topic.topic, partition_result=tuple(map(refused, topic.partitions)))
            for topic in request.body.topic_partitions or ()
        ),
    )


def _alter_partition_reassignments(request: Request, code: ErrorCode, message: str | None) -> Any:
    new = request.replies

    def refused(partition: Any) -> Any:
        return new.ReassignablePartitionResponse(
            partition_index=partition.partition_index, error_code=code, error_message=message
        )

    return new.AlterPartitionReassignmentsResponse(
        error_code=code,
        error_message=message,
        responses=tuple(
            new.ReassignableTopicResponse(name=topic.name, partitions=tuple(map(refused, topic.partitions)))
            for topic in request.body.topics
        ),
    )


_REFUSALS: dict[int, Callable[[Request, ErrorCode, str | None], Any]] = {
    19: _create_topics,
    20: _delete_topics,
    33: _alter_configs("AlterConfigsResponse"),
    37: _create_partitions,
    43: _elect_leaders,
    44: _alter_configs("IncrementalAlterConfigsResponse"),
    45: _alter_partition_reassignments,
    46: _for_all("ListPartitionReassignmentsResponse", topics=()),
    55: _for_all("DescribeQuorumResponse", topics=(), nodes=()),
    56: _for_all("AlterPartitionResponse", topics=()),
    62: _for_all("BrokerRegistrationResponse"),
    63: _for_all("BrokerHeartbeatResponse", should_shut_down=False),
    64: _for_all("UnregisterBrokerResponse"),
    67: _for_all("AllocateProducerIdsResponse", producer_id_start=0, producer_id_len=0),
    70: _for_all("ControllerRegistrationResponse"),
    73: _for_all("AssignReplicasToDirsResponse", directories=()),
}
"""By API key."""
