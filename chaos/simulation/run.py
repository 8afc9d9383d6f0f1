"""Executor of a trial in virtual time: `run(trial)` runs the trial and returns its verdict.

1. *ready*: the nodes start, the topics are created, and all replicas get in sync.
2. *steady*: the clients begin.
3. *faulty*: the faults of the schedule are injected and healed. The phase ends when the last fault is healed and
   every client has finished.
4. *healed*: the cluster must converge within `CONVERGE_MS`, accept a write to every partition, and converge again
   (liveness).
5. *checked*: two of the post-run checks send requests, most of them invalid (`post_run_checks`).
6. *drained*: a new consumer reads every partition to its end, the groups' offsets are fetched, and disks are compared.
7. *idle*: no periodic work of brokers may be overdue (`periodic_work`), and every node must be idle.
8. *restarted*: all nodes are shut down at once. They must end within `STOP_MS`, start again, and converge.

Invariants are checked after each event. The first violation of an invariant or of a phase ends the run. If there is
none, the history is judged like that of any other target. Errors of a node's disk or metadata only end the node. Any
other exception in the broker's core is the violation `exception`.
"""

import traceback
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace

from chaos.campaign.violation import Violation
from chaos.simulation.fault_context import fault_context
from chaos.simulation.history import HistoryInMemory
from chaos.simulation.inject import Injector
from chaos.simulation.judge import find_difference_of_replicas, judge
from chaos.simulation.post_run_checks import checks_of_seed, cluster_state, perform
from chaos.simulation.recording import ChangeRecorder, Record, RecordingTrace
from chaos.simulation.roles import Roles
from chaos.simulation.unclean_elections import UncleanElections
from conformance.trial.trial import CLIENTS_MS, Topic, Trial
from conformance.trial.trial import Client as ClientScript
from conformance.trial.unrolled import unrolled
from fixtures.clients.administration import AdminRequest
from fixtures.clients.core.client import ClientContext
from fixtures.clients.core.consumer import Consumer
from fixtures.clients.core.process import Behaviour, Process, Sleep
from fixtures.clients.core.producer import Producer
from fixtures.clients.core.response_pairs import InvalidResponseError
from fixtures.clients.core.single_request_client import SingleRequestClient
from fixtures.clients.raw import MalformedResponse
from fixtures.clients.responses import TopicPartition
from fixtures.clients.steps import Consumer as ConsumerSteps
from fixtures.clients.steps import CreateTopic, RequestClient, SendBatches
from fixtures.clients.steps import Producer as ProducerSteps
from fixtures.faults import Timed, Unregister
from fixtures.targets.trial_properties import trial_properties
from linearizability.history.reader import History
from linearizability.history.recorder import Recorder
from reference_broker.core.broker_lifecycle_manager import UNKNOWN_EPOCH
from reference_broker.core.configuration.keys import BROKER_CONFIG_KEYS
from reference_broker.core.topic_names import CONSUMER_OFFSETS_TOPIC
from reference_broker.simulation.clock import WALL_START_MS
from reference_broker.simulation.cluster import SimulatedCluster
from reference_broker.simulation.coverage import Coverage
from reference_broker.simulation.invariants import Invariants, InvariantViolation, converged
from reference_broker.simulation.invariants.periodic_work import PERIOD_MAX_MS, pending_work
from reference_broker.simulation.trace import Trace
from reference_broker.simulation.wire_check import WireCheck, WireError

