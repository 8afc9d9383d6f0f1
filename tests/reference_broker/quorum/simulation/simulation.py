"""Deterministic simulation of a quorum in one thread: virtual time, faulty network and disks, one seed.

An event is the delivery of a message, a timer, an append or a fault. The invariants are checked after each event.
Finally all faults are healed. Within a bound, all nodes must then agree on a leader and have committed new records.
"""

import heapq
import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from random import Random
from uuid import UUID

from reference_broker.core.clock import Now
from reference_broker.core.log.config import LogConfig
from reference_broker.core.quorum.configuration import QuorumConfig
from reference_broker.core.quorum.effects import LeaderChanged, SendRequest, SendResponse
from reference_broker.core.quorum.messages import FetchSnapshotResponse
from reference_broker.core.quorum.quorum_state import Follower, Leader
from reference_broker.core.quorum.raft_client import KafkaRaftClient
from reference_broker.core.quorum.snapshots import encode_snapshot
from reference_broker.core.quorum.voters import ReplicaKey, Voter, VoterSet
from reference_broker.protocol.records import KeyValue, encode_batch
from reference_broker.simulation.disk import PowerFailureError, SimulatedDisk
from tests.reference_broker.quorum.simulation.invariants import Invariants, InvariantViolation, require
from tests.reference_broker.quorum.simulation.scenario import Fault, FaultKind, Scenario

WALL_START_MS = 1_700_000_000_000
APPEND_INTERVAL_MS = 12
LIVENESS_BOUND_MS = 3000
CONFIG = QuorumConfig(
    election_timeout_ms=150,
    election_backoff_max_ms=150,
    fetch_timeout_ms=300,
    request_timeout_ms=200,
    retry_backoff_ms=20,
    fetch_max_wait_ms=80,
    fetch_max_bytes=2000,
    log=LogConfig(cleanup_policy=frozenset(), segment_bytes=4000, index_interval_bytes=500),
)


@cache
def payload(number: int) -> bytes:
    return encode_batch([KeyValue(None, b"%d" % number)] * (1 + number % 3), WALL_START_MS + number)


@dataclass
class Host:
    """A machine. Its disk survives its node. Responses to an earlier incarnation of the node are not delivered."""

    disk: SimulatedDisk
    node: KafkaRaftClient | None = None
    incarnation: int = 0
    timer_ms: int | None = None
    """Time of the earliest scheduled timer of the node."""
    is_stopping: bool = False


