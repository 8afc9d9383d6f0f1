"""Entry of an API table, and the interface of the node to its request handlers."""

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
"""Handler of an API. Its arguments are a part of the node (selected by `Api.part`), the request and the current time.
It returns the response (kio's dataclass of the request's version) or a `RequestOutcome`. A handler whose work may take
long is a generator of steps (`protocol.steps`) with that return value."""


class Part(Enum):
    """Part of a node that a handler receives as its first argument: an attribute of the node, or the node itself."""

    BROKER = "broker"
    CONTROLLER = "controller"
    NODE = "node"


@dataclass(frozen=True, slots=True)
class Api:
    """An API of a listener: its versions and its handler.

    :param advertised_min_version: returned by ApiVersions in place of `min_version`, unless it is null.
    """

    key: int
    min_version: int
    max_version: int
    handle: Handler
    part: Part = Part.BROKER
    advertised_min_version: int | None = None

    @property
    def advertised(self) -> tuple[int, int]:
        """The lowest and highest version in the ApiVersions response."""
        lowest = self.min_version if self.advertised_min_version is None else self.advertised_min_version
        return lowest, self.max_version


class ServingNode(Protocol):
    """The node that requests are dispatched to: `Node`."""

    runtime: Runtime
    quorum: KafkaRaftClient
    metadata: ClusterMetadata
    broker: Broker | None
    controller: Controller | None

    def handle_quorum_request(self, request: Request, message: QuorumRequest, now: Now) -> None:
        """Pass a request to the Raft client; `message` is its decoded body."""

    def serve_enveloped(self, envelope: Request, header: RequestHeader, now: Now) -> None:
        """Handle the request in an envelope; `header` is the header of that request."""
