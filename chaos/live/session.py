"""Round on a new cluster: start the cluster, run the round, stop the cluster, and look for residue."""

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from chaos.live.injector import Injected
from chaos.live.report import Report
from chaos.live.run import LiveTarget, run_round
from chaos.live.unsupported import required_capabilities, unsupported_faults
from conformance.concurrent.trial_context import ScriptNotRunError
from conformance.targets import starts_nodes
from conformance.trial.trial import Trial
from fixtures.disk.kinds import DiskKind
from fixtures.faults import AnyFault
from fixtures.targets.catalogue import parse_target
from fixtures.targets.controls import ProcessSupervision, ProcessTarget
from fixtures.targets.residue import residue_of
from fixtures.targets.target import PREPARED, Target, TargetError, UnknownTargetError
from linearizability.temporary_folder import TemporaryFolder


@dataclass(frozen=True, slots=True)
class SupportedTrial:
    """A round with the faults that a target supports.

    :ivar unsupported: the other faults, with the reasons.
    """

    trial: Trial
    unsupported: dict[AnyFault, str]

    @property
    def reasons(self) -> str:
        """The different reasons for unsupported faults; empty if all are supported."""
        return "; ".join(dict.fromkeys(self.unsupported.values()))


def remove_unsupported_faults(target: str, trial: Trial, disk: DiskKind | None = None) -> SupportedTrial:
    """Remove the faults that a target does not support. Nothing is started.

    :param disk: file system of the log directories; None: the best available one, if the round needs one.
    :raises UnknownTargetError: there is no such target.
    :raises NotInstalledError: this machine has no such file system.
    """
    unsupported = unsupported_faults(_target(target, trial, None, disk), trial.schedule)
    kept = tuple(timed for timed in trial.schedule if timed.fault not in unsupported)
    return SupportedTrial(replace(trial, schedule=kept), unsupported)


def run_on(
    target: str,
    trial: Trial,
    run_dir: Path,
    on_injected: Callable[[Injected], None] = lambda _: None,
    disk: DiskKind | None = None,
) -> Report:
    """Start a cluster, run the round, and stop it. The log files of the brokers are kept beside the history.

    Raises:
        TargetError: the cluster did not start, or a control failed.
        ScriptNotRunError: a topic was not created, or exists already.
    """
    with TemporaryFolder() as work_dir:
        cluster = _target(target, trial, Path(work_dir), disk)
        try:
            with cluster:
                report = run_round(cluster, run_dir, trial, on_injected)
        except (TargetError, ScriptNotRunError) as error:
            if left := residue_of(Path(work_dir), os.getpid()):
                raise TargetError(f"{error}; and it left behind: {'; '.join(left)}") from error
            raise
        finally:
            cluster.collect_logs(run_dir / "brokers")
        return replace(report, residue=residue_of(Path(work_dir), os.getpid()))


def _target(name: str, trial: Trial, work_dir: Path | None, disk: DiskKind | None) -> LiveTarget:
    if not starts_nodes(name):
        return _existing(name, trial)
    target: Target = parse_target(
        name,
        trial.cluster.nodes,
        properties=dict(trial.cluster.properties),
        work_dir=work_dir,
        prepare=PREPARED & required_capabilities(trial.schedule),
        disk=disk,
    )
    if not isinstance(target, ProcessTarget) or not isinstance(target.processes, ProcessSupervision):
        raise UnknownTargetError(
            f"{name}: faults need a cluster of processes that is started for the round: reference or apache-kafka"
        )
    return target  # type: ignore[return-value]  # its capabilities state which of the controls it has


def _existing(name: str, trial: Trial) -> LiveTarget:
    """Return an existing cluster, which keeps its own settings. Raises `TargetError` if it has too few brokers."""
    target = parse_target(name)
    replicas = max(topic.replication_factor for topic in trial.topics)
    brokers = target.node_count if target.capabilities else 0  # `capabilities` queries the cluster first
    if brokers is not None and brokers < replicas:
        raise TargetError(f"{name} has {brokers} brokers, and the topics of a round have {replicas} replicas")
    return target  # type: ignore[return-value]  # its capabilities state which of the controls it has