IN_VIRTUAL_TIME = {
    "controller.quorum.retry.backoff.ms": "100",
    "metadata.max.idle.interval.ms": "5000",
    "initial.broker.registration.timeout.ms": "60000",
    "producer.id.expiration.check.interval.ms": "1000",
}
"""Properties that differ from those of trials on real processes, for these reasons:

- Retry backoff: with Kafka's default of 20 ms, a quarter of the time of a seed would go to nodes that know no leader.
- Idle interval: with Kafka's default of 500 ms, NoOpRecords of the metadata log would cause a third of all messages.
- First registration: Kafka's default of a minute is enough, because no simulated machine is slow.
- Producer ids: with Kafka's default of ten minutes, no run would remove an expired producer.
"""
WIRE_CHECKED_EVERY = 50
"""Of this number of messages, one is also decoded by kio (`WireCheck`), which is slow."""
READY_MS = 60_000
CONVERGE_MS = 90_000
"""More than twice `replica.socket.timeout.ms`, the time for which a follower waits for a lost response."""
POST_RUN_CHECK_MS = 90_000
"""Timeout of a post-run check. One of the checks sleeps for more than a minute."""
DRAIN_MS = 60_000
REST_MS = 3 * PERIOD_MAX_MS
STOP_MS = 15_000
"""Time for all nodes to end. The last nodes wait a few seconds for a quorum and a successor that no longer exist."""
_PROMISED = ("replication.factor", "min.insync.replicas")
"""Properties of a topic on which the checker's rules depend."""
_LOOK_MS = 50
_REST_LOOK_MS = 500
_FIRST_CLIENT = 1
_FIRST_HELPER = 1_000
"""Processes with higher numbers are helpers of the run, not clients of the trial."""


@dataclass(frozen=True, slots=True)
class SimulatedRun:
    """Outcome of a run.

    :ivar digest: hash of the trace; equal runs have equal digests.
    :ivar events: number of events of the simulation.
    :ivar virtual_ms: duration of the run in virtual time.
    :ivar operations: number of operations in the history.
    :ivar coverage: how often each state and transition occurred.
    :ivar violation: None if there is none.
    :ivar without_effect: faults that had no effect.
    :ivar unknown: checks of the history that could not be decided. Empty if a violation has ended the run, because its
        history is not judged.
    """

    digest: str
    events: int
    virtual_ms: int
    operations: int
    coverage: Mapping[str, int]
    violation: Violation | None
    history: History
    without_effect: tuple[Timed, ...] = ()
    unknown: tuple[str, ...] = ()


