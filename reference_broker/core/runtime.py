"""Runtime of a node, shared by its roles: identity, configuration, disk, timers, channels, purgatory, and effects."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from reference_broker.core.channels import Channels
from reference_broker.core.configuration.configuration import BrokerConfiguration
from reference_broker.core.connection import Close, Connection, Effect, Note, Respond
from reference_broker.core.disk import Disk
from reference_broker.core.envelope import in_envelope
from reference_broker.core.identity import Identity
from reference_broker.core.purgatory import Purgatory
from reference_broker.core.request import Request, RequestOutcome
from reference_broker.core.timers import Timers
from reference_broker.core.tracer import ResponseSent, Tracer, no_tracer
from reference_broker.core.work import Work
from reference_broker.protocol.messages import message_codec


@dataclass(slots=True)
class Runtime:
    """State and services that the roles of one node share.

    :param new_uuid: generates topic ids and other UUIDs.
    :param random_below: returns a random number below its argument.
    :param previous_epoch: the broker epoch before the last shutdown, from the clean shutdown file. It is -1 if the file
        does not have a valid one, and null if there is no file, because the shutdown was not clean.
    :param trace: receives the events of this node.
    """

    identity: Identity
    configuration: BrokerConfiguration
    disk: Disk
    new_uuid: Callable[[], UUID]
    random_below: Callable[[int], int]
    previous_epoch: int | None = None
    trace: Tracer = no_tracer
    timers: Timers = field(init=False)
    channels: Channels = field(init=False)
    purgatory: Purgatory = field(init=False)
    work: Work = field(init=False)
    _outbox: list[Effect] = field(init=False, default_factory=list)
    _logged: set[str] = field(init=False, default_factory=set)

    def __post_init__(self) -> None:
        self.timers = Timers()
        self.purgatory = Purgatory(self.timers, self.trace)
        self.work = Work(self.timers, lambda request: self.close_connection(request.connection, "a request failed"))
        self.channels = Channels(self.timers, self.emit, f"node-{self.identity.node_id}", self.trace)

    def emit(self, effect: Effect) -> None:
        """Add an effect, which the shell executes after the current call of the node."""
        self._outbox.append(effect)

    def log_once(self, text: str) -> None:
        """Write a line to the node's log, but only once, so that retries of an action do not repeat it."""
        if text not in self._logged:
            self._logged.add(text)
            self.emit(Note(text))

    def take_effects(self) -> list[Effect]:
        """Return the effects that were added since the last call, in order."""
        effects, self._outbox = self._outbox, []
        return effects

    def respond(self, request: Request, response: Any) -> None:
        """Send the response to a request; its connection then continues with the next request.

        The response to a request in an envelope is sent in the response to the envelope (KIP-590).
        """
        self.trace(ResponseSent(request, response))
        data = message_codec(request.api_key, response.__version__).write(request.correlation_id, response)
        if request.envelope is None:
            request.connection.busy = False
            self.emit(Respond(request.connection, data))
        else:
            self.respond(request.envelope, in_envelope(request.envelope, response, data))

    def complete(self, request: Request, outcome: Any) -> None:
        """Complete a request with the result of its handler: a response or a `RequestOutcome`."""
        match outcome:
            case RequestOutcome.DEFERRED:
                pass  # the response is sent later, or has been sent during the call of the handler
            case RequestOutcome.NO_RESPONSE:
                request.connection.busy = False
                self.emit(Respond(request.connection, b""))
            case RequestOutcome.CLOSE_CONNECTION:
                self.close_connection(request.connection, "a Produce request with acks=0 failed")
            case response:
                self.respond(request, response)

    def relay(self, request: Request, response: bytes) -> None:
        """Send the bytes of another node's response, including its header, as the response to a forwarded request."""
        request.connection.busy = False
        self.emit(Respond(request.connection, len(response).to_bytes(4, "big") + response))

    def close_connection(self, connection: Connection, reason: str) -> None:
        """Close a connection. The reason is for the node's log."""
        self.emit(Close(connection, reason))
