"""One fuzzing session: generated requests to every listener, while clients write to a topic that no request changes.

Every node must keep running, respond to probes on separate connections within the bound, keep its memory within the
bound and log no traceback. At the end the quorum must create a topic. Then every acknowledged record of the clients is
read back, and the whole history is judged.
"""

import random
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from conformance.concurrent.actors import actor_of
from conformance.concurrent.replica_reads import record_replicas
from conformance.concurrent.run import HistoryRun, run_phase
from conformance.concurrent.trial_context import TrialContext
from conformance.fuzz.cluster import FuzzConnections, FuzzTarget, discover, make_topics, probed_nodes
from conformance.fuzz.finding import FuzzFinding, Observed, Symptom
from conformance.fuzz.generator import FuzzRequest, Generator
from conformance.fuzz.health import Health, Limits
from conformance.fuzz.probe import Probing, Responses
from conformance.fuzz.world import Port, World
from conformance.trial.phased_clients import Phase, PipelinedProducer, Trickle
from conformance.trial.trial import Client, Topic
from conformance.trial.workloads import Tail
from fixtures.clients.steps import Flush
from fixtures.targets.target import TargetError
from linearizability.check import judge_history
from linearizability.history.reader import open_history
from linearizability.history.validate import validate
from linearizability.judgement import Judgement

REMEMBERED: Final = 2_000
"""Number of the latest requests that are kept, as the possible cause of a symptom."""
SUSPECTED_S: Final = 3.0
"""Time before a symptom in which its cause was probably sent."""
SUSPECTED_MIN: Final = 20
SETTLE_S: Final = 2.0
"""Time in which the nodes process the last requests. A node that runs afterwards will not end because of them."""
CONTROLLER_TIMEOUT_S: Final = 60.0
_OBSERVE_PERIOD_S: Final = 0.1
_PROGRESS_PERIOD_S: Final = 1.0
_WITNESS: Final = PipelinedProducer(in_flight_max=1, delivery_timeout_ms=300_000)
"""One request in flight, and no record that expires. Otherwise librdkafka may write duplicates (docs/findings.md)."""
_WITNESSES: Final[tuple[Client, ...]] = (
    replace(_WITNESS, partition=0, faulty=(Trickle(pause_ms=20, records_max=10**9), Flush())),
    replace(_WITNESS, partition=1, linger_ms=5, faulty=(Trickle(pause_ms=50, records_max=10**9), Flush())),
    Tail(),
)


@dataclass(slots=True)
class FuzzProgress:
    """The counts and findings of a session up to now."""

    sent: int = 0
    apis: Counter[int] = field(default_factory=Counter)
    findings: list[FuzzFinding] = field(default_factory=list)
    responses: Responses = field(default_factory=Responses)
    memory_bytes: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class SessionReport:
    """The result of a session.

    :ivar judgement: judgement of the history of the clients.
    """

    progress: FuzzProgress
    judgement: Judgement


@dataclass(frozen=True, slots=True)
class SessionPlan:
    """The parameters of a session.

    :ivar findings_max: number of findings after which the session ends; None for no limit.
    """

    seed: int
    seconds: float
    limits: Limits
    findings_max: int | None = 1


def run_session(
    target: FuzzTarget, run_dir: Path, plan: SessionPlan, report: Callable[[FuzzProgress], None] = lambda _: None
) -> SessionReport:
    """Fuzz a started cluster. The history of its clients is in `run_dir`.

    Raises `ScriptNotRunError` if the topics cannot be created.
    """
    with HistoryRun(target, run_dir, plan.seed) as run:
        context = make_topics(run)
        fuzzing = Fuzzing(target, context, plan, report)
        _run_beside_clients(fuzzing, context)
        fuzzing.await_controller()
        with run.raw_client() as admin:
            topic = Topic(partitions=len(context.replicas), replication_factor=min(3, len(target.nodes)))
            run.drain(context, topic, admin)
        record_replicas(context)
    history = open_history(run_dir)
    validate(history)
    return SessionReport(fuzzing.progress, judge_history(history))


def _run_beside_clients(fuzzing: "Fuzzing", context: TrialContext) -> None:
    with ExitStack() as closings:
        actors = [closings.enter_context(closing(actor_of(client, context))) for client in _WITNESSES]
        try:
            run_phase(Phase.FAULTY, actors, [fuzzing], context.target.stage)
        finally:
            fuzzing.cancel()


