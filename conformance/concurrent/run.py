"""Run of concurrent scripts on a target, recorded in one history.

A `HistoryRun` is one run directory. Each script gets its own topic, new processes and new values. After the phases the
topic is drained: once all faults are healed, a new consumer reads every partition from its start to its end offset.
The topics are deleted in the end if the cluster is an existing one, which kafkatrial does not stop.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from conformance.concurrent.actors import Actor, actor_of
from conformance.concurrent.nemesis import Moves
from conformance.concurrent.replica_reads import record_replicas
from conformance.concurrent.trial_context import Replicas, ScriptNotRunError, TrialContext
from conformance.sequential.connections import advertised_controller
from conformance.trial.phased_clients import Phase
from conformance.trial.trial import Placement, Topic, Trial
from fixtures.clients.broker_defaults import settings_to_pin
from fixtures.clients.outcomes import NOT_CONTROLLER, UNSUPPORTED_VERSION
from fixtures.clients.recorded import RecordedClient
from fixtures.clients.responses import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from fixtures.clients.stage import Event, Stage, Task
from fixtures.clients.topic_ids import TopicIds
from fixtures.clients.transport import Transport
from fixtures.faults.places import InitialRoles
from fixtures.targets.target import ExistingCluster, Target
from linearizability.check import LARGE_ROWS
from linearizability.history.recorder import Recorder
from linearizability.history.run import RunInfo
from linearizability.history.writer import HistoryWriter
from linearizability.operation import Outcome
from linearizability.shards.writing import LargeLayout

READY_TIMEOUT_S = 30.0
"""Timeout until a new topic has all its leaders and full ISRs, and until the ISRs are full again after healing."""
DRAIN_TIMEOUT_S = 30.0
_RETRY_BACKOFF_S = 0.1


class Injection(Protocol):
    """Faults of one phase. The phase does not end before `__call__` returns, when all of these faults are healed."""

    def await_in_force(self) -> None:
        """Return once the faults at the start of the phase are in force."""
        ...

    def __call__(self) -> None:
        """Inject and heal the faults."""
        ...


class HistoryRun:
    """One run directory, open for scripts. A context manager; its exit without an error completes `run.json`."""

    def __init__(self, target: Target, run_dir: Path, seed: int) -> None:
        self.target = target
        self._seed = seed
        self._run_dir = run_dir
        self._topic_ids: TopicIds = {}
        self._processes = itertools.count(1)
        self._values = itertools.count(1)
        self._numbers = itertools.count(1)
        self._contexts: list[TrialContext] = []
        self._topics: list[str] = []
        """Topics to delete in the end, noted before their creation: a creation may fail and still take effect."""
        self._exits = ExitStack()

    def __enter__(self) -> Self:
        info = RunInfo(
            run_id=self._run_dir.name,
            seed=self._seed,
            target=self.target.name,
            versions=self.target.versions,
            cluster=self.target.cluster_properties,
        )
        writer = self._exits.enter_context(HistoryWriter(self._run_dir, info, LargeLayout(self._run_dir, LARGE_ROWS)))
        self._recorder = Recorder(writer, clock=self.target.transport.monotonic_ns)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._exits.__exit__(kind, error, trace)
        finally:
            if isinstance(self.target, ExistingCluster):
                created = [name for context in self._contexts for name in context.other_topics]
                self.target.delete_topics(list(dict.fromkeys([*self._topics, *created])))

    def run(self, trial: Trial) -> str:
        """Run one trial of a requirement on a new topic, and return the topic's name. Raises `ScriptNotRunError`."""
        topic = f"script-{next(self._numbers)}-{self.target.transport.monotonic_ns()}"
        with self.raw_client() as admin:
            context = self.make_topic(topic, trial.topic, admin)
            with ExitStack() as closings:
                actors = [closings.enter_context(closing(actor_of(client, context))) for client in trial.clients]
                for phase in Phase:
                    injections = [Moves(context, trial.moves)] if phase is Phase.FAULTY else []
                    run_phase(phase, actors, injections, self.target.stage)
            self.drain(context, trial.topic, admin)
            if trial.moves:
                record_replicas(context)
                _request_other_topics(context)
        return topic

    # --- before

    def raw_client(self, node: int | None = None) -> RecordedClient:
        """Return a client with a new process number, whose requests go to a node (default: the lowest id)."""
        return RecordedClient(self.target, self._recorder, next(self._processes), topic_ids=self._topic_ids, node=node)

    def note_topic(self, name: str) -> None:
        """Record the name of a topic that may be created, so that an existing cluster deletes it in the end."""
        self._topics.append(name)

    def make_topic(self, topic: str, settings: Topic, admin: RecordedClient) -> TrialContext:
        """Create a topic, and wait until its ISRs are full and its leaders serve. Raises `ScriptNotRunError`."""
        self.note_topic(topic)
        properties = {**settings_to_pin(admin.connection(admin.node), admin.node), **dict(settings.properties)}
        create = partial(
            RecordedClient.create_topic,
            topic=topic,
            partitions=settings.partitions,
            replication_factor=settings.replication_factor,
            properties=properties,
            assignments=self._assignments(settings, admin),
        )
        created = create(admin)
        if created.error == NOT_CONTROLLER:
            with self.raw_client(advertised_controller(admin.connection(admin.node))) as controller:
                created = create(controller)
        if created.outcome is not Outcome.OK:
            raise ScriptNotRunError(f"CreateTopics failed with {created.error}")
        self._recorder.topic(topic, properties)
        replicas = await_full_isr(admin, topic, settings, self.target.transport)
        if replicas is None:
            raise ScriptNotRunError(f"after {READY_TIMEOUT_S:g} s not every partition of a new topic has a full ISR")
        context = TrialContext(
            target=self.target,
            recorder=self._recorder,
            topic=topic,
            topic_ids=self._topic_ids,
            replicas=replicas,
            initial_roles=InitialRoles(replicas[0].nodes, tuple(node.id for node in self.target.nodes)),
            processes=self._processes,
            values=self._values,
            node_failed=self.target.stage.event(),
            nemesis_done=self.target.stage.event(),
        )
        self._contexts.append(context)
        deadline = self.target.transport.monotonic() + READY_TIMEOUT_S
        for partition, assigned in replicas.items():  # a broker may describe a partition before its leader serves it
            with context.raw_client(assigned.leader) as leader:
                _await_offset(leader, context, partition, LATEST_TIMESTAMP, deadline)
        return context

    def _assignments(self, settings: Topic, admin: RecordedClient) -> Sequence[Sequence[int]]:
        """Return the replicas of each partition; empty if the cluster places them."""
        nodes = [node.id for node in self.target.nodes]
        match settings.placement:
            case Placement.BY_CLUSTER:
                return ()
            case Placement.ONE_LEADER:
                return [nodes[: settings.replication_factor]] * settings.partitions
            case Placement.CONTROLLER_LEADS | Placement.CONTROLLER_FOLLOWS:
                first = nodes.index(_controller(admin)) + (settings.placement is Placement.CONTROLLER_FOLLOWS)
                orders = (_rotated(nodes, first + partition) for partition in range(settings.partitions))
                return [order[: settings.replication_factor] for order in orders]

    # --- after

    def drain(self, context: TrialContext, settings: Topic, admin: RecordedClient) -> None:
        """Read every record back. Records that are not read before the timeout are `unseen` in the history.

        The end offset that a leader returns may be too low, which is a separate anomaly (stale-end-offset). So polling
        continues until all acknowledged records are read, or a poll returns no records.
        """
        topic, transport = context.topic, self.target.transport
        replicas = await_full_isr(admin, topic, settings, self.target.transport) or context.replicas
        deadline = transport.monotonic() + DRAIN_TIMEOUT_S
        starts: dict[tuple[str, int], int] = {}
        ends: dict[int, int] = {}
        for partition, assigned in replicas.items():
            with context.raw_client(assigned.leader) as leader:
                starts[topic, partition] = _await_offset(leader, context, partition, EARLIEST_TIMESTAMP, deadline)
                ends[partition] = _await_offset(leader, context, partition, LATEST_TIMESTAMP, deadline)
        consumer = self.target.drivers.consumer(self._recorder, next(self._processes), topic_ids=self._topic_ids)
        with closing(consumer):
            consumer.assign(starts)
            while transport.monotonic() < deadline and any(
                consumer.position(topic, partition) < end for partition, end in ends.items()
            ):
                consumer.poll()
            while transport.monotonic() < deadline and any(
                consumer.position(topic, partition) < self._recorder.acknowledged_end(topic, partition)
                for partition in replicas
            ):
                if not consumer.poll():
                    break
        for partition, assigned in replicas.items():
            with context.raw_client(assigned.leader) as leader:
                leader.list_offsets(topic, partition)


