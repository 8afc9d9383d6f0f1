"""Entry of an API table, and what the handlers of a node's own APIs need of the node."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol

from reference_broker.core.broker import Broker
from reference_broker.core.clock import Now
from reference_broker.core.controller.controller import Controller
from reference_broker.core.metadata.cluster_metadata import ClusterMetadata
from reference_broker.core.quorum.messages import Request as QuorumRequest
from reference_broker.core.quorum.raft_client import KafkaRaftClient
from reference_broker.core.request import Request
from reference_broker.core.runtime import Runtime
from reference_broker.protocol.messages import RequestHeader

Handler = Callable[[Any, Request, Now], Any]
"""Takes the part of the node that the entry names; gives the response, kio's dataclass of the request's version, or an
`RequestOutcome`."""


class Part(Enum):
    """Who answers: an attribute of the node, or the node itself."""

    BROKER = "broker"
    CONTROLLER = "controller"
    NODE = "node"


@dataclass(frozen=True, slots=True)
class Api:
    """An API that a listener has: its versions, and what answers it.

    :param advertised_min_version: told in ApiVersions in place of `min_version`.
    """

    key: int
    min_version: int
    max_version: int
    handle: Handler
    part: Part = Part.BROKER
    advertised_min_version: int | None = None

    @property
    def advertised(self) -> tuple[int, int]:
        """Lowest and highest version, as ApiVersions tells."""
        lowest = self.min_version if self.advertised_min_version is None else self.advertised_min_version
        return lowest, self.max_version


class ServingNode(Protocol):
    """What requests are dispatched to: `Node`."""

    runtime: Runtime
    quorum: KafkaRaftClient
    metadata: ClusterMetadata
    broker: Broker | None
    controller: Controller | None

    def ask_quorum(self, request: Request, asked: QuorumRequest, now: Now) -> None:
        """Pass a request on to the quorum."""

    def serve_enveloped(self, envelope: Request, header: RequestHeader, now: Now) -> None:
        """Handle the request in an envelope."""
