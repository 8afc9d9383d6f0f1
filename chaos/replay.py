"""Replay of a saved trial on any target.

The role of a node in a fault, such as the leader, is resolved when the fault is injected. On another target, in real
time, a fault may therefore find nothing to break. The result names such faults.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import chaos.targets  # noqa: F401  registers the simulation
from chaos.campaign.counterexample import SIMULATION
from chaos.simulation.computing_time import EndlessTrialError, bounded
from chaos.simulation.seeding import seeded
from conformance.applicability import reason_not_applicable
from conformance.concurrent.replay import judged_trial
from conformance.concurrent.requirements import REQUIREMENTS as CONCURRENT
from conformance.targets import starts_nodes
from conformance.trial.moves import Begin, StartBroker
from conformance.trial.saved import SavedTrial
from conformance.trial.trial import Trial
from conformance.trial.workloads import Tail
from fixtures.disk.kinds import DiskKind
from fixtures.faults import AnyFault, Timed
from fixtures.faults.fault import missing_capability
from fixtures.targets.catalogue import parse_target
from fixtures.targets.target import Capability, Target, reasons_for_lacking
from linearizability.history.saving import save as save_history
from linearizability.judgement import Verdict
from linearizability.printable import counted

COMPUTING_MAX_S: Final = 600.0
"""Limit of the processor time of a trial on the simulation. A generated trial takes seconds."""


class TrialNotApplicableError(Exception):
    """The target cannot run the trial. The message is one line with the reason."""


@dataclass(frozen=True, slots=True)
class WithoutEffect:
    """A fault of the schedule without an effect, and the reason."""

    timed: Timed
    reason: str


@dataclass(frozen=True, slots=True)
class Replayed:
    """The result of a replay.

    :ivar history: run directory with the history.
    :ivar violations: name and text of each violation.
    :ivar unknown: reasons why checks could not be decided.
    :ivar notes: lines about the run, for a person.
    :ivar findings: names of the findings of chaos that the replay showed.
    """

    target: str
    history: Path
    verdict: Verdict
    violations: tuple[tuple[str, str], ...] = ()
    unknown: tuple[str, ...] = ()
    without_effect: tuple[WithoutEffect, ...] = ()
    notes: tuple[str, ...] = ()
    findings: tuple[str, ...] = ()

    @property
    def shown(self) -> frozenset[str]:
        """Names of the violations and of the findings of chaos."""
        return frozenset((*(name for name, _ in self.violations), *self.findings))


def replay(saved: SavedTrial, target: str, run_dir: Path, disk: DiskKind | None = None) -> Replayed:
    """Run a saved trial on a target, and judge it. The history stays in `run_dir`.

    The saved defect is seeded only into the target `simulation`.

    :param disk: file system of the log directories on a target of processes. If it is None, the best available one is
        used.

    Raises:
        TrialNotApplicableError: the target cannot run the trial. Nothing was started.
        TargetError: the target does not exist or did not start, or a control failed.
        ScriptNotRunError: a topic was not created, or exists already.
    """
    trial = saved.trial
    if trial.requirement or trial.moves or trial.phased:
        return _replay_phases(trial, target, run_dir)
    if target == SIMULATION:
        return _simulate(trial, saved.defect, run_dir)
    return _replay_live(trial, saved.defect, target, run_dir, disk)


def _simulate(trial: Trial, defect: str, run_dir: Path) -> Replayed:
    from chaos.simulation.run import run  # imports the whole broker
    from chaos.simulation.work import ENDLESS

    for timed in trial.schedule:
        _check_simulated(timed.fault)
    _check_properties(trial)
    known, unknown = _known_properties(trial)
    try:
        with seeded(defect), bounded(COMPUTING_MAX_S):
            outcome = run(known)
    except EndlessTrialError as error:
        return Replayed(SIMULATION, run_dir, Verdict.VIOLATION, ((ENDLESS, str(error)),))
    save_history(outcome.history, run_dir)
    found = outcome.violation
    undecided = Verdict.UNKNOWN if outcome.unknown else Verdict.OK
    return Replayed(
        SIMULATION,
        run_dir,
        undecided if found is None else Verdict.VIOLATION,
        () if found is None else ((found.name, found.text),),
        outcome.unknown if found is None else (),
        without_effect=tuple(WithoutEffect(timed, "it found nothing to break") for timed in outcome.without_effect),
        notes=(
            *([] if found is None else [f"violated at {found.at_ms:,} ms of virtual time"]),
            f"{counted(outcome.operations, 'operation')}, {outcome.virtual_ms / 1000:.1f} virtual seconds",
            f"digest {outcome.digest}",
            *([f"seeded defect: {defect}"] if defect else []),
            *(f"property without effect: the reference broker has no {name}" for name in unknown),
        ),
    )


def _check_simulated(fault: AnyFault) -> None:
    if not fault.is_simulated:
        raise TrialNotApplicableError(f"the simulation has no fault {fault!r}; name a target of processes")


def _check_properties(trial: Trial) -> None:
    """Raise `TrialNotApplicableError` for a property that the reference broker rejects."""
    from reference_broker.core.configuration.key import InvalidConfigError
    from reference_broker.core.configuration.keys import BROKER_CONFIG_KEYS, TOPIC_CONFIG_KEYS

    topic_properties = (
        (TOPIC_CONFIG_KEYS.get(name), name, value) for topic in trial.topics for name, value in topic.properties
    )
    broker_properties = (
        (BROKER_CONFIG_KEYS[name], name, value)
        for name, value in trial.cluster.properties
        if name in BROKER_CONFIG_KEYS
    )
    for key, name, value in (*topic_properties, *broker_properties):
        if key is None:
            raise TrialNotApplicableError(f"the reference broker has no topic property {name}")
        try:
            key.parse(value)
        except InvalidConfigError as error:
            raise TrialNotApplicableError(f"the reference broker rejects {name}={value}: {error}") from None


def _known_properties(trial: Trial) -> tuple[Trial, tuple[str, ...]]:
    """Return the trial without broker properties that the reference broker does not have, and the names of those."""
    from reference_broker.core.configuration.keys import BROKER_CONFIG_KEYS

    known = tuple(each for each in trial.cluster.properties if each[0] in BROKER_CONFIG_KEYS)
    unknown = tuple(name for name, _ in trial.cluster.properties if name not in BROKER_CONFIG_KEYS)
    return replace(trial, cluster=replace(trial.cluster, properties=known)), unknown


def _replay_live(trial: Trial, defect: str, target: str, run_dir: Path, disk: DiskKind | None) -> Replayed:
    from chaos.live.failure import summary_of
    from chaos.live.findings import FINDINGS
    from chaos.live.session import remove_unsupported_faults, run_on

    supported = remove_unsupported_faults(target, trial, disk)
    _check_topology(trial, target)
    for fault, reason in supported.unsupported.items():
        raise TrialNotApplicableError(f"{target} cannot inject {fault!r}: {reason}")
    report = run_on(target, trial, run_dir, disk=disk)
    idle = [
        WithoutEffect(each.timed, each.rejection or "it found nothing to break")
        for each in report.facts.injected
        if not each.found
    ]
    return Replayed(
        target,
        run_dir,
        report.verdict,
        tuple((each.name, each.text) for each in report.violations),
        report.unknown,
        tuple(idle),
        (*summary_of(report), *_own_settings(trial, target), *_not_seeded(defect, target)),
        tuple(name for name, finding in FINDINGS.items() if finding.shows(report)),
    )


def _own_settings(trial: Trial, target: str) -> Sequence[str]:
    """Return a note if the target is an existing cluster, where the trial's broker properties have no effect."""
    names = "" if starts_nodes(target) else ", ".join(name for name, _ in trial.cluster.properties)
    return [f"properties without effect on an existing cluster: {names}"] if names else []


