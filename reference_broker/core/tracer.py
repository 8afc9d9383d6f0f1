"""Tracer: typed events that the core reports to an observer (`traceBecomeFollower` of etcd).

The observer is given at construction, through `Runtime`.

Rules of this file:
- An event is a value that says what the core does. The core never reads one, and no observer may change what it holds.
- A tracer is called at the moment of the event, in the middle of an input. What it raises ends that input.
- Events name what they concern by values. Objects of the core are among them only where an observer needs their state.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from reference_broker.core.clock import Now
from reference_broker.core.connection import Channel
from reference_broker.core.request import Request
from reference_broker.protocol.metadata_records import MetadataRecord


@dataclass(frozen=True, slots=True)
class Event:
    """Something that the core does."""


Tracer = Callable[[Event], None]


def no_tracer(event: Event) -> None:
    """Ignore an event."""


# Requests and responses


@dataclass(frozen=True, slots=True)
class RequestSent(Event):
    """A request of this node to another one, before it is encoded; `body` is kio's entity."""

    channel: Channel
    body: Any


@dataclass(frozen=True, slots=True)
class ChannelDisconnected(Event):
    """A channel is closed by this node.

    :param deadline_ms: the earliest deadline of the requests in flight there; null where there is none.
    """

    channel: Channel
    deadline_ms: int | None


@dataclass(frozen=True, slots=True)
class ResponseSent(Event):
    """The response to a request, before it is encoded; `body` is kio's entity."""

    request: Request
    body: Any


@dataclass(frozen=True, slots=True)
class KeyChecked(Event):
    """The operations that wait under a key of the purgatory are checked: something of the key has changed."""

    key: Hashable


@dataclass(frozen=True, slots=True)
class OperationExpired(Event):
    """The deadline of an operation in the purgatory has passed."""


# Controller


@dataclass(frozen=True, slots=True)
class RequestDecided(Event):
    """The active controller has decided a request: the records to write, and the response once they are committed."""

    request: Request
    records: Sequence[MetadataRecord]
    response: Any


@dataclass(frozen=True, slots=True)
class ControllerActivated(Event):
    """The controller of this node has become the active one, in an epoch of the quorum."""

    epoch: int


# Quorum


@dataclass(frozen=True, slots=True)
class QuorumStateChanged(Event):
    """A transition of the node's state in the quorum, which is on the disk; `role` is of `quorum.states`."""

    role: Enum
    epoch: int
    leader_id: int


@dataclass(frozen=True, slots=True)
class QuorumLogTruncated(Event):
    """The quorum's log of a follower has been truncated to an offset, because it diverged from the leader's."""

    end_offset: int


@dataclass(frozen=True, slots=True)
class SnapshotGenerated(Event):
    """A snapshot of the metadata below an offset has been written."""

    end_offset: int


@dataclass(frozen=True, slots=True)
class SnapshotFetched(Event):
    """A snapshot that the leader sent has replaced the quorum's log below an offset."""

    end_offset: int


@dataclass(frozen=True, slots=True)
class QuorumRequestReceived(Event):
    """A request of another node of the quorum, of `quorum.messages`, before it is handled."""

    request: Any
    now: Now


@dataclass(frozen=True, slots=True)
class QuorumRequestHandled(Event):
    """The same request, after it was handled; the response may be deferred."""

    request: Any


# Replicas


@dataclass(frozen=True, slots=True)
class DuplicateFound(Event):
    """A producer has sent a batch of a partition again that the log has already."""

    topic: str
    partition: int
    base_offset: int


@dataclass(frozen=True, slots=True)
class FetchResponseProcessed(Event):
    """A follower's fetcher has processed a response of its leader.

    :param fetcher: a `replication.fetcher.Fetcher`.
    :param named: the fetch state and fetch offset of each partition of the request.
    """

    fetcher: Any
    named: tuple[Any, ...]
    response: Any
    now: Now
