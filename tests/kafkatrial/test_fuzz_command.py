"""`kafkatrial fuzz`: invalid options, a complete session, and the replay of a finding."""

import json

import pytest

from conformance.fuzz.finding import FuzzFinding, Symptom, load, save
from conformance.fuzz.generator import FuzzRequest
from conformance.fuzz.health import limits_for
from conformance.fuzz.session import FuzzProgress, SessionPlan, SessionReport
from conformance.fuzz.world import Port, World
from kafkatrial import fuzzing
from kafkatrial.__main__ import exit_code
from kafkatrial.exit_codes import ExitCode
from kafkatrial.fuzzing import FuzzPlan, FuzzRunner, exit_code_of_session
from linearizability.judgement import Anomaly, Judgement, Verdict

WORLD = World("AAAAAAAAAAAAAAAAAAAAAA", (1, 2, 3), {}, {})
REQUEST = FuzzRequest(7, 2, Port.CONTROLLER, 52, 2, b"\0\0\0\1x", ("leader_id: 3",))
CLEAN = Judgement(10, 10, ())
LOST = Judgement(10, 10, (Anomaly("lost-write", Verdict.VIOLATION, 1, ()),))


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--minutes", "0"], "--minutes, --seconds: 0 seconds; give a positive number"),
        (["--minutes", "1", "--seconds", "60"], "--minutes and --seconds name the same time; give one of them"),
        (["--target", "referense"], "referense: unknown target; did you mean reference?"),
        (["--target", "bootstrap:localhost:9092"], "bootstrap:localhost:9092: an existing cluster is not fuzzed"),
        (["--target", "simulation"], "simulation: only clusters of processes are fuzzed"),
        (["--replay", "nothing.json"], "nothing.json: No such file or directory"),
    ],
)
def test_an_invalid_option_is_reported_in_one_line(words, line, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert exit_code(["fuzz", *words]) is ExitCode.USAGE
    message = capsys.readouterr().err.strip()
    assert message.startswith(f"kafkatrial: {line}")
    assert "\n" not in message


def finding(symptom, is_confirmed):
    return FuzzFinding("reference", 1, symptom, "node 2 took 400 ms", (REQUEST,), WORLD, is_confirmed)


@pytest.mark.parametrize(
    ("judgement", "findings", "code"),
    [
        (CLEAN, [], ExitCode.OK),
        (LOST, [], ExitCode.VIOLATION),
        (CLEAN, [finding(Symptom.LATE_RESPONSE, True)], ExitCode.VIOLATION),
        (CLEAN, [finding(Symptom.LATE_RESPONSE, False)], ExitCode.INCONCLUSIVE),
        (CLEAN, [finding(Symptom.NODE_ENDED, False)], ExitCode.VIOLATION),
        (CLEAN, [finding(Symptom.TRACEBACK, None)], ExitCode.VIOLATION),
    ],
)
def test_the_exit_code_depends_on_judgement_and_findings(judgement, findings, code):
    assert exit_code_of_session(SessionReport(FuzzProgress(), judgement), findings) is code


def test_a_saved_finding_can_be_read(tmp_path):
    saved = finding(Symptom.LATE_RESPONSE, True)
    save(tmp_path / "finding.json", saved)
    assert load(tmp_path / "finding.json") == saved
    assert json.loads((tmp_path / "finding.json").read_text())["requests"][0]["title"] == REQUEST.title


@pytest.fixture
def interrupted_command(tmp_path, monkeypatch):
    """Return a function that makes a command with the given findings.

    The command is interrupted during its session if `in_session` is true, and during the shrinking otherwise.
    """

    class Cluster:
        __enter__ = __exit__ = lambda *_: None
        kind = "reference"

    def command(findings, *, in_session):
        def session(_cluster, _directory, _plan, on_progress):
            progress = FuzzProgress(sent=9, findings=findings)
            on_progress(progress)
            if in_session:
                raise KeyboardInterrupt
            return SessionReport(progress, CLEAN)

        monkeypatch.setattr(fuzzing, "run_session", session)
        plan = FuzzPlan("reference", SessionPlan(1, 5.0, limits_for("reference"), None), 60.0, tmp_path)
        return FuzzRunner(plan, as_json=True)

    def shrink(replays):
        raise KeyboardInterrupt

    monkeypatch.setattr(fuzzing, "new_cluster", lambda *_: Cluster())
    monkeypatch.setattr(fuzzing.Replays, "shrink", shrink)
    return command


@pytest.mark.parametrize(
    ("symptom", "code"),
    [(Symptom.NODE_ENDED, ExitCode.VIOLATION), (Symptom.LATE_RESPONSE, ExitCode.INTERRUPTED)],
)
@pytest.mark.parametrize(("in_session", "verdict"), [(True, "unknown"), (False, "ok")])
def test_findings_and_summary_are_saved_if_the_command_is_interrupted(
    symptom, code, in_session, verdict, interrupted_command, tmp_path, capsys
):
    found = finding(symptom, None)
    assert interrupted_command([found], in_session=in_session).run() is code
    output = capsys.readouterr()
    assert output.err.startswith("kafkatrial: interrupted; ")
    assert f"the findings are in {tmp_path / 'findings'}" in output.err
    assert load(tmp_path / "findings" / f"1-{symptom}.json") == found
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary == json.loads(output.out)
    assert [each["symptom"] for each in summary["findings"]] == [symptom]
    assert (summary["complete"], summary["requests"], summary["exit_code"]) == (False, 9, code)
    assert summary["judgement"]["verdict"] == verdict


def test_a_command_that_is_interrupted_without_findings_writes_a_summary(interrupted_command, tmp_path, capsys):
    assert interrupted_command([], in_session=True).run() is ExitCode.INTERRUPTED
    assert "findings" not in capsys.readouterr().err
    assert json.loads((tmp_path / "summary.json").read_text())["findings"] == []


@pytest.mark.slow
def test_a_complete_session(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    code = exit_code(["fuzz", "--seconds", "5", "--seed", "1", "--out", "out", "--shrink-minutes", "0", "--json"])
    summary = json.loads(capsys.readouterr().out)
    assert code in {ExitCode.OK, ExitCode.INCONCLUSIVE}, summary
    assert summary == json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["judgement"]["verdict"] == "ok"
    assert summary["requests"] == sum(summary["requests_by_api"].values()) > 10
    assert (tmp_path / "out" / "run" / "run.json").exists()