def run_phase(phase: Phase, actors: Sequence[Actor], injections: Sequence[Injection], stage: Stage) -> None:
    """Run all actors concurrently until every writer has done its steps and every injection is healed.

    Faults at the start of the phase are in force before the first step of a writer. If an actor or an injection fails,
    the actors stop after their current step, and the injections run to their end. Then the first error is raised.
    """
    over = stage.event()
    errors: list[Exception] = []

    def start(action: Callable[[], None]) -> Task:
        return stage.start(partial(_run_until_error, action, errors, over))

    readers = [start(partial(actor.act, phase, over)) for actor in actors if not actor.is_writer]
    awaited: list[Task] = []
    try:
        awaited += (start(injection) for injection in injections)
        for injection in injections:
            injection.await_in_force()
        awaited += (start(partial(actor.act, phase, over)) for actor in actors if actor.is_writer)
        _join(awaited, errors)
    finally:
        over.set()
        _join(readers, errors)
    if errors:
        raise errors[0]


def _run_until_error(action: Callable[[], None], errors: list[Exception], over: Event) -> None:
    try:
        action()
    except Exception as error:  # noqa: BLE001 - `run_phase` raises it
        errors.append(error)
        over.set()


def _join(tasks: Sequence[Task], errors: list[Exception]) -> None:
    """Wait until all tasks are done, and collect the errors that the stage raises for them."""
    for task in tasks:
        try:
            task.result()
        except Exception as error:  # noqa: BLE001 - `run_phase` raises it
            errors.append(error)


