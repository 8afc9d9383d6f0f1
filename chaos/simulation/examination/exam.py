"""What an exam is: a request to some node, and the errors that its answer has where the broker is right."""

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
"""A topic that no trial makes; an exam that does takes it away again."""
NOBODY: Final = 99
"""A node that no trial has; an exam that registers it as a broker takes it away again."""
ELSEWHERE: Final = "elsewhere"
"""Another cluster."""
HEARD_MS: Final = 300
"""By then brokers have heard of what the controller has decided."""
STRANGER: Final = UUID(int=2**100)
"""An id that nothing has."""


class Whom(Enum):
    """Who is asked, and at which listener."""

    BROKER = auto()
    LEADER = auto()
    """The broker that leads partition 0 of the topic."""
    FOLLOWER = auto()
    """Another replica of that partition, where there is one."""
    CONTROLLER = auto()
    """The active one."""
    STANDBY = auto()
    """Another voter of the quorum, where there is one."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What the examiner knows of a cluster that is whole.

    :ivar image: the metadata that all nodes have.
    :ivar quorum: that of the active controller.
    :ivar standby: another voter; null where there is none.
    :ivar broker: who is asked where any broker would do.
    :ivar topic: one that is there.
    :ivar configuration: of the active controller's node.
    """

    cluster_id: str
    image: MetadataImage
    quorum: KafkaRaftClient
    controller: int
    standby: int | None
    broker: int
    topic: str
    configuration: BrokerConfiguration

    @property
    def epoch(self) -> int:
        """Of the quorum."""
        return self.quorum.state.epoch

    @property
    def partition(self) -> PartitionRecord:
        """The first one of the topic."""
        return self.image.topics[self.topic].partitions[0]

    @property
    def brokers(self) -> list[int]:
        """Ids of all that are registered, ascending."""
        return sorted(self.image.brokers)

    @property
    def offices(self) -> tuple[object, ...]:
        """Who decides, and who leads, in which epochs."""
        return self.controller, self.epoch, self.standby, self.topic, self.partition

    def node(self, whom: Whom) -> int | None:
        """Who that is; null where there is nobody."""
        match whom:
            case Whom.BROKER:
                return self.broker
            case Whom.LEADER:
                return self.partition.leader
            case Whom.FOLLOWER:
                followers = (node_id for node_id in self.partition.isr if node_id != self.partition.leader)
                return next(followers, None)
            case Whom.CONTROLLER:
                return self.controller
            case Whom.STANDBY:
                return self.standby


@dataclass(frozen=True, slots=True)
class Exam:
    """One request.

    :ivar make: kio's request, or several, one after the other, and `Sleep`s between them.
    :ivar errors: of the answers, in their order; `NONE` where something succeeds. No list where any will do.
    :ivar unsettles: whether the cluster has to come to order again.
    """

    name: str
    whom: Whom
    make: Callable[[Facts], Any]
    errors: Callable[[Facts], list[str]]
    unsettles: bool = False


def errors_of(answer: Any) -> Iterator[str]:
    """All error codes of an answer by their names, the outer ones first; and votes that are given."""
    inner = []
    for field in fields(answer):
        value = getattr(answer, field.name)
        if field.name == "error_code":
            yield error_name(int(value)) or NONE
        elif field.name == "vote_granted" and value:
            yield "VOTE_GRANTED"
        elif isinstance(value, tuple):
            inner += [each for each in value if is_dataclass(each)]
    for each in inner:
        yield from errors_of(each)


def always(*errors: str) -> Callable[[Facts], list[str]]:
    """These, whatever the cluster is."""
    return lambda _: list(errors)


anything: Final = always()
"""Nothing is expected but an answer, which others judge."""


def schema_for_clients(api_key: int) -> ModuleType:
    """The newest of an API, as brokers have it."""
    return request_schema(api_key, BROKER_APIS[api_key].max_version)


def schema_for_nodes(api_key: int) -> ModuleType:
    """The newest of an API, as controllers have it."""
    return request_schema(api_key, CONTROLLER_APIS[api_key].max_version)