def _not_seeded(defect: str, target: str) -> Sequence[str]:
    """Return a note if the target lacks the saved defect: a file must not change the code of processes."""
    with_defect = f"defective:{defect}"
    if not defect or target == with_defect:
        return []
    return [f"without the defect of the file: it is seeded by --target simulation or --target {with_defect}"]


def _check_topology(trial: Trial, target: str) -> None:
    """Raise `TrialNotApplicableError` for roles of nodes or deletions of a topic that only the simulation supports."""
    if trial.cluster.roles:
        raise TrialNotApplicableError(
            f"{target} starts nodes that are both broker and controller; the trial has other roles (process.roles)"
        )
    if trial.topic.name in trial.deleted_topics:
        raise TrialNotApplicableError(
            f"on {target} recovery is judged by the topic {trial.topic.name}, which the trial deletes"
        )


def _replay_phases(trial: Trial, target: str, run_dir: Path) -> Replayed:
    """Run a trial that has a requirement, moves or clients with phases. The requirement is part of the verdict."""
    requirement = next((each for each in CONCURRENT if each.id == trial.requirement), None)
    if trial.requirement and requirement is None:
        raise TrialNotApplicableError(f"there is no concurrent requirement {trial.requirement} in this version")
    _check_phases(trial)
    nodes = trial.cluster.nodes
    given = dict(trial.cluster.properties)
    cluster = parse_target(target, nodes, properties=given) if starts_nodes(target) else parse_target(target)
    lacking = requirement and reason_not_applicable(
        requirement,
        capabilities=cluster.capabilities,
        version=cluster.version,
        nodes=cluster.node_count or nodes,
        reasons=reasons_for_lacking(cluster),
    )
    if lacking:
        raise TrialNotApplicableError(f"{target} cannot run {trial.requirement}: {lacking}")
    _check_capabilities(trial, target, cluster)
    result = judged_trial(trial, cluster, run_dir)
    return Replayed(
        target,
        run_dir,
        result.verdict,
        ((trial.requirement or "history", result.reason),) if result.verdict is Verdict.VIOLATION else (),
        (result.reason,) if result.verdict is Verdict.UNKNOWN else (),
        notes=tuple(_own_settings(trial, target)),
    )


