"""Deadlines: actions that a running node must have completed.

| name                  | what must hold                                                                              |
|-----------------------|---------------------------------------------------------------------------------------------|
| `laggard-leaves-isr`  | if a member of the ISR lacks records and was not caught up for `replica.lag.time.max.ms`,   |
|                       | the leader proposes to remove it within half of that time, which is the period of its       |
|                       | check. The period begins again after each proposal of an ISR                                |
| `leaves-isr-lagging`  | a leader proposes to remove a follower from the ISR only if the follower lacks records and  |
|                       | was not caught up within `replica.lag.time.max.ms`. When a leader epoch begins, all members |
|                       | of the ISR count as caught up                                                               |
| `inactive-is-fenced`  | an active controller fences a broker that has been down for `broker.session.timeout.ms`,    |
|                       | and from which no heartbeat has arrived in that time                                        |
| `flushed-in-time`     | records are durable at most `flush.ms` plus `log.flush.scheduler.interval.ms` after the     |
|                       | append, or `log.initial.task.delay.ms` if that is longer                                    |
| `flush-is-due`        | if no batch is appended or removed, records become durable only if `flush.ms` has passed    |
|                       | since the last such flush, or since the log was opened                                      |
| `leader-is-announced` | a leader of the quorum checks twice per `controller.quorum.fetch.timeout.ms` which voters   |
|                       | do not fetch, and sends BeginQuorumEpoch to these voters (`LeaderState`)                    |
| `unclean-at-once`     | when `unclean.leader.election.enable` is changed, the active controller elects a leader of  |
|                       | each partition without one, if an unclean election is permitted and possible                |
| `election-timeout`    | a node that becomes Prospective, Candidate or Resigned waits at least                       |
|                       | `controller.quorum.election.timeout.ms`, and less than twice that                           |
|                       | (`QuorumState.randomElectionTimeoutMs`)                                                     |
| `resigned-node-waits` | a leader of the quorum that has resigned waits at most twice                                |
|                       | `controller.quorum.election.timeout.ms` for another leader (`ResignedState`)                |
| `broker-heartbeats`   | a broker waits for a response of the controller, or sends its next request within           |
|                       | `broker.session.timeout.ms`, after any number of failures (`BrokerLifecycleManager`)        |
| `shutdown-in-time`    | without contact to a majority of the voters, a controlled shutdown is given up after 1.5 s, |
|                       | and not before                                                                              |

If a node was paused or waited for a slow disk, each of its deadlines starts again when the node continues.
"""

from collections import defaultdict

from reference_broker.core.broker_lifecycle_manager import BrokerLifecycleManager, BrokerState
from reference_broker.core.configuration.key import LONG_MAX
from reference_broker.core.controller.elections import UNCLEAN_ELECTION
from reference_broker.core.node import Node
from reference_broker.core.quorum.messages import MAX_EPOCH
from reference_broker.core.quorum.quorum_state import NEVER_MS, Candidate, Leader, Prospective, Resigned
from reference_broker.core.quorum.raft_client import KafkaRaftClient
from reference_broker.core.replication.follower_progress import NEVER_MS as NEVER_CAUGHT_UP_MS
from reference_broker.core.replication.isr import IsrPhase, IsrState
from reference_broker.core.tracer import RequestDecided, ResponseSent
from reference_broker.protocol.metadata_records import ConfigRecord
from reference_broker.simulation.cluster import SimulatedCluster
from reference_broker.simulation.invariants.log_mirror import LogChange
from reference_broker.simulation.invariants.violation import InvariantViolation
from reference_broker.simulation.invariants.watch import ALL_AT_ONCE_MAX, Before, Observer, Replica, Watched

_HEARTBEAT = 63
_SLACK_MS = 2_500
"""Added to each bound of `_is_over`: checks are up to a second apart, and messages between nodes take time."""
_TIMER_SLACK_MS = 200
"""Added to a bound on the clock of the node's own timers, which is checked only while its disk is not slow."""
_NO_QUORUM_MAX_MS = 1_500
"""Time without contact to a majority after which a controlled shutdown is given up."""
_JUST_OPENED = -1
"""The partition epoch before the first check of a log after it was opened."""
_DRIFT_MAX = 1.3
"""Factor on each bound of `_is_over`, for the slowest clock."""


