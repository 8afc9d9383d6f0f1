"""Tracer: typed events that the core reports to an observer, as in etcd's Raft library (`traceBecomeFollower`).

`Node` receives the observer as a function, the tracer.

Rules of this file:
- An event is a value that describes an action of the core. The core never reads events, and observers do not modify
  them.
- The core calls the tracer at the action, while it processes an input. An exception in the tracer ends this processing.
- An event may carry an object of the core, so that the observer can read the object's state. Such an event is defined
  in the module of the object.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any
from uuid import UUID

from reference_broker.core.clock import Now
from reference_broker.core.connection import Channel
from reference_broker.core.request import Request
from reference_broker.protocol.metadata_records import MetadataRecord


@dataclass(frozen=True, slots=True)
class Event:
    """An action of the core."""


Tracer = Callable[[Event], None]


def no_tracer(event: Event) -> None:
    """Ignore an event."""


# Requests and responses


@dataclass(frozen=True, slots=True)
class RequestSent(Event):
    """A request of this node to another node, before it is encoded; `body` is kio's entity."""

    channel: Channel
    body: Any
    correlation_id: int


@dataclass(frozen=True, slots=True)
class RequestCompleted(Event):
    """The completion of a request of this node to another node, before it is handled.

    :param response: kio's entity; null after a disconnection, a timeout or an invalid response.
    """

    channel: Channel
    correlation_id: int
    response: Any


@dataclass(frozen=True, slots=True)
class ChannelDisconnected(Event):
    """A disconnection of a channel by this node.

    :param deadline_ms: the earliest deadline of the requests in flight on it; null if there is none.
    """

    channel: Channel
    deadline_ms: int | None


@dataclass(frozen=True, slots=True)
class RequestReceived(Event):
    """A request that is decoded, before it is handled."""

    request: Request


@dataclass(frozen=True, slots=True)
class ResponseSent(Event):
    """The response to a request, before it is encoded; `body` is kio's entity."""

    request: Request
    body: Any


@dataclass(frozen=True, slots=True)
class KeyChecked(Event):
    """A check of the operations that wait under a key of the purgatory, because the key has changed."""

    key: Hashable


@dataclass(frozen=True, slots=True)
class OperationExpired(Event):
    """The expiry of an operation in the purgatory, at its deadline."""


# Controller


@dataclass(frozen=True, slots=True)
class RequestDecided(Event):
    """A decision of the active controller on a request: records to write, and the response once they are committed."""

    request: Request
    records: Sequence[MetadataRecord]
    response: Any


@dataclass(frozen=True, slots=True)
class ControllerActivated(Event):
    """The activation of this node's controller, in an epoch of the quorum."""

    epoch: int


# Quorum


@dataclass(frozen=True, slots=True)
class QuorumStateChanged(Event):
    """A durable transition of the node's quorum state; `role` is a `QuorumRole`."""

    role: Enum
    epoch: int
    leader_id: int


@dataclass(frozen=True, slots=True)
class QuorumLogTruncated(Event):
    """A truncation of a follower's quorum log to an offset, because it diverged from the leader's."""

    end_offset: int


@dataclass(frozen=True, slots=True)
class SnapshotGenerated(Event):
    """A new snapshot of the metadata below an offset."""

    end_offset: int


@dataclass(frozen=True, slots=True)
class SnapshotFetched(Event):
    """A snapshot from the leader that has replaced the quorum's log below an offset."""

    end_offset: int


@dataclass(frozen=True, slots=True)
class QuorumRequestReceived(Event):
    """A request from another node of the quorum, before it is handled; its type is in `quorum.messages`."""

    request: Any
    now: Now


@dataclass(frozen=True, slots=True)
class QuorumRequestHandled(Event):
    """A request from another node of the quorum, after it was handled; the response may be deferred."""

    request: Any


@dataclass(frozen=True, slots=True)
class QuorumFetchRecorded(Event):
    """A fetch that the leader has recorded: the replica has every record of the quorum's log below an offset.

    :param replica: a `ReplicaKey`.
    """

    replica: Any
    fetch_offset: int
    now: Now


# Replicas


@dataclass(frozen=True, slots=True)
class PartitionEvent(Event):
    """An event of a replica on this broker."""

    topic_id: UUID
    topic: str
    partition: int


@dataclass(frozen=True, slots=True)
class LeaderEpochStarted(PartitionEvent):
    """A new leader epoch that the replica has applied. `leader` is -1 if the partition has no leader."""

    leader_epoch: int
    leader: int


@dataclass(frozen=True, slots=True)
class RecordsAppended(PartitionEvent):
    """An append of batches, after the update of the high watermark."""

    log_end_offset: int


@dataclass(frozen=True, slots=True)
class DuplicateFound(PartitionEvent):
    """A producer's batch that is already in the log."""

    base_offset: int


@dataclass(frozen=True, slots=True)
class HighWatermarkUpdated(PartitionEvent):
    """A new high watermark; on a leader it has advanced."""

    high_watermark: int


@dataclass(frozen=True, slots=True)
class IsrChanged(PartitionEvent):
    """A change of the committed or proposed ISR on the leader.

    :param isr: the committed ISR.
    :param phase: an `IsrPhase` of `replication.isr`.
    """

    isr: frozenset[int]
    phase: Enum


@dataclass(frozen=True, slots=True)
class FollowerFetchRecorded(PartitionEvent):
    """A follower's fetch that the leader has recorded, at a time of the leader's monotonic clock."""

    follower_id: int
    monotonic_ms: int


@dataclass(frozen=True, slots=True)
class LogTruncated(PartitionEvent):
    """A truncation of a follower's log, because it diverged from the leader's."""

    log_end_offset: int


@dataclass(frozen=True, slots=True)
class LogFullyTruncated(PartitionEvent):
    """A removal of all records from a follower's log, because it ends below the leader's log start offset."""

    log_start_offset: int
