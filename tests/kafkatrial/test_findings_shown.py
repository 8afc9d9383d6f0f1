"""`kafkatrial chaos --show` on several targets: the exit code, and the saved run of a target without the finding."""

import re

import pytest

from chaos.live.injector import Injected
from chaos.live.report import Report, RoundFacts
from chaos.live.session import SupportedTrial
from kafkatrial import findings
from kafkatrial.exit_codes import ExitCode
from linearizability.judgement import Judgement

LOST = {1: 3}
"""Number of lost records for each value of acks, in a run that shows the finding `acks-1-lost-at-a-leader-kill`."""


@pytest.fixture
def targets(monkeypatch, tmp_path):
    """Replace the targets by three: `good` shows the finding, `bad` does not, and `unable` cannot run the round."""
    lost = {"good": LOST, "bad": {1: 0}, "unable": None}

    def run_on(target, trial, run_dir, *, disk):
        (run_dir / "brokers").mkdir(parents=True)
        (run_dir / "run.json").write_text(target)
        facts = RoundFacts(injected=tuple(Injected(timed, found=True) for timed in trial.schedule))
        return Report(trial=trial, target=target, judgement=Judgement(0, 0, ()), facts=facts, lost=lost[target])

    def remove_unsupported_faults(target, trial, disk):
        unsupported = {"a fault": "cannot be done", "another fault": "cannot be done"}
        return SupportedTrial(trial, {} if lost[target] is not None else unsupported)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(findings, "remove_unsupported_faults", remove_unsupported_faults)
    monkeypatch.setattr(findings, "run_on", run_on)


@pytest.mark.usefixtures("targets")
@pytest.mark.parametrize(
    ("names", "code"),
    [
        (("good",), ExitCode.OK),
        (("unable",), ExitCode.NOTHING_RAN),
        (("bad", "unable"), ExitCode.VIOLATION),
        (("unable", "bad", "good"), ExitCode.VIOLATION),
        (("good", "unable"), ExitCode.OK),
    ],
)
def test_a_target_without_the_finding_decides_the_exit_code_of_several_targets(names, code):
    assert findings.show_finding("acks-1-lost-at-a-leader-kill", names) is code


@pytest.mark.usefixtures("targets")
def test_a_reason_of_several_faults_is_printed_once(capsys):
    findings.show_finding("acks-1-lost-at-a-leader-kill", ("unable",))
    assert capsys.readouterr().out.endswith("unable: not applicable: cannot be done\n")


@pytest.mark.usefixtures("targets")
def test_a_run_that_did_not_show_the_finding_is_saved_and_reported(tmp_path, capsys):
    findings.show_finding("acks-1-lost-at-a-leader-kill", ("good", "bad"))
    (directory,) = re.findall(r"history and logs in (\S+)", capsys.readouterr().out)
    assert (tmp_path / directory / "run.json").read_text() == "bad"
    assert (tmp_path / directory / "brokers").is_dir()
    assert len(list((tmp_path / directory).parent.iterdir())) == 1
