"""What an administrator asks for, step by step: the request, its name in a history, and how it ended."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from chaos.simulation.clients import questions
from chaos.simulation.clients.descriptions import describe
from chaos.simulation.clients.questions import Question
from chaos.trial import (
    AlterTopicConfig,
    CreatePartitions,
    CreateTopic,
    DeleteTopic,
    Describe,
    ElectPreferredLeader,
    ReassignPartition,
)
from fixtures.clients.messages import error_name
from fixtures.clients.recorded_admin import Election

AdministrativeStep = (
    CreateTopic
    | DeleteTopic
    | CreatePartitions
    | AlterTopicConfig
    | ReassignPartition
    | ElectPreferredLeader
    | Describe
)
ADMINISTRATIVE_STEPS = (
    CreateTopic,
    DeleteTopic,
    CreatePartitions,
    AlterTopicConfig,
    ReassignPartition,
    ElectPreferredLeader,
    Describe,
)


@dataclass(frozen=True, slots=True)
class Request:
    """One request.

    :ivar f: what the history calls it.
    :ivar codes_of: the error codes of an answer.
    """

    f: str
    topic: str | None
    partition: int | None
    question: Question
    codes_of: Callable[[Any], list[int]]

    def error_of(self, response: Any) -> str | None:
        """The first error of an answer."""
        return next((name for code in self.codes_of(response) if (name := error_name(code)) is not None), None)


def administer(step: AdministrativeStep) -> Request:
    """The request that a step stands for."""
    match step:
        case CreateTopic(topic, partitions, replication_factor, properties):
            question = questions.create_topic(topic, partitions, replication_factor, properties)
            return Request("create_topic", topic, None, question, _of_topics)
        case DeleteTopic(topic):
            return Request("delete_topic", topic, None, questions.delete_topic(topic), _of_responses)
        case CreatePartitions(total, topic):
            question = questions.create_partitions(topic, total)
            return Request("create_partitions", topic, None, question, _of_results)
        case AlterTopicConfig(name, value, topic, validate_only):
            question = questions.alter_topic(topic, name, value, validate_only=validate_only)
            return Request("alter_configs", topic, None, question, _of_responses)
        case ReassignPartition(replicas, topic, partition):
            question = questions.reassign(topic, partition, replicas)
            return Request("reassign", topic, partition, question, _of_reassignment)
        case ElectPreferredLeader(topic, partition):
            return elect(topic, partition, Election.PREFERRED)
        case Describe(subject, topic):
            return Request("describe", None, None, describe(subject, topic), lambda _: [])


def elect(topic: str, partition: int, election: Election) -> Request:
    """ElectLeaders of one partition."""
    f = f"elect_{election.name.lower()}_leader"
    return Request(f, topic, partition, questions.elect(topic, partition, int(election)), _of_election)


def unregister(node_id: int) -> Request:
    """UnregisterBroker of one node."""
    return Request("unregister_broker", None, None, questions.unregister(node_id), lambda answer: [answer.error_code])


def _of_topics(response: Any) -> list[int]:
    return [of_topic.error_code for of_topic in response.topics]


def _of_responses(response: Any) -> list[int]:
    return [part.error_code for part in response.responses]


def _of_results(response: Any) -> list[int]:
    return [part.error_code for part in response.results]


def _of_reassignment(response: Any) -> list[int]:
    return [response.error_code, *(part.error_code for of in response.responses for part in of.partitions)]


def _of_election(response: Any) -> list[int]:
    results = response.replica_election_results
    return [response.error_code, *(part.error_code for of in results for part in of.partition_result)]
