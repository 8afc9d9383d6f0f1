"""One round on a started target: clients run during the schedule of faults; then the cluster is checked.

The cluster has recovered once every partition has a leader and a full ISR, and accepts a record, within the time that
`linearizability.anomalies.healing` allows. Then new consumers read everything back up to the end offsets. The log
directory of every replica is read, too, and recorded as if a client had read the whole log. Finally the history is
judged. A cluster that does not recover has failed, and is not read back. Nodes that a late UnregisterBroker may have
removed are restarted when half of the time for recovery is over.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from chaos.live.clients import clients_of, write_end_records
from chaos.live.injector import BreakableTarget, Injected, Injector
from chaos.live.report import Report, RoundFacts, report_of
from chaos.live.stepping import SteppingClients
from chaos.live.watch import PERIOD_S, PartitionSeen, View, Watch
from conformance.concurrent.actors import Actor
from conformance.concurrent.replica_reads import record_replicas
from conformance.concurrent.run import HistoryRun, run_phase
from conformance.concurrent.trial_context import Replicas, ScriptNotRunError, TrialContext
from conformance.trial.phased_clients import Phase
from conformance.trial.trial import Topic, Trial
from fixtures.clients.recorded import RecordedClient
from fixtures.faults import Unregister
from fixtures.targets.replica_logs import Divergence, find_divergences
from fixtures.targets.target import Capability, ExistingCluster, Target
from linearizability.anomalies.healing import Schedule
from linearizability.anomalies.settings import Settings
from linearizability.history.reader import open_history
from linearizability.history.validate import validate

OnInjected = Callable[[Injected], None]
_END_RECORDS_MIN_S = 10.0
"""Minimum time to write one record to each partition after the recovery, even if less is left of the allowed time."""


class LiveTarget(Target, BreakableTarget):
    """A started cluster of processes."""


def run_round(target: LiveTarget, run_dir: Path, trial: Trial, on_injected: OnInjected = lambda _: None) -> Report:
    """Run the round. Its history is in `run_dir`, even if the round is interrupted.

    Raises:
        ScriptNotRunError: a topic was not created, or exists already.
        TargetError: a control failed, or a node did not restart.
    """
    clock = target.transport
    with HistoryRun(target, run_dir, trial.seed) as run, run.raw_client() as admin:
        _require_new_topics(target, trial, admin)
        settings = trial.topic
        made = run.make_topic(trial.topic.name, settings, admin)
        context = replace(made, keeps_timestamps=not trial.may_replace_timestamps)
        for topic in trial.topics[1:]:
            run.make_topic(topic.name, topic, admin)
        for step in trial.created_topics:
            context.recorder.topic(step.topic, dict(step.properties))
            run.note_topic(step.topic)
        began_s = clock.monotonic()
        with ExitStack() as watching:
            watch = Watch(context, _watched_topics(trial), trial.group)
            watch.start()
            watching.callback(watch.stop)
            injection = _RoundInjection(target, context, watch.view, trial, on_injected)
            stepping = SteppingClients(context, trial, watch.view.node, lambda: injection.is_over)
            _work(target, context, trial, injection, stepping)
            worked_s = clock.monotonic()
            context = replace(context, replicas=_replicas(watch.view, context))
            unwritten: tuple[int, ...] = ()
            if injection.recovery_s is not None:
                unwritten = write_end_records(context, max(_END_RECORDS_MIN_S, injection.left_s))
            if has_recovered := injection.recovery_s is not None and not unwritten:
                seen = watch.view.partitions_of(trial.topic.name)
                run.drain(context, _settled(settings, seen), admin)
                stepping.read_back()
        if has_recovered:
            record_replicas(context)
        facts = RoundFacts(
            injected=tuple(injection.injector.injected),
            deaths=tuple(sorted(injection.injector.nodes.deaths.items())),
            divergences=tuple(_divergences(target, trial)),
            recovery_s=injection.recovery_s,
            bound_s=injection.bound_s,
            work_s=worked_s - began_s,
            unwritten=unwritten,
            unhealed=unhealed(target),
            client_violations=tuple(stepping.violations),
            unfinished=tuple(stepping.unfinished),
        )
    history = open_history(run_dir)
    validate(history)
    report = report_of(history, trial, target.name, facts)
    return replace(report, overhead_s=clock.monotonic() - worked_s)


def unhealed(target: BreakableTarget) -> tuple[str, ...]:
    """Return the faults of every kind that are still in force on a target; empty if all are healed."""
    controls = (target.links, target.requests, target.disks, target.clocks, target.limits)
    return tuple(line for control in controls for line in control.residue)


class _RoundInjection:
    """`Injection` of a round: the schedule of faults, then the recovery of the cluster, then the healed phase."""

    def __init__(
        self, target: LiveTarget, context: TrialContext, view: View, trial: Trial, on_injected: OnInjected
    ) -> None:
        self._context = context
        self._nodes = [node.id for node in target.nodes]
        self._view = view
        self._trial = trial
        self._cancelled = target.stage.event()
        self._over = target.stage.event()
        self._begun = False
        self.injector = Injector(
            target,
            context,
            view,
            trial.schedule,
            trial.steady_ms,
            trial.seed,
            self._cancelled,
            on_injected,
            trial.flushed_topics,
            self._recover if trial.waits_for_recovery else None,
        )
        self.bound_s = Schedule(Settings({}, target.cluster_properties, ())).allowed_ns / 1e9
        self.recovery_s: float | None = None
        self._healed_s = 0.0

    @property
    def left_s(self) -> float:
        """Seconds left to recover after the heal; negative after the bound."""
        return self._healed_s + self.bound_s - self._context.target.transport.monotonic()

    @property
    def is_over(self) -> bool:
        """Whether the schedule, the recovery (or its bound) and the healed phase are over."""
        return self._over.is_set()

    def await_in_force(self) -> None:
        """Return at once, because no fault is in force at the start."""

    def cancel(self) -> None:
        """Heal all faults now, and return when they are healed."""
        self._cancelled.set()
        if self._begun:
            self._over.wait()

    def __call__(self) -> None:
        self._begun = True
        try:
            self._inject_and_recover()
        finally:
            self._over.set()

    def _inject_and_recover(self) -> None:
        self.injector()
        self._recover()
        self._cancelled.wait(self._trial.healed_ms / 1000)

    def _recover(self) -> None:
        """Wait until the cluster has recovered, or until the bound is over."""
        clock = self._context.target.transport
        self.recovery_s = None
        self._healed_s, healed_ns = clock.monotonic(), clock.monotonic_ns()
        may_be_unregistered = any(isinstance(timed.fault, Unregister) for timed in self._trial.schedule)
        while not self._cancelled.is_set() and self.left_s > 0:
            if may_be_unregistered and self.left_s < self.bound_s / 2:
                self.injector.nodes.restart_missing()
                may_be_unregistered = False
            if self._view.is_whole(self._nodes, healed_ns):
                self.recovery_s = clock.monotonic() - self._healed_s
                break
            self._cancelled.wait(PERIOD_S)
            self.injector.nodes.start_all()  # a disk fault may end a node shortly after it is healed


def _require_new_topics(target: LiveTarget, trial: Trial, admin: RecordedClient) -> None:
    """Raise `ScriptNotRunError` if an existing cluster has a topic of the round, because the round would delete it."""
    if not isinstance(target, ExistingCluster):
        return
    response = admin.metadata(list(trial.topic_names)).response
    if response is None:
        raise ScriptNotRunError("Metadata failed, so that it is not known which topics exist")
    existing = [topic.name for topic in response.topics if not topic.error_code]
    if existing:
        raise ScriptNotRunError(f"the cluster has topics with the names of the round: {', '.join(existing)}")


def _watched_topics(trial: Trial) -> dict[str, int]:
    """Return every topic that is not deleted, with its minimum number of partitions: 0 if a client is to create it."""
    existing = {topic.name: topic.partitions for topic in trial.topics}
    return {name: existing.get(name, 0) for name in trial.topic_names if name not in trial.deleted_topics}


def _work(
    target: LiveTarget, context: TrialContext, trial: Trial, injection: _RoundInjection, stepping: SteppingClients
) -> None:
    """Run the clients until `injection` is over. An interrupt heals at once."""
    actors: list[Actor] = [stepping] if trial.stepping else []
    try:
        for workload in trial.workloads:
            actors += clients_of(workload, context)
        run_phase(Phase.FAULTY, actors, [injection], target.stage)
    finally:
        injection.cancel()
        for actor in actors:
            actor.close()


def _replicas(view: View, context: TrialContext) -> dict[int, Replicas]:
    """Return the current leader and replicas of each partition, which clients may have changed."""
    seen = view.partitions_of(context.topic)
    return {
        **context.replicas,
        **{
            partition: Replicas(seen[partition].leader, seen[partition].replicas)
            for partition in seen
            if seen[partition].leader >= 0
        },
    }


def _settled(settings: Topic, seen: Mapping[int, PartitionSeen]) -> Topic:
    """Return the settings with the current number of partitions, and the smallest number of replicas of a partition."""
    return replace(
        settings,
        partitions=max(settings.partitions, len(seen)),
        replication_factor=min((len(each.replicas) for each in seen.values()), default=settings.replication_factor),
    )


def _divergences(target: LiveTarget, trial: Trial) -> Sequence[Divergence]:
    """Compare the replicas of topics without compaction, because compaction changes each replica independently."""
    if Capability.LOG_DIRECTORIES not in target.capabilities:
        return ()
    directories = {str(node.id): target.log_directories(node.id)[0] for node in target.nodes}
    compared = set(_watched_topics(trial)) - trial.compacted_topics
    return [each for each in find_divergences(directories) if each.partition.rpartition("-")[0] in compared]
