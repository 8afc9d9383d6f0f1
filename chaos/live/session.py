"""A round from nothing: a cluster of its own is started for it, suffers it, is stopped, and leaves nothing behind."""

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from chaos.live.abilities import needs_of, refusals
from chaos.live.injector import Injected
from chaos.live.report import Report
from chaos.live.run import LiveTarget, run_round
from chaos.trial import Trial
from conformance.concurrent.trial_context import ScriptNotRunError
from fixtures.disk.kinds import DiskKind
from fixtures.faults import AnyFault
from fixtures.targets.catalogue import parse_target
from fixtures.targets.controls import ProcessSupervision, ProcessTarget
from fixtures.targets.residue import residue_of
from fixtures.targets.target import PREPARED, Target, TargetError, UnknownTargetError
from linearizability.temporary_folder import TemporaryFolder


@dataclass(frozen=True, slots=True)
class Fitted:
    """A round as far as a target can do it.

    :ivar refused: what it cannot, each with the reason.
    """

    trial: Trial
    refused: dict[AnyFault, str]


def fitted(target: str, trial: Trial, disk: DiskKind | None = None) -> Fitted:
    """Leave out what a target cannot do. Nothing starts.

    :param disk: what its nodes' log directories lie on; null: the best that there is, where the round takes one.
    :raises UnknownTargetError: there is no such target.
    :raises NotInstalledError: this machine has no such disk.
    """
    refused = refusals(_target(target, trial, None, disk), trial.schedule)
    kept = tuple(timed for timed in trial.schedule if timed.fault not in refused)
    return Fitted(replace(trial, schedule=kept), refused)


def run_on(
    target: str,
    trial: Trial,
    run_dir: Path,
    told: Callable[[Injected], None] = lambda _: None,
    disk: DiskKind | None = None,
) -> Report:
    """Start a cluster, run the round, stop it. The brokers' own logs are kept beside the history.

    Raises:
        TargetError: the cluster did not start, or a control failed.
        ScriptNotRunError: the topic was not made.
    """
    with TemporaryFolder() as work_dir:
        cluster = _target(target, trial, Path(work_dir), disk)
        try:
            with cluster:
                report = run_round(cluster, run_dir, trial, told)
        except (TargetError, ScriptNotRunError) as error:
            if left := residue_of(Path(work_dir), os.getpid()):
                raise TargetError(f"{error}; and it left behind: {'; '.join(left)}") from error
            raise
        finally:
            cluster.collect_logs(run_dir / "brokers")
        return replace(report, residue=residue_of(Path(work_dir), os.getpid()))


def _target(name: str, trial: Trial, work_dir: Path | None, disk: DiskKind | None) -> LiveTarget:
    target: Target = parse_target(
        name,
        trial.cluster.nodes,
        properties=dict(trial.cluster.properties),
        work_dir=work_dir,
        prepare=PREPARED & needs_of(trial.schedule),
        disk=disk,
    )
    if not isinstance(target, ProcessTarget) or not isinstance(target.processes, ProcessSupervision):
        raise UnknownTargetError(
            f"{name}: only clusters of processes that are started for it can be broken; say reference or apache-kafka"
        )
    return target  # type: ignore[return-value]  # which of the controls it has its capabilities say
