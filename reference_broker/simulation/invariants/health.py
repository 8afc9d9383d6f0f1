"""Health of a node: no busy loop, no unexplained end, no leftover requests and timers.

| name                  | what must hold                                                                              |
|-----------------------|---------------------------------------------------------------------------------------------|
| `no-busy-loop`        | a node processes a bounded number of events in one virtual ms (`watch`)                     |
| `ends-without-fault`  | a node ends by itself only if its disk has failed, or if it could not register              |
| `no-leftovers`        | an idle node has few timers, pending requests and requests in flight, no purgatory key      |
|                       | without requests, and no connection of a removed fetcher. No node has a pending request of  |
|                       | a closed connection. Pending requests of the quorum are fetches that wait for records       |
| `channel-timeout`     | a node disconnects from a peer only after the deadline of a request to that peer, or if no  |
|                       | request to the peer is in flight                                                            |
| `shutdown-completes`  | a node that shuts down ends when another voter leads the quorum, and at once if there is no |
|                       | other voter (`KafkaRaftClient.pollShutdown`)                                                |
| `shutdown-hands-over` | a voter that shuts down waits until another voter leads the quorum. It may end without one  |
|                       | only after a time limit, or if the reachable other voters are no majority (same method)     |
| `ready-is-running`    | a broker is ready only after the controller has unfenced it (`BrokerServer.startup`)        |
| `request-times-out`   | each request in flight has a timer that is due at its deadline, or before                   |
"""

from reference_broker.core.broker_lifecycle_manager import BrokerState, RegistrationTimeoutError
from reference_broker.core.channels import Channels
from reference_broker.core.node import Node
from reference_broker.core.quorum.quorum_state import Resigned
from reference_broker.core.quorum.raft_client import KafkaRaftClient
from reference_broker.core.replication.replica_fetcher_manager import FetcherKind
from reference_broker.core.tracer import ChannelDisconnected
from reference_broker.simulation.invariants.violation import InvariantViolation
from reference_broker.simulation.invariants.watch import Observer, Watched
from reference_broker.simulation.machine import Machine

_TIMERS_MAX = 1_000
_WAITING_MAX = 500
_UNDER_WAY_MAX = 100


class HealthInvariants(Observer):
    """Checks of the state, timeouts, pending requests and end of a node."""

    def metadata_advanced(self, watched: Watched, from_offset: int) -> None:
        """Check that a broker is ready only in state RUNNING."""
        node = watched.node
        assert node is not None
        if node.broker is not None and node.is_ready and node.broker.lifecycle.state is not BrokerState.RUNNING:
            detail = f"node {watched.node_id} is ready in state {node.broker.lifecycle.state.name}"
            raise InvariantViolation("ready-is-running", detail)

    def quorum_changed(self, watched: Watched) -> None:
        """Check timeouts, the end of a shutdown, and pending requests of closed connections."""
        assert watched.node is not None
        _check_timeouts(watched, watched.node.runtime.channels)
        _check_end(watched, watched.quorum)
        lost = _lost(watched.machine, watched.node)
        if lost:
            detail = f"node {watched.node_id} keeps {lost} requests of closed connections"
            raise InvariantViolation("no-leftovers", detail)
        pending, delayed = watched.node.pending_quorum_requests, watched.quorum.delayed_fetches
        if pending != delayed:
            detail = (
                f"node {watched.node_id} has {pending} pending requests of the quorum and {delayed} delayed fetches"
            )
            raise InvariantViolation("no-leftovers", detail)

    def ended(self, watched: Watched) -> None:
        """Check why a node has ended."""
        machine = watched.machine
        if machine.ended_by == "failed" and not _is_explained(machine):
            raise InvariantViolation("ends-without-fault", f"node {watched.node_id}: {machine.failed}")
        if machine.ended_by == "stop" and watched.node is not None:
            _check_successor(watched, watched.node)