class Simulation:
    """One run of a scenario.

    :ivar events: number of events.
    :ivar elections: number of leaders that were elected.
    """

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.random = Random(scenario.seed)
        self.now_ms = 0
        self.events = 0
        self.elections = 0
        count = scenario.voters + scenario.observers
        self._keys = [ReplicaKey(number, UUID(int=1000 + number)) for number in range(count)]
        self._voters = VoterSet(Voter(key) for key in self._keys[: scenario.voters])
        self.hosts = [Host(SimulatedDisk()) for _ in range(count)]
        self.invariants = Invariants(self._voters.ids, check_quorum_bound_ms=3 * CONFIG.fetch_timeout_ms)
        self._heap: list[tuple[int, int, Callable[[], None]]] = []
        self._sequence = itertools.count()
        self._number = itertools.count()
        self._cuts: list[set[tuple[int, int]]] = []
        self._is_healed = False

    def run(self) -> None:
        """Run the scenario. Raises `InvariantViolation`."""
        for node_id in range(len(self.hosts)):
            self._start(node_id)
        self._at(APPEND_INTERVAL_MS, self._append)
        for fault in self.scenario.faults:
            self._at(fault.at_ms, lambda fault=fault: self._inject(fault))
        self._run_until(self.scenario.faulty_ms)
        self._heal()
        self._run_until(self.now_ms + LIVENESS_BOUND_MS, self._has_converged)
        target = self.invariants.high_watermark + 3
        self._run_until(
            self.now_ms + LIVENESS_BOUND_MS,
            lambda: self._has_converged() and all(host.node.high_watermark >= target for host in self.hosts),
        )
        for node_id, host in enumerate(self.hosts):
            self.invariants.check_whole_log(node_id, host.node)

    def _run_until(self, end_ms: int, is_done: Callable[[], bool] | None = None) -> None:
        while self._heap and self._heap[0][0] <= end_ms:
            self.now_ms, _, event = heapq.heappop(self._heap)
            event()
            self.events += 1
            if is_done is not None and self.events % 16 == 0 and is_done():
                return
        self.now_ms = end_ms
        if is_done is not None:
            require(is_done(), "liveness", lambda: f"{LIVENESS_BOUND_MS} ms after healing: {self._summary()}")

    def _summary(self) -> str:
        return "; ".join(
            f"{node_id} {host.node.state.role.value} of {host.node.state.epoch}, "
            f"log {host.node.log.end}, high watermark {host.node.high_watermark}"
            for node_id, host in enumerate(self.hosts)
            if host.node
        )

    def _has_converged(self) -> bool:
        nodes = [host.node for host in self.hosts if host.node]
        leaders = {(node.state.epoch, node.state.leader_id) for node in nodes}
        settled = all(isinstance(node.state, Leader | Follower) for node in nodes)
        return len(nodes) == len(self.hosts) and settled and len(leaders) == 1

    # Events

    def _at(self, at_ms: int, event: Callable[[], None]) -> None:
        heapq.heappush(self._heap, (at_ms, next(self._sequence), event))

    def _now(self) -> Now:
        return Now(WALL_START_MS + self.now_ms, self.now_ms)

    def _after(self, node_id: int) -> None:
        """Execute the effects of a node, and check the invariants."""
        host = self.hosts[node_id]
        node = host.node
        effects = node.take_effects()
        self.invariants.on_change(node_id, node, self.now_ms)
        for effect in effects:
            match effect:
                case SendRequest():
                    self._send_request(node_id, effect)
                case SendResponse():
                    self._send_response(node_id, effect)
                case LeaderChanged() if effect.leader_id == node_id:
                    self.elections += 1
        deadline_ms = node.deadline_ms
        if deadline_ms is not None and (host.timer_ms is None or deadline_ms < host.timer_ms):
            require(deadline_ms > self.now_ms, "no-busy-loop", lambda: f"node {node_id}, {node.state}")
            host.timer_ms = deadline_ms
            self._at(deadline_ms, lambda: self._timer(node_id, host.incarnation, deadline_ms))
        if host.is_stopping and node.may_stop:
            host.node = None

    def _timer(self, node_id: int, incarnation: int, deadline_ms: int) -> None:
        host = self.hosts[node_id]
        if host.node and host.incarnation == incarnation and host.timer_ms == deadline_ms:
            host.timer_ms = None
            self._do(node_id, lambda node: node.poll(self._now()))

    def _do(self, node_id: int, action: Callable[[KafkaRaftClient], object], *, is_snapshot: bool = False) -> bool:
        """Run an action on a node; return False if the power failed during it."""
        host = self.hosts[node_id]
        with self._power(node_id, is_snapshot=is_snapshot):
            action(host.node)
        if host.node is None:
            return False
        self._after(node_id)
        return True

    @contextmanager
    def _power(self, node_id: int, *, is_snapshot: bool = False) -> Iterator[None]:
        """Let the power fail at random during the block.

        It fails more often during snapshots, because they are rare and change several files.
        """
        host = self.hosts[node_id]
        probability = self.scenario.crashes_midway * (25 if is_snapshot else 1)
        if not self._is_healed and self.random.random() < probability:
            host.disk.crashes_after = self.random.randrange(12 if is_snapshot else 4)
        try:
            yield
        except PowerFailureError:
            host.disk.crashes_after = None
            self._crash(host, node_id, loses_power=True)
            self._at(self.now_ms + self.random.choice((1, 50)), lambda: self._start(node_id))
        finally:
            host.disk.crashes_after = None

    def _append(self) -> None:
        for node_id, host in enumerate(self.hosts):
            if host.node and isinstance(host.node.state, Leader):
                batches = [payload(next(self._number)) for _ in range(self.random.choice((1, 1, 1, 4)))]
                self._do(node_id, lambda node, batches=batches: node.append(batches, node.state.epoch, self._now()))
        self._at(self.now_ms + APPEND_INTERVAL_MS, self._append)

    # Network

    def _delay_ms(self) -> int | None:
        """Return the delay of a message, or None if it is lost."""
        if not self._is_healed:
            if self.random.random() < self.scenario.drop:
                return None
            if self.random.random() < self.scenario.slow:
                return self.random.randrange(50, 800)
        return self.random.randrange(1, 8)

    def _is_cut(self, source: int, destination: int) -> bool:
        return any((source, destination) in cut for cut in self._cuts)

    def _send_request(self, source: int, effect: SendRequest) -> None:
        delay_ms = self._delay_ms()
        incarnation = self.hosts[source].incarnation
        if delay_ms is not None:
            self._at(self.now_ms + delay_ms, lambda: self._receive_request(source, incarnation, effect))
        elif self.random.random() < 0.5:
            self._fail(source, incarnation, effect.request_id)

    def _fail(self, source: int, incarnation: int, request_id: int) -> None:
        def fail() -> None:
            host = self.hosts[source]
            if host.node and host.incarnation == incarnation:
                self._do(source, lambda node: node.fail_request(request_id, self._now()))

        self._at(self.now_ms + 2, fail)

    def _receive_request(self, source: int, incarnation: int, effect: SendRequest) -> None:
        host = self.hosts[effect.voter_id]
        if self._is_cut(source, effect.voter_id):
            return
        if host.node is None:
            self._fail(source, incarnation, effect.request_id)
            return
        node, end, election = host.node, host.node.log.end, host.node.election
        self.invariants.on_request(effect.voter_id, node, source, effect.request, self.now_ms)
        caller = source, incarnation, effect.request_id
        with self._power(effect.voter_id):
            node.handle_request(caller, effect.request, self._now())
        if host.node is None:
            return
        has_voted = self.invariants.on_response(node, effect.request, end, election, node.effects)
        self._after(effect.voter_id)
        if has_voted:
            self._maybe_crash(effect.voter_id, self.scenario.crashes_after_vote)

    def _send_response(self, source: int, effect: SendResponse) -> None:
        delay_ms = self._delay_ms()
        if delay_ms is not None:
            self._at(self.now_ms + delay_ms, lambda: self._receive_response(source, effect))

    def _receive_response(self, source: int, effect: SendResponse) -> None:
        destination, incarnation, request_id = effect.caller
        host = self.hosts[destination]
        if host.node and host.incarnation == incarnation and not self._is_cut(source, destination):
            log, end_offset = host.node.log, host.node.log.end_offset
            is_up = self._do(
                destination,
                lambda node: node.handle_response(request_id, effect.response, self._now()),
                is_snapshot=isinstance(effect.response, FetchSnapshotResponse),
            )
            if is_up and log.end_offset < end_offset:
                self._maybe_crash(destination, self.scenario.crashes_after_truncation)

    # Faults

    def _start(self, node_id: int) -> None:
        host = self.hosts[node_id]
        if host.node is not None:
            return
        host.incarnation += 1
        host.timer_ms = None
        host.is_stopping = False
        with self._power(node_id):
            host.node = KafkaRaftClient(
                local=self._keys[node_id],
                voters=self._voters,
                cluster_id="simulated",
                config=CONFIG,
                disk=host.disk,
                random_below=self._random_below,
                now=self._now(),
            )
        if host.node is not None:
            self.invariants.started(node_id, host.node, self.now_ms)
            self._after(node_id)

    def _maybe_crash(self, node_id: int, share: float) -> None:
        """Schedule a power failure with probability `share`, at once or 20 ms later."""
        if not self._is_healed and self.random.random() < share:
            fault = Fault(self.now_ms + self.random.choice((0, 0, 20)), FaultKind.CRASH, node_id)
            self._at(fault.at_ms, lambda: self._inject(fault))

    def _random_below(self, bound: int) -> int:
        return self.random.randrange(bound if self._is_healed else min(bound, self.scenario.jitter_ms))

    def _inject(self, fault: Fault) -> None:
        node_id = fault.node % len(self.hosts)
        host = self.hosts[node_id]
        match fault.kind:
            case FaultKind.CRASH | FaultKind.KILL:
                if host.node:
                    self._crash(host, node_id, loses_power=fault.kind is FaultKind.CRASH)
                self._at(self.now_ms + fault.for_ms, lambda: self._start(node_id))
            case FaultKind.STOP:
                if host.node and not host.is_stopping:
                    host.is_stopping = True
                    self._do(node_id, lambda node: node.shut_down(self._now()))
                    self._at(self.now_ms + 400, lambda: self._restart(host, node_id))
            case FaultKind.RESIGN:
                if host.node:
                    self._do(node_id, lambda node: node.resign(self._now()))
            case FaultKind.SNAPSHOT:
                self._snapshot(node_id)
            case _:
                cut = self._cut(fault.kind, node_id)
                self._cuts.append(cut)
                self._at(self.now_ms + fault.for_ms, lambda: self._remove_cut(cut))

    def _crash(self, host: Host, node_id: int, *, loses_power: bool) -> None:
        host.node = None
        if loses_power:
            host.disk.cut_power(self.random)

    def _restart(self, host: Host, node_id: int) -> None:
        if host.is_stopping:
            host.node = None
            self._start(node_id)

    def _cut(self, kind: FaultKind, node_id: int) -> set[tuple[int, int]]:
        """Return the links (source, destination) that a fault cuts."""
        nodes = range(len(self.hosts))
        incoming = {(other, node_id) for other in nodes}
        outgoing = {(node_id, other) for other in nodes}
        match kind:
            case FaultKind.DEAF:
                return incoming
            case FaultKind.MUTE:
                return outgoing
            case FaultKind.ISOLATE:
                return incoming | outgoing
        side = {(node_id + step) % len(self.hosts) for step in range((len(self.hosts) + 1) // 2)}
        return {(one, other) for one in nodes for other in nodes if (one in side) != (other in side)}

    def _remove_cut(self, cut: set[tuple[int, int]]) -> None:
        if cut in self._cuts:
            self._cuts.remove(cut)

    def _snapshot(self, node_id: int) -> None:
        node = self.hosts[node_id].node
        if node is None:
            return
        latest = node.log.snapshots.latest
        offsets = [
            offset for offset in self.invariants.digests if node.log.start_offset < offset <= node.high_watermark
        ]
        if latest is not None:
            offsets = [offset for offset in offsets if offset > latest.offset]
        if offsets:
            end_offset = self.random.choice(offsets)
            state = KeyValue(None, str(self.invariants.digests[end_offset]).encode())
            epoch = node.log.epoch_for_offset(end_offset - 1)
            data = encode_snapshot(epoch, [[state]], last_contained_log_timestamp_ms=0, now_ms=self._now().wall_ms)
            self._do(node_id, lambda node: self._keep_snapshot(node, end_offset, data), is_snapshot=True)

    def _keep_snapshot(self, node: KafkaRaftClient, end_offset: int, data: bytes) -> None:
        snapshot_id = node.create_snapshot(end_offset, data)
        if self.random.random() < 0.7:
            node.log.delete_before_snapshot(snapshot_id, self._now().wall_ms)

    def _heal(self) -> None:
        self._cuts.clear()
        self._is_healed = True
        for node_id, host in enumerate(self.hosts):
            if host.is_stopping:
                self._restart(host, node_id)
            self._start(node_id)


def simulate(scenario: Scenario) -> Simulation:
    """Run a scenario. Raises `InvariantViolation`, also for failed assertions of a node."""
    simulation = Simulation(scenario)
    try:
        simulation.run()
    except InvariantViolation:
        raise
    except AssertionError as error:
        raise InvariantViolation("node-assertion", repr(error)) from error
    return simulation
