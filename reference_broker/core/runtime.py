"""What a node gives to the roles it plays, broker and controller: the world outside of them, as values and ports."""

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
    """One node's surroundings.

    :param new_uuid: where topic ids and the like come from.
    :param random_below: a random number below its argument.
    :param previous_epoch: the broker epoch of the last run, if that stopped cleanly; -1 if it had none.
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
    _said: set[str] = field(init=False, default_factory=set)

    def __post_init__(self) -> None:
        self.timers = Timers()
        self.purgatory = Purgatory(self.timers, self.trace)
        self.work = Work(self.timers, lambda request: self.close_connection(request.connection, "a request failed"))
        self.channels = Channels(self.timers, self.emit, f"node-{self.identity.node_id}", self.trace)

    def emit(self, effect: Effect) -> None:
        """Want something done."""
        self._outbox.append(effect)

    def say_once(self, text: str) -> None:
        """A line for the node's log, unless it is there already: what is tried again and again fails in few ways."""
        if text not in self._said:
            self._said.add(text)
            self.emit(Note(text))

    def take_effects(self) -> list[Effect]:
        """What was decided since the last time, in order."""
        effects, self._outbox = self._outbox, []
        return effects

    def respond(self, request: Request, response: Any) -> None:
        """Answer a request; its connection goes on to the next."""
        self.trace(ResponseSent(request, response))
        data = message_codec(request.api_key, response.__version__).write(request.correlation_id, response)
        if request.envelope is None:
            request.connection.busy = False
            self.emit(Respond(request.connection, data))
        else:
            self.respond(request.envelope, in_envelope(request.envelope, response, data))

    def complete(self, request: Request, outcome: Any) -> None:
        """Do with a request what its handler returned: a response, or an `RequestOutcome`."""
        match outcome:
            case RequestOutcome.DEFERRED:
                pass  # or answered meanwhile
            case RequestOutcome.NO_RESPONSE:
                request.connection.busy = False
                self.emit(Respond(request.connection, b""))
            case RequestOutcome.CLOSE_CONNECTION:
                self.close_connection(request.connection, "a request without a response failed")
            case response:
                self.respond(request, response)

    def relay(self, request: Request, response: bytes) -> None:
        """Answer a request with what another node has answered to it, header included."""
        request.connection.busy = False
        self.emit(Respond(request.connection, len(response).to_bytes(4, "big") + response))

    def close_connection(self, connection: Connection, reason: str) -> None:
        """Close a connection of which no more is wanted."""
        self.emit(Close(connection, reason))
