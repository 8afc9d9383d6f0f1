"""A node of a cluster: its Raft client, the metadata image that it replays, and its roles of broker and controller.

Follows: kafka.server.KafkaRaftServer, kafka.server.SharedServer (KIP-500, KIP-595).

    messages of voters, time ──▶ quorum ──▶ committed metadata ──▶ broker, if the node has this role
                                   ▲                          └──▶ controller, if the node has this role
                                   └──── records ── controller (only while it is active)

Requests of clients and brokers go to the handlers of the broker, the controller or this node (`dispatch`). A node is
pure: bytes arrive as arguments of `handle` and `handle_response`, time is an argument, and files are behind the `Disk`
port. Effects are collected (`take_effects`), because one event may complete many requests.

Rules of this file:
- A node only connects its parts: it passes the output of one part to the others, in order, until no output is left.
- The controller is active only while its node is the leader. It becomes active when the record at the start offset of
  the leader's epoch is committed and applied. The image then has every committed record of earlier epochs (KIP-595).
- The broker receives its first metadata when two conditions are met: its registration is committed, and the image has
  all records up to the high watermark that this node knows. After that, the broker receives every change. It applies a
  change before this node's controller responds to the request for the change.
- Nodes with the controller's role are voters; a node that is only a broker follows the log as an observer.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from uuid import UUID

from reference_broker.core import dispatch
from reference_broker.core.broker import Broker
from reference_broker.core.broker_lifecycle_manager import UNKNOWN_EPOCH, BrokerState
from reference_broker.core.clock import Now
from reference_broker.core.configuration.configuration import BrokerConfiguration
from reference_broker.core.configuration.resource import ResourceType
from reference_broker.core.connection import Channel, Connection, Effect, Note
from reference_broker.core.controller.controller import Controller
from reference_broker.core.disk import Disk
from reference_broker.core.identity import Identity
from reference_broker.core.layout import Layout
from reference_broker.core.log.checkpoints import take_clean_shutdown, write_clean_shutdown
from reference_broker.core.metadata.cluster_metadata import ClusterMetadata
from reference_broker.core.metadata.delta import MetadataDelta
from reference_broker.core.metadata.image import CLUSTER_DEFAULT
from reference_broker.core.metadata.metadata_writer import MetadataWriter
from reference_broker.core.metadata.snapshot_policy import SnapshotPolicy
from reference_broker.core.quorum import effects, messages
from reference_broker.core.quorum.configuration import QuorumConfig
from reference_broker.core.quorum.quorum_state import Leader
from reference_broker.core.quorum.raft_client import KafkaRaftClient
from reference_broker.core.quorum.voters import ReplicaKey
from reference_broker.core.quorum.wire import request_to_kio, response_from_kio, response_to_kio
from reference_broker.core.quorum.wire_parts import UnknownPartitionError
from reference_broker.core.request import Request
from reference_broker.core.runtime import Runtime
from reference_broker.core.tracer import Tracer, no_tracer
from reference_broker.protocol.errors import ErrorCode
from reference_broker.protocol.messages import RequestHeader
from reference_broker.protocol.metadata_records import MetadataRecord
from reference_broker.protocol.steps import Steps

_RAFT = "raft"
_RESIGNATION_MAX_MS = 1_000
"""Maximum time for which a stopping voter waits for another leader; an election takes a fraction of this time."""
_NO_QUORUM_MAX_MS = 1_500
"""Maximum time for which a stopping broker waits for a quorum; an election takes less time."""
_WATCH_MS = 100
"""Interval between the checks of a stopping broker for a quorum."""


class Node:
    """A node, restored from the state that the last run left on its disk.

    :param properties: this node's properties in Kafka's format; `layout` is parsed from them.
    :param new_uuid: generates topic ids and other UUIDs.
    :param random_below: returns a random number below its argument.
    :param trace: receives the events of this node.
    """

    def __init__(
        self,
        identity: Identity,
        layout: Layout,
        properties: Mapping[str, str],
        disk: Disk,
        *,
        new_uuid: Callable[[], UUID],
        random_below: Callable[[int], int],
        now: Now,
        trace: Tracer = no_tracer,
    ) -> None:
        self.layout = layout
        previous_epoch = take_clean_shutdown(disk)
        configuration = BrokerConfiguration(properties)
        self.runtime = Runtime(identity, configuration, disk, new_uuid, random_below, previous_epoch, trace)
        self.quorum = KafkaRaftClient(
            local=ReplicaKey(identity.node_id, identity.directory_id),
            voters=layout.voters,
            cluster_id=identity.cluster_id,
            config=QuorumConfig.of(self.runtime.configuration),
            disk=disk,
            random_below=random_below,
            now=now,
            clean=previous_epoch is not None,
            trace=trace,
        )
        self.metadata = ClusterMetadata(self.quorum.log)
        self._apply_dynamic_configuration(MetadataDelta(everything=True))
        self._snapshots = SnapshotPolicy(self.quorum, self.metadata, self.runtime.configuration, now)
        self._writer = MetadataWriter(self.quorum)
        self._epoch_start_offset: int | None = None
        self._loading: Steps[list[MetadataRecord]] | None = None
        self._load_to = 0
        self._pending_quorum_requests: dict[Connection, Request] = {}
        self._has_caught_up = False
        self._has_given_up = False
        self.controller = Controller(self.runtime, self._writer) if layout.is_controller else None
        self.broker = Broker(self.runtime, self.metadata, self.controller_endpoint, now) if layout.is_broker else None
        self._settle(now)

    # Inputs

    def handle(self, connection: Connection, frame: bytes, now: Now) -> None:
        """Handle the frame of a request, without its length."""
        dispatch.handle(self, connection, frame, now)
        self._settle(now)

    def disconnected(self, connection: Connection) -> None:
        """Drop the pending operations of a closed connection."""
        self.runtime.purgatory.drop(connection)
        if self._pending_quorum_requests.pop(connection, None) is not None:
            self.quorum.disconnect(connection)

    def handle_response(self, channel: Channel, frame: bytes, now: Now) -> None:
        """Handle the frame of a response of another node, without its length."""
        self.runtime.channels.handle_response(channel, frame, now)
        self._settle(now)

    def lost(self, channel: Channel, now: Now) -> None:
        """Fail the requests on a channel that could not be connected, or was disconnected."""
        self.runtime.channels.lost(channel, now)
        self._settle(now)

    def write(self, now: Now) -> None:
        """Append the controller's pending records to the quorum's log. The shell calls this after a batch of events."""
        self._writer.flush(now)
        self._settle(now)

    def fire(self, now: Now, *, actions_max: int = sys.maxsize) -> None:
        """Run the timers that are due, at most `actions_max` of them, and the quorum's poll if that is due."""
        self.runtime.timers.fire(now, actions_max)
        deadline_ms = self.quorum.deadline_ms
        if deadline_ms is not None and deadline_ms <= now.monotonic_ms:
            self.quorum.poll(now)
        self._settle(now)

    def shut_down(self, now: Now) -> None:
        """Begin a controlled shutdown, which is complete when `is_stopped` is true. Its duration is bounded."""
        if self.broker is None:
            self._leave_quorum(now)
        else:
            self.broker.lifecycle.begin_controlled_shutdown(self._leave_quorum, now)
            self._watch_quorum(now.monotonic_ms, now)
        self._settle(now)

    def _watch_quorum(self, last_contact_ms: int, now: Now) -> None:
        """End the controlled shutdown if there is no quorum, for example because most voters have stopped already."""
        assert self.broker is not None
        if self.quorum.is_shutting_down:
            return
        last_contact_ms = max(last_contact_ms, self.quorum.last_majority_contact_ms or 0)
        if now.monotonic_ms >= last_contact_ms + _NO_QUORUM_MAX_MS:
            self.broker.lifecycle.begin_shutdown(now)
            self._has_given_up = True
        else:
            self.runtime.timers.set(now.monotonic_ms + _WATCH_MS, lambda now: self._watch_quorum(last_contact_ms, now))

    def _leave_quorum(self, now: Now) -> None:
        self.quorum.shut_down(now)
        self.runtime.timers.set(now.monotonic_ms + _RESIGNATION_MAX_MS, self._give_up_waiting)

    def _give_up_waiting(self, now: Now) -> None:
        """Stop although no other leader was elected in time, perhaps because all nodes are stopping."""
        self._has_given_up = True

    def close(self) -> None:
        """Flush and close all logs, and write the clean shutdown file.

        The file is not written if the previous run crashed and this run has not recovered all logs.
        """
        broker_epoch: int | None = UNKNOWN_EPOCH
        if self.broker is not None:
            has_opened_logs = self._has_caught_up and not self.broker.replicas.has_unapplied_metadata
            broker_epoch = self.broker.epoch if has_opened_logs else self.runtime.previous_epoch
            self.broker.close()
        self.quorum.log.close()
        if broker_epoch is not None:
            write_clean_shutdown(self.runtime.disk, broker_epoch)

    # State for the shell

    @property
    def next_ms(self) -> int | None:
        """Monotonic time at which `fire` is to be called; null if nothing is scheduled."""
        due_ms = self.runtime.timers.next_ms, self.quorum.deadline_ms
        return min((at_ms for at_ms in due_ms if at_ms is not None), default=None)

    @property
    def has_to_write(self) -> bool:
        """Whether `write` is to be called."""
        return not self._writer.is_empty

    def take_effects(self) -> list[Effect]:
        """Remove and return the effects since the last call, in order."""
        return self.runtime.take_effects()

    @property
    def has_caught_up(self) -> bool:
        """Whether the broker has received its first metadata, and therefore receives every change."""
        return self._has_caught_up

    @property
    def pending_quorum_requests(self) -> int:
        """The number of requests of other quorum nodes to which no response has been sent."""
        return len(self._pending_quorum_requests)

    @property
    def is_serving(self) -> bool:
        """Whether clients and other brokers may send requests. A broker must have received the metadata first."""
        return self.broker is None or self._has_caught_up

    @property
    def is_ready(self) -> bool:
        """Whether all roles serve. A broker must be registered in this run, unfenced, and in state RUNNING."""
        if self.broker is None:
            return True
        if self.broker.lifecycle.state is not BrokerState.RUNNING:
            return False
        identity = self.runtime.identity
        registered = self.metadata.image.brokers.get(identity.node_id)
        return (
            self._has_caught_up
            and registered is not None
            and registered.incarnation_id == identity.incarnation_id
            and not registered.fenced
        )

    @property
    def has_given_up(self) -> bool:
        """Whether the shutdown has ended early: there was no quorum, or no other leader was elected in time."""
        return self._has_given_up

    @property
    def is_stopped(self) -> bool:
        """Whether the shutdown is complete."""
        return self._has_given_up or (self.quorum.is_shutting_down and self.quorum.may_stop)

    # Calls from its parts

    def controller_endpoint(self) -> tuple[int, str, int] | None:
        """Return id, host and port of the active controller, or null if this node knows no leader."""
        voter = self.quorum.voters.get(self.quorum.state.leader_id)
        return None if voter is None else (voter.key.id, voter.host, voter.port)

    def handle_quorum_request(self, request: Request, message: messages.Request, now: Now) -> None:
        """Handle a request of another quorum node; the response is one of the quorum's effects."""
        self._pending_quorum_requests[request.connection] = request
        self.quorum.handle_request(request.connection, message, now)

    def serve_enveloped(self, envelope: Request, header: RequestHeader, now: Now) -> None:
        """Handle the request in an envelope. Raises `MalformedRequestError`."""
        dispatch.serve(self, envelope.connection, envelope.body.request_data, header, now, envelope=envelope)

    # Effects of the quorum

    def _settle(self, now: Now) -> None:
        """Carry out the quorum's effects until there are no more."""
        while True:
            for effect in self.quorum.take_effects():
                self._carry_out(effect, now)
            self._renounce_unless_leading(now)
            if not self.quorum.has_effects:
                return

    def _carry_out(self, effect: effects.Effect, now: Now) -> None:
        match effect:
            case effects.SendRequest():
                self._send_to_voter(effect, now)
            case effects.SendResponse():
                request = self._pending_quorum_requests.pop(effect.caller)
                self.runtime.respond(request, response_to_kio(effect.response, self.quorum.voters))
            case effects.LeaderChanged():
                self._change_leader(effect, now)
            case effects.ResponseRejected():
                self.runtime.emit(Note(f"dropped a response of voter {effect.voter_id}: {effect.reason}"))
            case effects.SnapshotInstalled():
                self._loading = None
                self.metadata.rebuild()
                self._snapshots.handle_load_snapshot(now)
                self._publish(MetadataDelta(everything=True), now)
            case effects.HighWatermarkAdvanced():
                self._commit(now)

    def _send_to_voter(self, effect: effects.SendRequest, now: Now) -> None:
        voter = self.quorum.voters.get(effect.voter_id)
        assert voter is not None
        request_id = effect.request_id

        def on_response(entity: Any, now: Now) -> None:
            try:
                response = None if entity is None else response_from_kio(entity)
            except UnknownPartitionError:
                response = None
            if response is None:
                self.quorum.fail_request(request_id, now)
            else:
                self._log_rejection(response)
                self.quorum.handle_response(request_id, response, now)

        self.runtime.channels.send_request(
            Channel(_RAFT, voter.key.id, voter.host, voter.port),
            request_to_kio(effect.request, self.quorum.voters),
            on_response,
            timeout_ms=self.quorum.config.request_timeout_ms,
            now=now,
        )

    def _log_rejection(self, response: messages.Response) -> None:
        """Log the top-level error of a voter's response, if it has one. The quorum sends the request again."""
        if response.top_level_error is not ErrorCode.none:
            self.runtime.log_once(f"the quorum rejects this node: {response.top_level_error.name.upper()}")

    def _change_leader(self, change: effects.LeaderChanged, now: Now) -> None:
        self._renounce(now)
        self._epoch_start_offset = change.epoch_start_offset
        if self.broker is not None and change.leader_id != messages.NO_LEADER:
            self.broker.controller_found(now)

    def _renounce_unless_leading(self, now: Now) -> None:
        """Deactivate the controller of a leader that has resigned, before another leader is known."""
        if not isinstance(self.quorum.state, Leader):
            self._renounce(now)

    def _renounce(self, now: Now) -> None:
        self._epoch_start_offset = None
        if self.controller is not None and self.controller.is_active:
            self._writer.clear()
            self.controller.deactivate(now)

    def _commit(self, now: Now) -> None:
        """Begin to load the committed records, in steps if they are many. A load in progress continues instead."""
        if self._loading is None:
            self._load_to = self.quorum.high_watermark
            self._loading = self.metadata.advance(self._load_to)
            self._load(now)

    def _load(self, now: Now) -> None:
        """Run the next step of the load, unless a snapshot has replaced it. After the last step, notify the roles."""
        if self._loading is None:
            return
        try:
            next(self._loading)
        except StopIteration as done:
            self._loading = None
            self._loaded(done.value, now)
            if self._load_to < self.quorum.high_watermark:
                self._commit(now)
        else:
            self.runtime.timers.set(now.monotonic_ms, self._load)

    def _loaded(self, records: Sequence[MetadataRecord], now: Now) -> None:
        """Publish the change that the loaded records make. Then notify the active controller, or activate a new one."""
        applied_to = self.metadata.offset + 1
        self._publish(MetadataDelta.of(records), now)
        self._snapshots.handle_commit(now)
        if self.controller is None:
            return
        if self.controller.is_active:
            self.controller.handle_commit(applied_to, now)
        elif self._epoch_start_offset is not None and applied_to > self._epoch_start_offset:
            self.controller.activate(self.quorum.state.epoch, self.metadata.image.copy(), now)

    def _publish(self, delta: MetadataDelta, now: Now) -> None:
        """Apply a change of the image to this node's configuration. Notify the broker, if it may receive metadata."""
        self._apply_dynamic_configuration(delta)
        if self.broker is None:
            return
        if self._has_caught_up:
            self.broker.on_metadata_update(delta, now)
        elif self._has_current_image and self.broker.epoch != UNKNOWN_EPOCH:
            # Until this incarnation's registration is committed, the image has the leaderships of the previous
            # incarnation. The broker must not resume them: a power cut may have removed records from its logs.
            self._has_caught_up = True
            self.broker.on_metadata_update(MetadataDelta(everything=True), now)

    @property
    def _has_current_image(self) -> bool:
        """Whether the image has all records that this node knows to be committed."""
        return self.quorum.is_caught_up and self.metadata.offset + 1 >= self.quorum.high_watermark

    def _apply_dynamic_configuration(self, delta: MetadataDelta) -> None:
        """Apply this node's dynamic properties (KIP-226), before the node's roles apply the change."""
        if delta.everything or any(resource_type == ResourceType.BROKER for resource_type, _ in delta.configs):
            image, node_id = self.metadata.image, self.runtime.identity.node_id
            self.runtime.configuration.set_dynamic(
                image.overrides(ResourceType.BROKER, str(node_id)),
                image.overrides(ResourceType.BROKER, CLUSTER_DEFAULT),
            )