def _rotated(nodes: Sequence[int], first: int) -> Sequence[int]:
    """Return the nodes in their order, starting at a position."""
    return [nodes[(first + shift) % len(nodes)] for shift in range(len(nodes))]


def _controller(admin: RecordedClient) -> int:
    """Return the active controller: the leader of the metadata quorum. Raises `ScriptNotRunError`."""
    result = admin.describe_quorum()
    if result.error == UNSUPPORTED_VERSION:  # before KRaft
        return advertised_controller(admin.connection(admin.node))
    if result.error is not None:
        raise ScriptNotRunError(f"DescribeQuorum failed with {result.error}")
    return int(result.response.topics[0].partitions[0].leader_id)


def _request_other_topics(context: TrialContext) -> None:
    """Send every node a Metadata request for the topics whose creation was requested while the script ran."""
    for node in context.target.nodes if context.other_topics else ():
        with context.raw_client(node.id) as client:
            client.metadata(context.other_topics)


def _await_offset(
    leader: RecordedClient, context: TrialContext, partition: int, timestamp: int, deadline: float
) -> int:
    """Return the offset that ListOffsets returns for a timestamp.

    Errors are retried, because the leader may be newly elected. After the deadline, 0 is returned.
    """
    transport = context.target.transport
    while (offset := leader.list_offsets(context.topic, partition, timestamp).offset) is None:
        if transport.monotonic() >= deadline:
            return 0
        transport.sleep(_RETRY_BACKOFF_S)
    return offset


def await_full_isr(
    admin: RecordedClient,
    topic: str,
    settings: Topic,
    transport: Transport,
    timeout_s: float = READY_TIMEOUT_S,
) -> Mapping[int, Replicas] | None:
    """Return the replicas by partition when each partition has a leader and a full ISR; None after the timeout."""
    deadline = transport.monotonic() + timeout_s
    while transport.monotonic() < deadline:
        replicas = dict(_full_isrs(admin, topic, settings))
        if len(replicas) == settings.partitions:
            return replicas
        transport.sleep(_RETRY_BACKOFF_S)
    return None


def _full_isrs(admin: RecordedClient, topic: str, settings: Topic) -> Iterator[tuple[int, Replicas]]:
    response = admin.metadata([topic]).response
    for topic_state in response.topics if response is not None else ():
        for partition in topic_state.partitions:
            leader, isr = int(partition.leader_id), partition.isr_nodes
            if leader >= 0 and len(isr) >= settings.replication_factor:
                nodes = tuple(int(node) for node in partition.replica_nodes)
                yield partition.partition_index, Replicas(leader, nodes)
