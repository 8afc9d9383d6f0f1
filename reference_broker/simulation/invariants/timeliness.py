"""What must have happened by now, in a node that runs.

| name                  | what must hold                                                                              |
|-----------------------|---------------------------------------------------------------------------------------------|
| `laggard-leaves-isr`  | a leader keeps nobody in the ISR who has not caught up for `replica.lag.time.max.ms`, and   |
|                       | half of it more, which is how often it looks; since it last asked for a change of the ISR   |
| `leaves-isr-lagging`  | nobody is asked out of the ISR who was caught up within `replica.lag.time.max.ms`, or has   |
|                       | all that there is; to a new leader all are caught up when its epoch begins                  |
| `silent-is-fenced`    | an active controller fences a broker that is down, and was not heard of, for                |
|                       | `broker.session.timeout.ms`                                                                 |
| `flushed-in-time`     | what `flush.ms` asks to be durable is, a period of `log.flush.scheduler.interval.ms` later  |
| `leader-is-announced` | a leader of the quorum looks every half of `controller.quorum.fetch.timeout.ms` for voters  |
|                       | that do not fetch, and that BeginQuorumEpoch is for (`LeaderState`)                         |
| `broker-reports`      | a broker waits for a response of the controller, or sends it a request within               |
|                       | `broker.session.timeout.ms`, after any number of failures (`BrokerLifecycleManager`)        |

A node that was away itself, paused or with a slow disk, has the time again from when it was back.
"""

from collections import defaultdict

from reference_broker.core.configuration.key import LONG_MAX
from reference_broker.core.lifecycle import BrokerState, Lifecycle
from reference_broker.core.node import Node
from reference_broker.core.quorum.quorum_state import NEVER_MS, Leader
from reference_broker.core.quorum.raft_client import KafkaRaftClient
from reference_broker.core.replication.follower_progress import NEVER_MS as NEVER_CAUGHT_UP_MS
from reference_broker.core.replication.isr import IsrPhase, IsrState
from reference_broker.core.tracer import ResponseSent
from reference_broker.simulation.cluster import SimulatedCluster
from reference_broker.simulation.invariants.log_mirror import LogChange
from reference_broker.simulation.invariants.violation import InvariantViolation
from reference_broker.simulation.invariants.watch import ALL_AT_ONCE_MAX, Before, Observer, Replica, Watched

_HEARTBEAT = 63
_SLACK_MS = 2_500
"""Beyond any bound: looks are a second apart, and what one node learns from another takes its way."""
_DRIFT_MAX = 1.3
"""So much longer takes the time of a clock that is slow."""