class _Failed(Exception):  # noqa: N818 - a verdict, not an error of the program
    """Signal that a phase has failed. `name` and the message become those of the violation."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(text)
        self.name = name


def run(trial: Trial, *, record: Record | None = None) -> SimulatedRun:
    """Run a trial and judge it. The same trial gives the same outcome.

    :param record: if given, receives all messages, faults and changes, for a diagram.
    """
    live = _Run(trial, Trace() if record is None else RecordingTrace(record))
    if record is not None:
        ChangeRecorder(record, lambda: live.cluster.scheduler.now_ms).subscribe(live.invariants.watch)
    violation = live.violation()
    unknown: tuple[str, ...] = ()
    history = live.take_history()
    if violation is None:
        violation, unknown = judge(history)
    cluster = live.cluster
    return SimulatedRun(
        digest=cluster.trace.digest,
        events=cluster.scheduler.events,
        virtual_ms=cluster.scheduler.now_ms,
        operations=live.writer.operations,
        coverage=dict(live.coverage.counts),
        violation=violation,
        history=history,
        without_effect=tuple(live.without_effect),
        unknown=unknown,
    )


class _Run:
    """One run in progress."""

    def __init__(self, trial: Trial, trace: Trace) -> None:
        trial = self.trial = unrolled(trial)
        given = trial.cluster
        defaults = {name: value for name, value in trial_properties(given.nodes).items() if name in BROKER_CONFIG_KEYS}
        creates = {"auto.create.topics.enable": str(trial.seed % 2 == 0).lower()}
        properties = defaults | IN_VIRTUAL_TIME | creates | dict(given.properties)
        self.cluster = SimulatedCluster(
            given.nodes, seed=trial.seed, roles=dict(given.roles), properties=properties, trace=trace
        )
        WireCheck(self.cluster.network, every=WIRE_CHECKED_EVERY)
        self.writer = HistoryInMemory(f"seed-{trial.seed}")
        # Topics that clients create have their own replication factor.
        self.writer.cluster = {
            name: value for name, value in properties.items() if name != "default.replication.factor"
        }
        for step in trial.created_topics:
            self.writer.set_topic(step.topic, dict(step.properties))
        self.recorder = Recorder(self.writer, self.cluster.scheduler.now_ns)
        self.roles = Roles(self.cluster, trial.topics[0].name)
        self.invariants = Invariants(self.cluster)
        UncleanElections(self.invariants, self.recorder)
        self.coverage = Coverage(self.cluster, self.invariants.watch)
        self.context = ClientContext(
            self.recorder,
            self.roles.brokers,
            self.roles.node,
            self._acknowledged,
            self.invariants.committed_group_offset,
            wall_start_ms=WALL_START_MS,
            keeps_timestamps=not trial.may_replace_timestamps,
            deleted_topics=trial.deleted_topics,
        )
        self.without_effect: list[Timed] = []
        self._helpers = 0

    def violation(self) -> Violation | None:
        """Perform all phases. Return the first violation, or None. The history is not judged here."""
        try:
            self._get_ready()
            self._break()
            self._heal()
            self._check_rejections()
            self._drain()
            self._rest()
            self.invariants.check_idle()
            self._restart()
            self.invariants.check_end()
        except _Failed as failed:
            return self._violation(failed.name, str(failed))
        except InvariantViolation as violation:
            return self._violation(violation.name, violation.detail)
        except WireError as error:
            return self._violation("malformed-message", str(error))
        except MalformedResponse as error:
            return self._violation("malformed-response", str(error))
        except InvalidResponseError as error:
            return self._violation("wrong-response", str(error))
        except Exception as error:  # noqa: BLE001 - any error of the core is a violation
            return self._violation("exception", _described(error))
        return None

    def take_history(self) -> History:
        """Return the history of all clients."""
        return self.writer.take(complete=True)

    def _violation(self, name: str, text: str) -> Violation:
        return Violation(name, text, self.cluster.scheduler.now_ms)

    def _acknowledged(self, place: TopicPartition, offset: int, crc: int) -> None:
        """Note an acknowledged batch. Its checksum is not compared if the broker may replace timestamps."""
        self.invariants.acknowledged(*place, offset, crc=crc if self.context.keeps_timestamps else None)

    # Phases

    def _get_ready(self) -> None:
        if not self.cluster.await_ready(READY_MS):
            raise _Failed("not-converged", "the cluster did not become ready")
        for topic in self.trial.topics:
            self.writer.set_topic(topic.name, _lasting_properties(topic, self.trial.created_topics))
            step = CreateTopic(topic.name, topic.partitions, topic.replication_factor, topic.properties)
            helper = self._raw()
            self._do(_until_done(helper, step), READY_MS, f"topic {topic.name} was not created")
        self._await_convergence("before any fault")
        image = self.roles.image()
        assert image is not None
        topic_ids = {topic.name: topic.topic_id for topic in image.topics.values()}
        self.context = replace(self.context, topic_ids=topic_ids)
        self.roles.note_initial()

    def _break(self) -> None:
        trial = self.trial
        processes = [self._start(number, client) for number, client in enumerate(trial.clients, start=_FIRST_CLIENT)]
        context = fault_context(
            self.cluster,
            self.recorder,
            self.roles,
            trial.topics[0].name,
            clients=[process.number for process in processes],
            administer=self._administer,
            lost=self.invariants.allow_loss,
            on_unclean_election=self.invariants.allow_unclean_election,
        )
        injector = Injector(self.cluster, context)
        self.without_effect = injector.without_effect
        self.cluster.scheduler.run(trial.steady_ms)
        injector.schedule(trial.schedule)
        end_ms = self.cluster.scheduler.now_ms + CLIENTS_MS + trial.end_ms
        is_over = self.cluster.scheduler.run_until(
            lambda: injector.is_over and all(process.is_done for process in processes), end_ms=end_ms
        )
        if not is_over:
            busy = [process.number for process in processes if not process.is_done]
            raise _Failed("not-converged", f"clients {busy} have not finished {CLIENTS_MS} ms after the last fault")
        self.cluster.network.heal_all()
        injector.start_all()
        for process in processes:
            process.close()

    def _heal(self) -> None:
        self._await_convergence("after the faults")
        places = [place for place in self._places() if place[0] != CONSUMER_OFFSETS_TOPIC]
        probe = ProducerSteps(
            steps=tuple(SendBatches(topic=topic, partition=partition, keys=1) for topic, partition in places),
            idempotent=False,
            delivery_timeout_ms=CONVERGE_MS,
        )
        process = self._process()
        producer = Producer(process, self.context, probe)
        producer.run()
        self._await(process, CONVERGE_MS)
        if producer.rejected:
            raise _Failed("not-converged", f"a write to {producer.rejected[0]} is not accepted after the faults")
        self._await_convergence("after a write to each partition")

    def _check_rejections(self) -> None:
        for check in checks_of_seed(self.trial.seed):
            steps = perform(check, lambda: cluster_state(self.cluster, self.roles, self.trial))
            self._do(steps, POST_RUN_CHECK_MS, f"no response in the post-run check of {check.name}")
            if check.disturbs_cluster:
                self._await_convergence(f"after the post-run check of {check.name}")

    def _drain(self) -> None:
        places = [place for place in self._places() if place[0] != CONSUMER_OFFSETS_TOPIC]
        if places:
            consumer = Consumer(self._process(), self.context, ConsumerSteps(partitions=tuple(places)))
            self._do(consumer.drain(), DRAIN_MS, "a new consumer did not reach the end of every partition")
        for client in self.trial.clients:
            if isinstance(client, ConsumerSteps) and client.group:
                reader = Consumer(self._process(), self.context, ConsumerSteps(group=client.group))
                for _ in range(2):
                    steps = _until_fetched(reader, client.partitions)
                    self._do(steps, DRAIN_MS, f"no broker returns the offsets of group {client.group}")
        difference = find_difference_of_replicas(self.cluster, self.invariants.may_differ)
        if difference is not None:
            raise _Failed("not-converged", difference)

    def _rest(self) -> None:
        scheduler = self.cluster.scheduler
        end_ms = scheduler.now_ms + REST_MS
        while (left := pending_work(self.cluster)) is not None:
            if scheduler.now_ms >= end_ms:
                raise _Failed("periodic-work-overdue", f"{REST_MS} ms of rest: {left}")
            scheduler.run(_REST_LOOK_MS)

    def _restart(self) -> None:
        """Shut all nodes down at once, and start them again. The last nodes to end find no successor."""
        cluster, scheduler = self.cluster, self.cluster.scheduler
        with ExitStack() as rows:
            for node_id, machine in cluster.machines.items():
                rows.enter_context(self.recorder.fault("shutdown", str(node_id)))
                machine.shut_down()
            if not scheduler.run_until(lambda: not cluster.nodes, end_ms=scheduler.now_ms + STOP_MS):
                detail = f"{STOP_MS} ms after all nodes were shut down, {sorted(cluster.nodes)} still run"
                raise _Failed("not-stopped", detail)
            for node_id in cluster.machines:
                cluster.start(node_id)
        self._await_convergence("after all nodes were shut down and started again")

    # Parts of phases

    def _await_convergence(self, when: str) -> None:
        """Advance time until the cluster has converged, and record the leaders in the history."""
        scheduler = self.cluster.scheduler
        end_ms = scheduler.now_ms + CONVERGE_MS
        reason = converged(self.cluster)
        while reason is not None:
            if scheduler.now_ms >= end_ms:
                raise _Failed("not-converged", f"{CONVERGE_MS} ms {when}: {reason}")
            self._restart_unregistered()
            scheduler.run(_LOOK_MS)
            reason = converged(self.cluster)
        topics = list(dict.fromkeys(topic for topic, _ in self._places()))
        if topics:
            self._do(self._raw().refresh_until_known(topics), READY_MS, "no broker returns metadata")

    def _restart_unregistered(self) -> None:
        """Restart brokers that a delayed UnregisterBroker has removed while they were running.

        As in Kafka, the heartbeats of such a broker are rejected until an operator restarts it.
        """
        image = self.roles.image()
        if image is None or not any(isinstance(timed.fault, Unregister) for timed in self.trial.schedule):
            return
        for node_id, machine in self.cluster.machines.items():
            broker = None if machine.node is None else machine.node.broker
            if broker is not None and broker.lifecycle.broker_epoch != UNKNOWN_EPOCH and node_id not in image.brokers:
                with self.recorder.fault("kill", str(node_id), "started again, as it was unregistered"):
                    machine.kill()
                    self.cluster.start(node_id)

    def _places(self) -> list[TopicPartition]:
        image = self.roles.image()
        assert image is not None
        return [(topic.name, index) for topic in image.topics.values() for index in sorted(topic.partitions)]

    def _start(self, number: int, client: ClientScript) -> Process:
        process = Process(number, self.cluster)
        match client:
            case ProducerSteps():
                Producer(process, self.context, client).run()
            case ConsumerSteps():
                Consumer(process, self.context, client).run()
            case RequestClient():
                SingleRequestClient(process, self.context, client).run()
        return process

    def _process(self) -> Process:
        self._helpers += 1
        return Process(_FIRST_HELPER + self._helpers, self.cluster)

    def _raw(self) -> SingleRequestClient:
        return SingleRequestClient(self._process(), self.context, RequestClient())

    def _do(self, steps: Behaviour, within_ms: int, otherwise: str) -> None:
        """Let a helper perform steps. If they take longer than `within_ms`, fail with the text `otherwise`."""
        process = self._process()
        process.start(steps)
        if not self._await(process, within_ms):
            raise _Failed("not-converged", otherwise)

    def _await(self, process: Process, within_ms: int) -> bool:
        end_ms = self.cluster.scheduler.now_ms + within_ms
        done = self.cluster.scheduler.run_until(lambda: process.is_done, end_ms=end_ms)
        process.close()
        return done

    def _administer(self, request: AdminRequest) -> None:
        """Send the administrative request of a fault."""
        helper = self._raw()
        helper.process.start(helper.administer_any(request))


def _lasting_properties(topic: Topic, created: Iterable[CreateTopic]) -> dict[str, str]:
    """Return a topic's properties, without those of `_PROMISED` that change when a client creates the topic again."""
    first = _created_properties(topic)
    again = [_created_properties(step) for step in created if step.topic == topic.name]
    changed = {name for name in _PROMISED for other in again if other.get(name) != first.get(name)}
    return {name: value for name, value in first.items() if name not in changed}


def _created_properties(topic: Topic | CreateTopic) -> dict[str, str]:
    return {"replication.factor": str(topic.replication_factor), **dict(topic.properties)}


def _until_done(client: SingleRequestClient, step: CreateTopic) -> Behaviour:
    """Repeat a CreateTopics request until it succeeds or the topic exists."""
    while (yield from client.administer_step(step)) not in {None, "TOPIC_ALREADY_EXISTS"}:
        yield Sleep(100)


def _until_fetched(reader: Consumer, places: Iterable[TopicPartition]) -> Behaviour:
    """Repeat a fetch of group offsets until it succeeds."""
    while (yield from reader.fetch_offsets(list(places))) is not None:
        yield Sleep(100)


def _described(error: Exception) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    where = " < ".join(f"{frame.name} ({frame.filename.rpartition('/')[2]}:{frame.lineno})" for frame in frames[:-5:-1])
    return f"{type(error).__name__}: {error} in {where}"