def check_channel_timeout(watched: Watched, event: ChannelDisconnected) -> None:
    """Check that no request on a disconnected channel has a deadline in the future.

    :raises InvariantViolation: `channel-timeout`.
    """
    left_ms = 0 if event.deadline_ms is None else event.deadline_ms - watched.machine.now.monotonic_ms
    if left_ms > 0:
        peer = f"node {event.channel.node_id}, which has {left_ms} ms left to respond"
        raise InvariantViolation("channel-timeout", f"node {watched.node_id} disconnects from {peer}")


def _check_timeouts(watched: Watched, channels: Channels) -> None:
    for channel, deadline_ms, timer_ms in channels.deadlines():
        if timer_ms is None or timer_ms > deadline_ms:
            request = f"node {watched.node_id}: the request to node {channel.node_id} ({channel.purpose})"
            detail = f"{request} has its deadline at {deadline_ms} ms, and its timer at {timer_ms} ms"
            raise InvariantViolation("request-times-out", detail)


def _check_end(watched: Watched, quorum: KafkaRaftClient) -> None:
    if not quorum.is_shutting_down or watched.machine.is_busy:
        return
    leader_id, others = quorum.state.leader_id, quorum.voters.others(watched.node_id)
    if leader_id in others or not others:
        detail = f"node {watched.node_id} shuts down and does not end; the leader of the quorum is {leader_id}"
        raise InvariantViolation("shutdown-completes", detail)


def _check_successor(watched: Watched, node: Node) -> None:
    state, others = node.quorum.state, set(node.quorum.voters.others(watched.node_id))
    if node.has_given_up or state.leader_id in others or watched.node_id not in node.quorum.voters.ids:
        return
    electors = others - state.unreachable if isinstance(state, Resigned) else others
    if len(electors) > len(node.quorum.voters.ids) // 2:
        detail = f"node {watched.node_id} ends as {state.role.value} in epoch {state.epoch}, without a new leader"
        raise InvariantViolation("shutdown-hands-over", detail)


def _is_explained(machine: Machine) -> bool:
    if machine.failed.startswith(RegistrationTimeoutError.__name__):
        return True
    return "injected" in machine.failed and bool(machine.disk.failures or machine.disk.free_bytes is not None)


def check_idle(watched: Watched) -> None:
    """Check that a node has few timers and requests. Clients must have disconnected; the cluster must be healthy."""
    node = watched.node
    assert node is not None
    for kind, count, count_max in _pending(watched.machine, node):
        if count > count_max:
            raise InvariantViolation("no-leftovers", f"node {watched.node_id} is idle, and has {count} {kind}")


def _lost(machine: Machine, node: Node) -> int:
    """Return the number of pending requests whose connection is closed."""
    waiting = node.runtime.purgatory.connections
    return sum(connection is not None and not machine.is_connected(connection) for connection in waiting)


def _pending(machine: Machine, node: Node) -> list[tuple[str, int, int]]:
    """Return kind, number and permitted maximum of what is pending in a node."""
    runtime, purgatory = node.runtime, node.runtime.purgatory
    empty_keys = sum(next(purgatory.operations(key), None) is None for key in purgatory.keys)
    return [
        ("timers", len(runtime.timers), _TIMERS_MAX),
        ("pending requests", len(purgatory), _WAITING_MAX),
        ("purgatory keys without requests", empty_keys, 0),
        ("requests in flight", runtime.channels.in_flight, _UNDER_WAY_MAX),
        ("requests of the quorum", node.pending_quorum_requests, _UNDER_WAY_MAX),
        ("connections of removed fetchers", _removed_fetchers(machine, node), 0),
    ]


def _removed_fetchers(machine: Machine, node: Node) -> int:
    """Return the number of connections to leaders whose fetcher has no partitions."""
    if node.broker is None:
        return 0
    used = {(fetcher.leader, fetcher.purpose) for fetcher in node.broker.replicas.fetchers.fetcher_ids.values()}
    to_leaders = [channel for channel in machine.channels if channel.purpose.startswith(FetcherKind.BUSY.value)]
    return sum((channel.node_id, channel.purpose) not in used for channel in to_leaders)