class TimelinessInvariants(Observer):
    """An observer of a watch. It is asked at least once a second of each node to which anything happens."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        self._cluster = cluster
        self._active_since_ms: dict[int, tuple[int, int]] = {}
        """By node: the epoch in which it is the active controller, and since when."""
        self._down_since_ms: dict[int, int] = {}
        self._heard_ms: dict[int, int] = {}
        """When a heartbeat of a broker last arrived: it may be on its way for longer than its sender runs."""
        self._unflushed_since_ms: dict[Replica, int] = {}
        self._behind_since_ms: defaultdict[Replica, dict[int, int]] = defaultdict(dict)
        """Since when a member of the ISR lacks anything: who is idle never lags."""
        self._asked_ms: dict[Replica, int] = {}
        """When a change of the ISR was last asked for, of those that lead."""
        self._shrinking: dict[Replica, IsrState] = {}
        """The last wish of each to have somebody out of the ISR."""

    def started(self, watched: Watched) -> None:
        """It is not down any more."""
        self._down_since_ms.pop(watched.node_id, None)

    def ended(self, watched: Watched) -> None:
        """It is down from now on."""
        self._active_since_ms.pop(watched.node_id, None)
        self._down_since_ms.setdefault(watched.node_id, self._cluster.scheduler.now_ms)

    def answered(self, _watched: Watched, event: ResponseSent) -> None:
        """The controller has received a heartbeat."""
        if event.request.api_key == _HEARTBEAT:
            self._heard_ms[event.request.body.broker_id] = self._cluster.scheduler.now_ms

    def changed(self, watched: Watched, replica: Replica, before: Before) -> None:
        """What is behind the recovery point waits from now on, if it did not wait before."""
        if replica.isr is not None and replica.isr.is_pending:
            self._asked_ms[replica] = self._cluster.scheduler.now_ms
        if (replica.leader_epoch, replica.partition_epoch) != (before.leader_epoch, before.partition_epoch):
            replica.caught_up_ms.clear()
            replica.refused_ms.clear()
            if replica.leader_epoch != before.leader_epoch and replica.isr is not None:
                replica.caught_up_ms.update(dict.fromkeys(replica.isr.isr, watched.machine.now.monotonic_ms))
        if replica.isr is not None and replica.isr.phase is IsrPhase.PENDING_SHRINK:
            self._check_shrink(watched, replica, replica.isr)
        if replica.recovery_point >= replica.end_offset or replica.recovery_point != before.recovery_point:
            self._unflushed_since_ms.pop(replica, None)
        if replica.recovery_point < replica.end_offset:
            self._unflushed_since_ms.setdefault(replica, self._cluster.scheduler.now_ms)

    def opened(self, watched: Watched, replica: Replica, log: LogChange) -> None:
        """It is flushed in its own time again."""
        self._unflushed_since_ms.pop(replica, None)

    def gone(self, watched: Watched, replica: Replica) -> None:
        """Nobody waits for it."""
        self._unflushed_since_ms.pop(replica, None)
        self._asked_ms.pop(replica, None)
        self._shrinking.pop(replica, None)
        self._behind_since_ms.pop(replica, None)

    def quorum_changed(self, watched: Watched) -> None:
        """See the table."""
        node = watched.node
        assert node is not None
        if node.broker is not None:
            _check_reports(watched, node, node.broker.lifecycle)
            for replica in watched.open:
                self._check_isr(watched, node, replica)
                self._check_flush(watched, node, replica)
        self._check_sessions(watched, node)
        _check_announcement(watched, node.quorum)

    def _is_over(self, watched: Watched, since_ms: int, bound_ms: int) -> bool:
        """Whether a node has had so much time, by its own clock, and since it was back."""
        now_ms = self._cluster.scheduler.now_ms
        return now_ms - max(since_ms, watched.resumed_ms) > bound_ms * _DRIFT_MAX + _SLACK_MS

    def _check_isr(self, watched: Watched, node: Node, replica: Replica) -> None:
        partition = replica.partition
        assert partition is not None
        if not partition.is_leader or partition.isr.is_pending:
            self._behind_since_ms.pop(replica, None)
            return
        lag_max_ms = node.runtime.configuration.integer("replica.lag.time.max.ms")
        monotonic_ms = watched.machine.now.monotonic_ms
        for node_id in partition.isr.isr - {watched.node_id}:
            if node_id not in partition.followers:
                continue  # removed by a reassignment, whose record says so
            follower = partition.followers[node_id]
            if follower.end_offset == partition.log.log_end_offset:
                self._behind_since_ms[replica].pop(node_id, None)
                continue
            lag_ms = monotonic_ms - follower.last_caught_up_ms
            now_ms = self._cluster.scheduler.now_ms
            behind_ms = self._behind_since_ms[replica].setdefault(node_id, now_ms)
            since_ms = max(now_ms - lag_ms + lag_max_ms, behind_ms, self._asked_ms.get(replica, -1))
            if self._is_over(watched, since_ms, lag_max_ms // 2):
                detail = f"{replica}: {node_id} is in the ISR, and was not caught up for {lag_ms} ms"
                raise InvariantViolation("laggard-leaves-isr", detail)

    def _check_shrink(self, watched: Watched, replica: Replica, wish: IsrState) -> None:
        """At once, when it is new; where a node has many replicas, they may be seen too late for that."""
        assert watched.node is not None
        if self._shrinking.get(replica) is wish or len(watched.open) > ALL_AT_ONCE_MAX:
            return
        assert replica.partition is not None
        self._shrinking[replica] = wish
        followers = replica.partition.followers
        lag_max_ms = watched.node.runtime.configuration.integer("replica.lag.time.max.ms")
        for node_id in sorted(wish.isr - wish.proposed):
            lag_ms = watched.machine.now.monotonic_ms - replica.caught_up_ms.get(node_id, NEVER_CAUGHT_UP_MS)
            if node_id in followers and followers[node_id].end_offset == replica.end_offset:
                detail = f"{replica}: {node_id} is to leave the ISR, and has all that there is"
                raise InvariantViolation("leaves-isr-lagging", detail)
            if lag_ms <= lag_max_ms:
                detail = f"{replica}: {node_id} is to leave the ISR, and was caught up {lag_ms} ms ago"
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
        if oldest_ms is not None and self._is_over(watched, oldest_ms, flush_ms + period_ms):
            raise InvariantViolation("flushed-in-time", f"{replica}: not flushed since {oldest_ms}")

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
            heard_ms = self._heard_ms.get(broker.broker_id, down_ms)
            if self._is_over(watched, max(known[1], down_ms, heard_ms), session_ms):
                detail = f"broker {broker.broker_id} is down since {down_ms}, and not fenced by node {watched.node_id}"
                raise InvariantViolation("silent-is-fenced", detail)


def _check_announcement(watched: Watched, quorum: KafkaRaftClient) -> None:
    if isinstance(quorum.state, Leader):
        left_ms = quorum.state.begin_quorum_epoch_deadline_ms - watched.machine.now.monotonic_ms
        if left_ms > quorum.config.fetch_timeout_ms // 2:
            detail = f"node {watched.node_id} looks for voters that do not fetch in {left_ms} ms"
            raise InvariantViolation("leader-is-announced", detail)


def _check_reports(watched: Watched, node: Node, lifecycle: Lifecycle) -> None:
    if lifecycle.state in {BrokerState.NOT_RUNNING, BrokerState.SHUTTING_DOWN} or lifecycle.is_request_in_flight:
        return
    next_ms = lifecycle.next_request_ms
    left_ms = (NEVER_MS if next_ms is None else next_ms) - watched.machine.now.monotonic_ms
    if left_ms > node.runtime.configuration.integer("broker.session.timeout.ms"):
        detail = f"node {watched.node_id} sends its next request to the controller in {left_ms} ms"
        raise InvariantViolation("broker-reports", detail)
