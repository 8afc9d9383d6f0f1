"""Replay of one trial of a requirement on a new target, for printed programs and `kafkatrial replay`."""

import json
import sys
import tempfile
from pathlib import Path

from conformance.concurrent.check import HistoryVerdict, judge_with_history_checks
from conformance.concurrent.requirements import HISTORY_CHECKS
from conformance.concurrent.run import HistoryRun
from conformance.concurrent.trial_context import ScriptNotRunError
from conformance.printed_programs import EXIT_CODES, exit_code_without_verdict, print_output, target_of_program
from conformance.trial.trial import Trial
from fixtures.targets.target import Target, TargetError
from linearizability.printable import one_line


def judged_trial(trial: Trial, target: Target, run_dir: Path) -> HistoryVerdict:
    """Start a target, run a trial, stop the target, and judge the history.

    If the trial names a requirement, the history checks of this requirement are applied, too. Raises `TargetError` and
    `ScriptNotRunError`.
    """
    if trial.requirement and trial.requirement not in HISTORY_CHECKS:
        raise ScriptNotRunError(f"there is no concurrent requirement {trial.requirement} in this version")
    with target:
        history_checks = HISTORY_CHECKS[trial.requirement](target) if trial.requirement else ()
        with HistoryRun(target, run_dir, seed=0) as run:
            run.run(trial)
    return judge_with_history_checks(run_dir, history_checks)


def run_program(trial: Trial, target_name: str, targets: str = "") -> int:
    """Start a target, run the trial, print the verdict as JSON, and return the exit code of the verdict.

    If the trial cannot run, print the reason to stderr instead, and return the exit code of the error. The program's
    command line may name another target. The first line on stderr names the directory of the history.

    :param targets: file with the table of the target, if it has one.
    """
    chosen = (sys.argv[1:] or [target_name])[0]
    run_dir = Path(tempfile.mkdtemp(prefix="kafkatrial-")) / "run"
    print(f"history: {run_dir}", file=sys.stderr)  # noqa: T201 - a program's output
    try:
        nodes = trial.cluster.nodes
        target = target_of_program(chosen, written_for=target_name, nodes=nodes, targets=targets)
        result = judged_trial(trial, target, run_dir)
    except (TargetError, ScriptNotRunError) as error:
        print(one_line(error), file=sys.stderr)  # noqa: T201
        return exit_code_without_verdict(error)
    verdict = {"verdict": result.verdict, "reason": result.reason, "judgement": result.judgement.as_json()}
    print_output(json.dumps(verdict, indent=1))
    return EXIT_CODES[result.verdict]