def _check_capabilities(trial: Trial, name: str, target: Target) -> None:
    """Raise `TrialNotApplicableError` if a target cannot create the topic, or cannot make one of the moves."""
    if reason := missing_capability(target, Capability.TOPIC_ADMIN):
        raise TrialNotApplicableError(f"{name} cannot create the topic of the trial: {reason}")
    for move in trial.moves:
        if isinstance(move, Begin) and name == SIMULATION:
            _check_simulated(move.fault)
        if isinstance(move, Begin) and (reason := move.fault.missing(target)):
            raise TrialNotApplicableError(f"{name} cannot inject {move.fault!r}: {reason}")
        if isinstance(move, StartBroker) and (reason := missing_capability(target, Capability.PROCESS_CONTROL)):
            raise TrialNotApplicableError(f"{name} cannot start a broker that joins: {reason}")


def _check_phases(trial: Trial) -> None:
    """Raise `TrialNotApplicableError` if the trial has parts that cannot run together with moves and phases."""
    others = {
        "a schedule": trial.schedule,
        "more than one topic": trial.topics[1:],
        "process.roles": trial.cluster.roles,
        "clients without phases": [*trial.stepping, *(each for each in trial.workloads if not isinstance(each, Tail))],
    }
    for name, parts in others.items():
        if parts:
            raise TrialNotApplicableError(f"a trial with a requirement, moves or clients with phases has {name}")


def lines_of(replayed: Replayed) -> Sequence[str]:
    """Return the result as lines for a person, the verdict first."""
    return (
        f"{replayed.target}: {replayed.verdict}",
        *(f"violation {name}: {text}" for name, text in replayed.violations),
        *(f"unknown: {reason}" for reason in replayed.unknown),
        *(f"fault without effect: {each.timed!r}: {each.reason}" for each in replayed.without_effect),
        *replayed.notes,
        f"history: {replayed.history}",
    )