class TimelinessInvariants(Observer):
    """Observer that checks the deadlines.

    A node is checked only after its own events. While it has events, its deadlines are checked at least once a second.
    Times are those of the scheduler, unless the text of the attribute names another clock.
    """

    def __init__(self, cluster: SimulatedCluster) -> None:
        self._cluster = cluster
        self._active_since_ms: dict[int, tuple[int, int]] = {}
        """By active controller: its epoch, and the time at which it was first observed in this epoch."""
        self._down_since_ms: dict[int, int] = {}
        """By node that is down: the time of its end."""
        self._heartbeat_ms: dict[int, int] = {}
        """By broker: the time of the last response to a heartbeat, which may be after the broker has ended."""
        self._unflushed_since_ms: dict[Replica, int] = {}
        """By replica with unflushed records: the time at which the oldest one was observed."""
        self._flushed_ms: dict[Replica, int] = {}
        """By replica: the time at which it was opened, or last flushed without a change of its log. Monotonic clock."""
        self._quorum_ms: dict[int, int] = {}
        """By broker in controlled shutdown: the time of its last contact to a majority, or of the begin if later."""
        self._behind_since_ms: defaultdict[Replica, dict[int, int]] = defaultdict(dict)
        """By leader replica and member of the ISR: since when the member lacks records, by the leader's clock.

        A member whose log ends where the leader's log ends lacks no records, even if it has not fetched for long.
        """
        self._proposed_ms: dict[Replica, int] = {}
        """By leader replica: the time of its last proposal of an ISR, by its monotonic clock."""
        self._shrinking: dict[Replica, IsrState] = {}
        """By leader replica: its last proposal to shrink the ISR."""
        self._unclean_changed: set[int] = set()
        """Controllers that have changed `unclean.leader.election.enable` since their last check."""

    def started(self, watched: Watched) -> None:
        """Record that a node is no longer down."""
        self._down_since_ms.pop(watched.node_id, None)

    def ended(self, watched: Watched) -> None:
        """Record that a node is down, and check that it has not given up its controlled shutdown too early."""
        if watched.machine.ended_by == "stop" and watched.node is not None:
            _check_contact(watched, watched.node)
        self._active_since_ms.pop(watched.node_id, None)
        self._quorum_ms.pop(watched.node_id, None)
        self._unclean_changed.discard(watched.node_id)
        self._down_since_ms.setdefault(watched.node_id, self._cluster.scheduler.now_ms)

    def on_response(self, _watched: Watched, event: ResponseSent) -> None:
        """Record the time of the response to a heartbeat."""
        if event.request.api_key == _HEARTBEAT:
            self._heartbeat_ms[event.request.body.broker_id] = self._cluster.scheduler.now_ms

    def on_decision(self, watched: Watched, event: RequestDecided) -> None:
        """Record a change of `unclean.leader.election.enable`."""
        if any(isinstance(record, ConfigRecord) and record.name == UNCLEAN_ELECTION for record in event.records):
            self._unclean_changed.add(watched.node_id)

    def changed(self, watched: Watched, replica: Replica, before: Before) -> None:
        """Record proposals and unflushed records, and check proposals to shrink the ISR and flushes."""
        if replica.isr is not None and replica.isr.is_pending:
            self._proposed_ms[replica] = watched.machine.now.monotonic_ms
        if (replica.leader_epoch, replica.partition_epoch) != (before.leader_epoch, before.partition_epoch):
            replica.caught_up_ms.clear()
            replica.rejected_ms.clear()
            if replica.leader_epoch != before.leader_epoch and replica.isr is not None:
                replica.caught_up_ms.update(dict.fromkeys(replica.isr.isr, watched.machine.now.monotonic_ms))
        if replica.isr is not None and replica.isr.phase is IsrPhase.PENDING_SHRINK:
            self._check_shrink(watched, replica, replica.isr)
        if replica.recovery_point > before.recovery_point and _has_same_log(replica, before):
            self._check_due(watched, replica)
        if replica.recovery_point >= replica.end_offset or replica.recovery_point != before.recovery_point:
            self._unflushed_since_ms.pop(replica, None)
        if replica.recovery_point < replica.end_offset:
            self._unflushed_since_ms.setdefault(replica, self._cluster.scheduler.now_ms)

    def opened(self, watched: Watched, replica: Replica, log: LogChange) -> None:
        """Drop the time since which a replica has unflushed records: its flush period begins again with the opening."""
        self._unflushed_since_ms.pop(replica, None)
        self._flushed_ms[replica] = watched.machine.now.monotonic_ms

    def gone(self, watched: Watched, replica: Replica) -> None:
        """Remove a replica that was deleted."""
        self._unflushed_since_ms.pop(replica, None)
        self._flushed_ms.pop(replica, None)
        self._proposed_ms.pop(replica, None)
        self._shrinking.pop(replica, None)
        self._behind_since_ms.pop(replica, None)

    def quorum_changed(self, watched: Watched) -> None:
        """Check all deadlines of a node."""
        node = watched.node
        assert node is not None
        if node.broker is not None:
            _check_heartbeats(watched, node, node.broker.lifecycle)
            self._check_shutdown(watched, node, node.broker.lifecycle)
            for replica in watched.open:
                self._check_isr(watched, node, replica)
                self._check_flush(watched, node, replica)
        self._check_sessions(watched, node)
        self._check_unclean_elections(watched, node)
        _check_announcement(watched, node.quorum)
        _check_resignation(watched, node.quorum)
        _check_election_timeout(watched, node.quorum)

    def _is_over(self, watched: Watched, since_ms: int, bound_ms: int) -> bool:
        """Whether more time than a bound has passed since a time, or since the node last continued after a pause.

        Both times are those of the scheduler. The bound is extended for the slowest clock, and by `_SLACK_MS`.
        """
        now_ms = self._cluster.scheduler.now_ms
        return now_ms - max(since_ms, watched.resumed_ms) > bound_ms * _DRIFT_MAX + _SLACK_MS

    def _check_isr(self, watched: Watched, node: Node, replica: Replica) -> None:
        partition = replica.partition
        assert partition is not None
        if not partition.is_leader or partition.isr.is_pending or watched.disk.flush_ms:
            self._behind_since_ms.pop(replica, None)
            return
        lag_max_ms = node.runtime.configuration.integer("replica.lag.time.max.ms")
        monotonic_ms = watched.machine.now.monotonic_ms
        for node_id in partition.isr.isr - {watched.node_id}:
            if node_id not in partition.followers:
                continue  # removed by a reassignment
            follower = partition.followers[node_id]
            if follower.end_offset == partition.log.log_end_offset:
                self._behind_since_ms[replica].pop(node_id, None)
                continue
            lag_ms = monotonic_ms - follower.last_caught_up_ms
            behind_since_ms = self._behind_since_ms[replica].setdefault(node_id, monotonic_ms)
            due_ms = follower.last_caught_up_ms + lag_max_ms
            overdue_ms = monotonic_ms - max(due_ms, behind_since_ms, self._proposed_ms.get(replica, -1))
            has_run = self._is_over(watched, watched.resumed_ms, lag_max_ms // 2)
            if has_run and overdue_ms > lag_max_ms // 2 + _TIMER_SLACK_MS:
                detail = f"{replica}: {node_id} is in the ISR, and was not caught up for {lag_ms} ms"
                raise InvariantViolation("laggard-leaves-isr", detail)

    def _check_shrink(self, watched: Watched, replica: Replica, proposal: IsrState) -> None:
        """Check a new proposal, unless the node has too many replicas to check all of them after each event."""
        assert watched.node is not None
        if self._shrinking.get(replica) is proposal or len(watched.open) > ALL_AT_ONCE_MAX:
            return
        assert replica.partition is not None
        self._shrinking[replica] = proposal
        followers = replica.partition.followers
        lag_max_ms = watched.node.runtime.configuration.integer("replica.lag.time.max.ms")
        for node_id in sorted(proposal.isr - proposal.proposed):
            lag_ms = watched.machine.now.monotonic_ms - replica.caught_up_ms.get(node_id, NEVER_CAUGHT_UP_MS)
            if node_id in followers and followers[node_id].end_offset == replica.end_offset:
                detail = f"{replica}: {node_id} is proposed to leave the ISR, and has the whole log"
                raise InvariantViolation("leaves-isr-lagging", detail)
            if lag_ms <= lag_max_ms:
                detail = f"{replica}: {node_id} is proposed to leave the ISR, and was caught up {lag_ms} ms ago"
                raise InvariantViolation("leaves-isr-lagging", detail)

    def _check_flush(self, watched: Watched, node: Node, replica: Replica) -> None:
        period_ms = node.runtime.configuration.integer("log.flush.scheduler.interval.ms")
        if period_ms >= LONG_MAX:
            return
        partition = replica.partition
        assert partition is not None
        assert node.broker is not None
        flush_ms = node.broker.replicas.configuration(partition.topic).integer("flush.ms")
        oldest_ms = self._unflushed_since_ms.get(replica)
        first_ms = node.runtime.configuration.integer("log.initial.task.delay.ms")
        if oldest_ms is not None and self._is_over(watched, oldest_ms, max(flush_ms + period_ms, first_ms)):
            raise InvariantViolation("flushed-in-time", f"{replica}: has unflushed records since {oldest_ms} ms")

    def _check_due(self, watched: Watched, replica: Replica) -> None:
        """Check a flush, unless the node has too many replicas to check all of them after each event."""
        assert watched.node is not None
        assert watched.node.broker is not None
        assert replica.partition is not None
        now_ms = watched.machine.now.monotonic_ms
        since_ms = now_ms - self._flushed_ms[replica]
        self._flushed_ms[replica] = now_ms
        flush_ms = watched.node.broker.replicas.configuration(replica.partition.topic).integer("flush.ms")
        if since_ms < flush_ms and len(watched.open) <= ALL_AT_ONCE_MAX:
            detail = f"{replica}: flushed {since_ms} ms after the last flush, although flush.ms is {flush_ms}"
            raise InvariantViolation("flush-is-due", detail)

    def _check_shutdown(self, watched: Watched, node: Node, lifecycle: BrokerLifecycleManager) -> None:
        if lifecycle.state is not BrokerState.PENDING_CONTROLLED_SHUTDOWN:
            return
        now_ms, contact_ms = self._cluster.scheduler.now_ms, node.quorum.last_majority_contact_ms
        last_ms = max(self._quorum_ms.setdefault(watched.node_id, now_ms), watched.resumed_ms)
        if contact_ms is not None:
            contact_ms += now_ms - watched.machine.now.monotonic_ms
            if last_ms < contact_ms < last_ms + 2 * _NO_QUORUM_MAX_MS:  # else the shutdown should have ended before
                self._quorum_ms[watched.node_id] = last_ms = contact_ms
        if self._is_over(watched, last_ms, _NO_QUORUM_MAX_MS):
            detail = f"node {watched.node_id} still shuts down, without contact to a majority since {last_ms} ms"
            raise InvariantViolation("shutdown-in-time", detail)

    def _check_sessions(self, watched: Watched, node: Node) -> None:
        if node.controller is None or not node.controller.is_active:
            self._active_since_ms.pop(watched.node_id, None)
            return
        now_ms, epoch = self._cluster.scheduler.now_ms, node.quorum.state.epoch
        known = self._active_since_ms.get(watched.node_id)
        if known is None or known[0] != epoch:
            known = self._active_since_ms[watched.node_id] = (epoch, now_ms)
        session_ms = node.runtime.configuration.integer("broker.session.timeout.ms")
        for broker in node.metadata.image.brokers.values():
            down_ms = self._down_since_ms.get(broker.broker_id)
            if broker.fenced or down_ms is None:
                continue
            heartbeat_ms = self._heartbeat_ms.get(broker.broker_id, down_ms)
            if self._is_over(watched, max(known[1], down_ms, heartbeat_ms), session_ms):
                detail = (
                    f"broker {broker.broker_id} is down since {down_ms} ms, and not fenced by node {watched.node_id}"
                )
                raise InvariantViolation("inactive-is-fenced", detail)

    def _check_unclean_elections(self, watched: Watched, node: Node) -> None:
        if watched.node_id not in self._unclean_changed:
            return
        self._unclean_changed.discard(watched.node_id)
        if node.controller is None:
            return
        for change in node.controller.elections.maybe_elect_unclean_leaders():
            place = f"{node.controller.image.topics_by_id[change.topic_id].name}-{change.partition_id}"
            detail = f"node {watched.node_id} does not elect {change.leader}, which the configuration now permits"
            raise InvariantViolation("unclean-at-once", f"{place}: {detail}")


def _check_contact(watched: Watched, node: Node) -> None:
    contact_ms = node.quorum.last_majority_contact_ms
    if not node.has_given_up or contact_ms is None:
        return
    since_ms = watched.machine.now.monotonic_ms - contact_ms
    if since_ms < _NO_QUORUM_MAX_MS:
        detail = f"node {watched.node_id} gives up its shutdown {since_ms} ms after its last contact to a majority"
        raise InvariantViolation("shutdown-in-time", detail)


def _has_same_log(replica: Replica, before: Before) -> bool:
    """Whether a log was open before, and has the same batches and bounds."""
    has_same_batches = not (before.log.added or before.log.removed or before.log.forgotten)
    has_same_bounds = (replica.start_offset, replica.end_offset) == (before.start_offset, before.end_offset)
    return has_same_batches and has_same_bounds and before.partition_epoch != _JUST_OPENED


def _check_announcement(watched: Watched, quorum: KafkaRaftClient) -> None:
    if not isinstance(quorum.state, Leader):
        return
    now = watched.machine.now
    left_ms = quorum.state.begin_quorum_epoch_deadline_ms - now.monotonic_ms
    if left_ms > quorum.config.fetch_timeout_ms // 2:
        detail = f"node {watched.node_id} waits {left_ms} ms before it checks which voters do not fetch"
        raise InvariantViolation("leader-is-announced", detail)
    if left_ms == quorum.config.begin_quorum_epoch_timeout_ms:  # the leader has checked the voters in this event
        silent = [voter for voter in quorum.state.non_fetching_voters(now) if quorum.request_manager.is_ready(voter)]
        if silent:
            detail = f"node {watched.node_id} sends no BeginQuorumEpoch to {silent}, which do not fetch"
            raise InvariantViolation("leader-is-announced", detail)


def _check_election_timeout(watched: Watched, quorum: KafkaRaftClient) -> None:
    """Check a state that began in this event. The first state of a node is not checked: it may have begun earlier."""
    state, timeout_ms = quorum.state, quorum.config.election_timeout_ms
    if (
        watched.quorum_state is None
        or watched.quorum_state is state
        or not isinstance(state, Prospective | Candidate | Resigned)
    ):
        return
    left_ms = state.election_deadline_ms - watched.machine.now.monotonic_ms
    if not timeout_ms <= left_ms < 2 * timeout_ms:
        detail = f"node {watched.node_id} becomes {state.role.value}, and waits {left_ms} ms"
        raise InvariantViolation("election-timeout", detail)


def _check_resignation(watched: Watched, quorum: KafkaRaftClient) -> None:
    if isinstance(quorum.state, Resigned) and quorum.state.epoch < MAX_EPOCH:
        left_ms = quorum.state.election_deadline_ms - watched.machine.now.monotonic_ms
        if left_ms > 2 * quorum.config.election_timeout_ms:
            detail = f"node {watched.node_id} has resigned, and waits {left_ms} ms for another leader"
            raise InvariantViolation("resigned-node-waits", detail)


def _check_heartbeats(watched: Watched, node: Node, lifecycle: BrokerLifecycleManager) -> None:
    if lifecycle.state in {BrokerState.NOT_RUNNING, BrokerState.SHUTTING_DOWN} or lifecycle.is_request_in_flight:
        return
    next_ms = lifecycle.next_request_ms
    left_ms = (NEVER_MS if next_ms is None else next_ms) - watched.machine.now.monotonic_ms
    if left_ms > node.runtime.configuration.integer("broker.session.timeout.ms"):
        detail = f"node {watched.node_id} sends its next request to the controller in {left_ms} ms"
        raise InvariantViolation("broker-heartbeats", detail)