class Fuzzing:
    """The sender of a session's requests, run as the fault injection of a phase (`run_phase`)."""

    def __init__(
        self, target: FuzzTarget, context: TrialContext, plan: SessionPlan, report: Callable[[FuzzProgress], None]
    ) -> None:
        self._target = target
        self._context = context
        self._plan = plan
        self._report = report
        self._world: World = discover(target)
        self._generator = Generator(plan.seed, self._world)
        self._health = Health(target, plan.limits)
        self._newest: deque[tuple[float, FuzzRequest]] = deque(maxlen=REMEMBERED)
        self._seen: set[tuple[Symptom, str]] = set()
        self._cancelled = target.stage.event()
        self.progress = FuzzProgress()

    def await_in_force(self) -> None:
        """Return at once: there is no state to wait for before the clients start."""

    def cancel(self) -> None:
        """Stop sending requests."""
        self._cancelled.set()
        self._context.nemesis_done.set()

    def __call__(self) -> None:
        """Send requests until the time is over, or a finding ends the session."""
        connections = FuzzConnections(self._target, random.Random(self._plan.seed))
        try:
            with Probing(probed_nodes(self._target), self._plan.limits.response_s) as probing:
                self.progress.responses = probing.responses
                self._send_all(connections, probing)
        finally:
            connections.close()
            self.cancel()
        self._restart_until_settled()

    def _send_all(self, connections: FuzzConnections, probing: Probing) -> None:
        began_s = observed_s = reported_s = time.monotonic()
        for request in self._generator.requests():
            now_s = time.monotonic()
            self.progress.seconds = now_s - began_s
            if now_s - observed_s > _OBSERVE_PERIOD_S:
                observed_s = now_s
                self._record(self._health.observe(probing.late()))
                if self._is_over():
                    break
            if now_s - reported_s > _PROGRESS_PERIOD_S:
                reported_s = now_s
                self._report(self.progress)
            self._newest.append((now_s, request))
            connections.send(request)
            self.progress.sent += 1
            self.progress.apis[request.api_key] += 1

    def _is_over(self) -> bool:
        findings_max = self._plan.findings_max
        enough = findings_max is not None and len(self.progress.findings) >= findings_max
        return enough or self._cancelled.is_set() or self.progress.seconds > self._plan.seconds

    def _record(self, observed: Iterable[Observed]) -> None:
        self.progress.memory_bytes = self._health.largest_bytes
        for each in observed:
            if each.signature not in self._seen:
                self._seen.add(each.signature)
                self._add(each, self._suspects(each))
            if each.symptom is Symptom.NODE_ENDED:
                self._restart(each.node)

    def _restart(self, node: int) -> None:
        """Restart a node that ended; end the session if it does not start."""
        try:
            self._target.processes.restart(node)
        except TargetError:
            self.cancel()

    def _suspects(self, observed: Observed) -> tuple[FuzzRequest, ...]:
        """Return the requests since `SUSPECTED_S` before the symptom, but at least the `SUSPECTED_MIN` newest ones."""
        since_s = observed.began_s - SUSPECTED_S
        recent = sum(sent_s > since_s for sent_s, _ in self._newest)
        newest = [request for _, request in self._newest]
        return tuple(newest[-max(recent, SUSPECTED_MIN) :])

    def _add(self, observed: Observed, requests: tuple[FuzzRequest, ...]) -> None:
        self.progress.findings.append(
            FuzzFinding(self._target.name, self._plan.seed, observed.symptom, observed.text, requests, self._world)
        )
        self._report(self.progress)

    def _restart_until_settled(self) -> None:
        """Restart nodes that the last requests end, so that the clients can flush."""
        settled_s = time.monotonic() + SETTLE_S
        while time.monotonic() < settled_s:
            time.sleep(_OBSERVE_PERIOD_S)
            observed = list(self._health.observe())
            self._record(observed)
            if any(each.symptom is Symptom.NODE_ENDED for each in observed):
                settled_s = time.monotonic() + SETTLE_S

    def await_controller(self) -> None:
        """Add a finding if no topic is created before the timeout, with the newest requests to the controllers."""
        if not has_controller(self._context, CONTROLLER_TIMEOUT_S):
            text = f"no topic was created within {CONTROLLER_TIMEOUT_S:.0f} s after the last request"
            observed = Observed(Symptom.NO_CONTROLLER, 0, text, 0.0)
            self._add(observed, tuple(request for _, request in self._newest if request.port is Port.CONTROLLER))


def has_controller(context: TrialContext, timeout_s: float) -> bool:
    """Whether the quorum has a leader that creates a topic before the timeout."""
    target = context.target
    deadline_s = time.monotonic() + timeout_s
    while True:
        for node in target.nodes:
            with context.raw_client(node.id, timeout_s=5.0) as admin:
                created = admin.create_topic(context.new_topic(), replication_factor=1, timeout_ms=3_000)
                if created.error is None:
                    return True
        if time.monotonic() > deadline_s:
            return False
        time.sleep(0.5)
