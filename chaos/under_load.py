"""One run under load: clients work, nodes are restarted, everything heals, and then the cluster is held to account.

Three things must be true afterwards: the checkers find nothing wrong with what the clients saw; every acknowledged
record was read back, from the leader and on the disk of every replica; and the replicas of each partition hold the same
batches.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from chaos.load import actors_of_load
from chaos.restarts import AwaitInSync
from conformance.concurrent.actors import Actor
from conformance.concurrent.replica_reads import record_replicas
from conformance.concurrent.run import HistoryRun, Injection, await_full_isr, run_phase
from conformance.concurrent.script import Phase, TopicSettings
from conformance.concurrent.surroundings import Surroundings
from fixtures.targets.replica_logs import Divergence, find_divergences
from fixtures.targets.target import LogDirectories, ProcessControl, Target
from linearizability.check import judge_history
from linearizability.history.reader import History, open_history
from linearizability.history.validate import validate
from linearizability.judgement import Judgement, Verdict

TOPIC = "load"
SETTINGS = TopicSettings(partitions=3, replication_factor=3, properties=(("min.insync.replicas", "2"),))
IN_SYNC_TIMEOUT_S = 60.0


@runtime_checkable
class RestartableTarget(Target, ProcessControl, LogDirectories, Protocol):
    """What a run under load needs of a target."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one run has shown."""

    judgement: Judgement
    divergences: tuple[Divergence, ...]
    acknowledged: int
    """Records."""
    not_acknowledged: int
    """Records that an idempotent producer was given an error for."""
    silence_max_s: float
    """The longest time without a record acknowledged."""

    @property
    def shortcomings(self) -> tuple[str, ...]:
        """One line for each thing that must not be; empty where all is well."""
        bad = (each for each in self.judgement.anomalies if each.verdict is not Verdict.PERMITTED and each.count)
        lines = [f"{each.name} ({each.count}): {each.evidence[0].text if each.evidence else ''}" for each in bad]
        return (*lines, *self.judgement.reasons, *map(str, self.divergences))


InjectionOf = Callable[[RestartableTarget, Surroundings, AwaitInSync], Injection]


def run_under_load(target: RestartableTarget, run_dir: Path, seed: int, injection_of: InjectionOf) -> Outcome:
    """Run it on a started target. The history stays in `run_dir`.

    Raises:
        ScriptNotRunError: the topic was not made.
        TargetError: a node ended by itself, or did not come back.
    """
    with HistoryRun(target, run_dir, seed) as run, run.raw_client() as admin:
        surroundings = run.make_topic(TOPIC, SETTINGS, admin)

        def await_in_sync() -> bool:
            return await_full_isr(admin, TOPIC, SETTINGS, target.transport, IN_SYNC_TIMEOUT_S) is not None

        injection = injection_of(target, surroundings, await_in_sync)
        actors: list[Actor] = []
        try:
            actors += actors_of_load(surroundings)
            run_phase(Phase.FAULTY, actors, [injection], target.stage)
        finally:
            for actor in actors:
                actor.close()
        run.drain(surroundings, SETTINGS, admin)
        record_replicas(surroundings)
        directories = {str(node.id): target.log_directories(node.id)[0] for node in target.nodes}
        divergences = find_divergences(directories)
    history = open_history(run_dir)
    validate(history)
    return _outcome(history, judge_history(history), tuple(divergences))


def _outcome(history: History, judgement: Judgement, divergences: tuple[Divergence, ...]) -> Outcome:
    produced = [row for row in history.table("operations").to_pylist() if row["f"] == "produce"]
    acknowledged = {row["op_id"] for row in produced if row["outcome"] == "ok"}
    refused = sum(row["outcome"] != "ok" and row["producer_id"] == -1 for row in produced)
    times = sorted(row["complete_ns"] for row in produced if row["op_id"] in acknowledged)
    silences = (later - earlier for earlier, later in itertools.pairwise(times))
    records = history.table("records").select(["op_id", "direction"]).to_pylist()
    return Outcome(
        judgement=judgement,
        divergences=divergences,
        acknowledged=sum(row["direction"] == "send" and row["op_id"] in acknowledged for row in records),
        not_acknowledged=refused,
        silence_max_s=max(silences, default=0) / 1e9,
    )
