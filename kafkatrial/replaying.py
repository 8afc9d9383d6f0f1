"""Run of a saved trial on one target for `kafkatrial replay`, and the output of its result."""

import json
from datetime import datetime
from pathlib import Path

from chaos.campaign.interruption import interruptible
from chaos.replay import Replayed, lines_of, replay
from conformance.trial.saved import load_trial
from kafkatrial.console import show, stdout_console
from kafkatrial.errors import print_error
from kafkatrial.exit_codes import ExitCode
from kafkatrial.run_directory import make_run_directory
from kafkatrial.saved_histories import EXIT_CODES
from linearizability.printable import printable

REPLAYS = Path(".kafkatrial") / "replays"


def replay_file(file: Path, target: str, out: Path | None, *, as_json: bool) -> ExitCode:
    """Run a saved trial on a target and print the result.

    Raises:
        NotATrialError: the file is not a saved trial that this version of kafkatrial can read.
        TrialNotApplicableError: the target cannot run it.
        UsageError: the directory for the history cannot be made.
        TargetError: there is no such target, or it failed.
        ScriptNotRunError: the topic was not created.
    """
    saved = load_trial(file)
    now = datetime.now().astimezone()
    kind = target.partition(":")[0]
    is_new = out is None or not out.exists()
    run_dir = make_run_directory(out or REPLAYS / f"{now:%Y%m%dT%H%M%S-%f}-{kind}", now=now, seed=0)
    try:
        with interruptible():
            replayed = replay(saved, target, run_dir)
    except KeyboardInterrupt:
        print_error("interrupted")
        return ExitCode.INTERRUPTED
    finally:
        if is_new:
            _remove_empty(run_dir)
    if as_json:
        print(json.dumps(_as_json(replayed)))  # noqa: T201  the command's output
    else:
        show(stdout_console(), printable("\n".join(lines_of(replayed))))
    return EXIT_CODES[replayed.verdict]


def _remove_empty(run_dir: Path) -> None:
    """Remove the directory of a run that did not begin."""
    if not any(run_dir.iterdir()):
        run_dir.rmdir()


def _as_json(replayed: Replayed) -> dict[str, object]:
    return {
        "target": replayed.target,
        "verdict": replayed.verdict,
        "violations": [{"name": name, "text": text} for name, text in replayed.violations],
        "unknown": list(replayed.unknown),
        "without_effect": [{"fault": repr(each.timed), "reason": each.reason} for each in replayed.without_effect],
        "notes": list(replayed.notes),
        "history": str(replayed.history),
    }
