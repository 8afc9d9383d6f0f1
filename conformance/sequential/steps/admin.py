"""Steps of the admin APIs. Brokers are named by their places (see `conformance.sequential.steps`)."""

from dataclasses import dataclass
from enum import IntEnum

from conformance.sequential.steps.base import TOPIC, Step


class Operation(IntEnum):
    """Operation of IncrementalAlterConfigs on one setting (KIP-339)."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class ResourceType(IntEnum):
    """Type of the resource that has the settings."""

    UNKNOWN = 0
    TOPIC = 2
    BROKER = 4


class ElectionType(IntEnum):
    """Type of an election by ElectLeaders (KIP-460)."""

    PREFERRED = 0
    UNCLEAN = 1


class EndpointType(IntEnum):
    """Type of the endpoints that DescribeCluster requests (KIP-919)."""

    BROKERS = 1
    CONTROLLERS = 2
    UNKNOWN = 77


@dataclass(frozen=True, slots=True)
class CreatePartitions(Step):
    """CreatePartitions of one topic up to `count` (KIP-195). An assignment is the brokers of one new partition.

    The new partitions can be used after an `AwaitTopic`.
    """

    count: int
    topic: str = TOPIC
    assignments: tuple[tuple[int, ...], ...] | None = None
    validate_only: bool = False
    version: int | None = None


@dataclass(frozen=True, slots=True)
class AlterReassignment(Step):
    """AlterPartitionReassignments of one partition (KIP-455); replicas None cancels an ongoing reassignment."""

    replicas: tuple[int, ...] | None
    topic: str = TOPIC
    partition: int = 0
    allow_factor_change: bool = True
    """Whether there may be more or fewer replicas than before (KIP-860); versions before 1 always allow it."""
    version: int | None = None


@dataclass(frozen=True, slots=True)
class ListReassignments(Step):
    """ListPartitionReassignments of one partition (KIP-455).

    :ivar of_all_topics: whether those of all topics are requested; the response has the step's partition only.
    """

    topic: str = TOPIC
    partition: int = 0
    of_all_topics: bool = False


@dataclass(frozen=True, slots=True)
class ElectLeaders(Step):
    """ElectLeaders of one partition (KIP-183, KIP-460)."""

    topic: str = TOPIC
    partition: int = 0
    election: ElectionType = ElectionType.PREFERRED
    version: int | None = None


@dataclass(frozen=True, slots=True)
class IncrementalAlterConfigs(Step):
    """IncrementalAlterConfigs of a topic (KIP-339), each change as (name, operation, value)."""

    changes: tuple[tuple[str, Operation, str | None], ...]
    topic: str = TOPIC
    resource_type: ResourceType = ResourceType.TOPIC
    validate_only: bool = False
    version: int | None = None


@dataclass(frozen=True, slots=True)
class AlterConfigs(Step):
    """AlterConfigs of a topic: replaces all its settings by these."""

    configs: tuple[tuple[str, str | None], ...]
    topic: str = TOPIC
    resource_type: ResourceType = ResourceType.TOPIC
    validate_only: bool = False
    version: int | None = None


@dataclass(frozen=True, slots=True)
class DescribeConfigs(Step):
    """DescribeConfigs of a topic, for the settings with these names (KIP-133, KIP-226)."""

    names: tuple[str, ...]
    topic: str = TOPIC
    resource_type: ResourceType = ResourceType.TOPIC
    version: int | None = None
    broker: int | None = None
    """Place of a broker whose settings are described, too. Only this broker describes them: send the step `On` it."""
    with_documentation: bool = False
    """Whether the documentation of the settings is requested (KIP-569)."""


class ScramMechanism(IntEnum):
    """SCRAM mechanism of a credential (KIP-554)."""

    SHA_256 = 1
    SHA_512 = 2


@dataclass(frozen=True, slots=True)
class AlterScramCredential(Step):
    """AlterUserScramCredentials of one credential (KIP-554): its iterations; None deletes it."""

    iterations: int | None
    mechanism: ScramMechanism = ScramMechanism.SHA_256
    user: str = "trial-user"


@dataclass(frozen=True, slots=True)
class DescribeScramCredentials(Step):
    """DescribeUserScramCredentials of one user (KIP-554)."""

    user: str = "trial-user"


@dataclass(frozen=True, slots=True)
class AlterClientQuotas(Step):
    """AlterClientQuotas of one client id (KIP-546), each change as (quota, value); None removes the quota.

    :ivar user: the user whose quotas with this client id are altered; None for those of every user.
    """

    ops: tuple[tuple[str, int | None], ...]
    client: str
    validate_only: bool = False
    user: str | None = None
    version: int | None = None


@dataclass(frozen=True, slots=True)
class DescribeClientQuotas(Step):
    """DescribeClientQuotas of one client id (KIP-546).

    :ivar strict: whether entities that have a user too are left out.
    """

    client: str
    strict: bool = True
    version: int | None = None


@dataclass(frozen=True, slots=True)
class DescribeTopicPartitions(Step):
    """DescribeTopicPartitions (KIP-966): at most `limit` partitions of the topics, from the cursor on."""

    topics: tuple[str, ...] = (TOPIC,)
    limit: int = 2000
    cursor: tuple[str, int] | None = None


@dataclass(frozen=True, slots=True)
class DescribeLogDirs(Step):
    """DescribeLogDirs of one partition (KIP-113).

    :ivar of_all_topics: whether those of all topics are requested; the response has the step's partition only.
    """

    topic: str = TOPIC
    partition: int = 0
    version: int | None = None
    of_all_topics: bool = False


@dataclass(frozen=True, slots=True)
class DescribeQuorum(Step):
    """DescribeQuorum (KIP-595, KIP-836), of the metadata partition or of one without a quorum."""

    topic: str = "__cluster_metadata"
    partition: int = 0
    version: int | None = None


@dataclass(frozen=True, slots=True)
class DescribeCluster(Step):
    """DescribeCluster (KIP-700), of brokers or of controllers (KIP-919)."""

    endpoint_type: EndpointType = EndpointType.BROKERS
    version: int | None = None
    with_operations: bool = False
    """Whether the permitted operations are requested (KIP-430)."""
