"""A post-run check: requests to a node, and the errors that a correct broker returns."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum, auto
from types import ModuleType
from typing import Any, Final
from uuid import UUID

from fixtures.clients.messages import error_name, request_schema
from reference_broker.core.apis import BROKER_APIS, CONTROLLER_APIS
from reference_broker.core.configuration.configuration import BrokerConfiguration
from reference_broker.core.metadata.image import MetadataImage
from reference_broker.core.quorum.raft_client import KafkaRaftClient
from reference_broker.protocol.metadata_records import PartitionRecord

NONE: Final = "NONE"
NOWHERE: Final = "nowhere"
"""A topic that no trial creates. A check that creates it must also delete it."""
UNKNOWN_NODE: Final = 99
"""A node that no trial has. A check that registers it as a broker must also unregister it."""
ELSEWHERE: Final = "elsewhere"
"""Id of a cluster that does not exist. Also used as the name of a rack."""
PROPAGATION_MS: Final = 300
"""Time after which brokers have applied the records of the controller."""
UNKNOWN_ID: Final = UUID(int=2**100)
"""An id that no topic, directory or broker incarnation has."""


class Receiver(Enum):
    """The node that receives a request. Controllers and standbys receive it at the controllers' listener."""

    BROKER = auto()
    LEADER = auto()
    """The leader of partition 0 of the topic."""
    FOLLOWER = auto()
    """Another in-sync replica of that partition, if there is one."""
    CONTROLLER = auto()
    """The active controller."""
    STANDBY = auto()
    """Another voter of the quorum, if there is one."""


@dataclass(frozen=True, slots=True)
class At:
    """A request that is not sent to the receiver of the check, but to this one."""

    receiver: Receiver
    request: Any


@dataclass(frozen=True, slots=True)
class ClusterState:
    """State of a healthy cluster.

    :ivar image: the metadata image that all nodes have.
    :ivar quorum: the `KafkaRaftClient` of the active controller.
    :ivar controller: id of the active controller.
    :ivar standby: id of another voter; None if there is none.
    :ivar standby_has_fetched: whether the controller has responded to a fetch of the standby in this epoch. Until then,
        the standby may grant pre-votes (KIP-996).
    :ivar broker: id of the broker that receives requests for `Receiver.BROKER`.
    :ivar topic: name of an existing topic.
    :ivar configuration: configuration of the active controller.
    """

    cluster_id: str
    image: MetadataImage
    quorum: KafkaRaftClient
    controller: int
    standby: int | None
    standby_has_fetched: bool
    broker: int
    topic: str
    configuration: BrokerConfiguration

    @property
    def epoch(self) -> int:
        """The leader epoch of the quorum."""
        return self.quorum.state.epoch

    @property
    def partition(self) -> PartitionRecord:
        """The first partition of the topic."""
        return self.image.topics[self.topic].partitions[0]

    @property
    def brokers(self) -> list[int]:
        """Ids of all registered brokers, ascending."""
        return sorted(self.image.brokers)

    @property
    def roles(self) -> tuple[object, ...]:
        """Everything whose change may change the expected errors. Values are only compared."""
        return self.controller, self.epoch, self.standby, self.topic, self.partition

    def node(self, receiver: Receiver) -> int | None:
        """Return the id of the receiving node; None if there is none."""
        match receiver:
            case Receiver.BROKER:
                return self.broker
            case Receiver.LEADER:
                return self.partition.leader
            case Receiver.FOLLOWER:
                followers = (node_id for node_id in self.partition.isr if node_id != self.partition.leader)
                return next(followers, None)
            case Receiver.CONTROLLER:
                return self.controller
            case Receiver.STANDBY:
                return self.standby


@dataclass(frozen=True, slots=True)
class PostRunCheck:
    """Requests, usually to one node, and the errors expected in the responses.

    :ivar make: returns one request, or a list of requests and `Sleep`s, which are performed one after the other. A
        request is a kio entity or an encoded `ClientRequest`, or one of them inside an `At`.
    :ivar errors: returns the expected errors of all responses, in order; `NONE` for success. An empty list permits any
        errors.
    :ivar disturbs_cluster: whether the cluster must converge again after the check.
    :ivar retriable_error: an error that one response may have instead of `NONE`, because the receiver has lost its
        connection to another node. If it is empty, there is no such error.
    """

    name: str
    receiver: Receiver
    make: Callable[[ClusterState], Any]
    errors: Callable[[ClusterState], list[str]]
    disturbs_cluster: bool = False
    retriable_error: str = ""

    def permits(self, found: list[str], expected: list[str]) -> bool:
        """Whether the check permits these errors of the responses."""
        if not expected or found == expected:
            return True
        return self.retriable_error in found and _with_none(found, found.index(self.retriable_error)) == expected


def _with_none(errors: list[str], number: int) -> list[str]:
    return [*errors[:number], NONE, *errors[number + 1 :]]


def errors_of(response: Any) -> Iterator[str]:
    """Yield the names of all error codes of a response, the outer ones first. A granted vote yields VOTE_GRANTED."""
    inner = []
    for field in fields(response):
        value = getattr(response, field.name)
        if field.name == "error_code":
            yield error_name(int(value)) or NONE
        elif field.name == "vote_granted" and value:
            yield "VOTE_GRANTED"
        elif isinstance(value, tuple):
            inner += [each for each in value if is_dataclass(each)]
    for each in inner:
        yield from errors_of(each)


def if_standby_has_fetched(*errors: str) -> Callable[[ClusterState], list[str]]:
    """Return a function that expects these errors if the standby has fetched; otherwise it permits any errors."""
    return lambda state: list(errors) if state.standby_has_fetched else []


def always(*errors: str) -> Callable[[ClusterState], list[str]]:
    """Return a function that expects these errors in any state."""
    return lambda _: list(errors)


anything: Final = always()
"""Function that permits any errors. Invariants still check the responses."""


def schema_for_clients(api_key: int) -> ModuleType:
    """Return the newest request schema of an API that brokers support."""
    return request_schema(api_key, BROKER_APIS[api_key].max_version)


def schema_for_nodes(api_key: int) -> ModuleType:
    """Return the newest request schema of an API that controllers support."""
    return request_schema(api_key, CONTROLLER_APIS[api_key].max_version)
