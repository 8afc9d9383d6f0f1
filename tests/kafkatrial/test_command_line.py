"""Output and exit codes of commands, compared with golden files (UPDATE_GOLDEN=1 rewrites the files).

A scripted engine and scripted targets replace the real ones, so that only the command line is tested. Placeholders
replace the values that differ between runs: the temporary directory and the times in the names of run directories.
"""

import json
import os
import platform
import re
import signal
from importlib.metadata import version
from pathlib import Path

import pytest

from conformance.events import (
    RequirementJudged,
    RequirementStarted,
    RunEnded,
    RunStarted,
    ScriptRan,
    TargetStarted,
    TargetStarting,
)
from conformance.requirements.requirement import Level, Requirement, Source
from fixtures.targets.target import NotInstalledError, TargetError
from kafkatrial.__main__ import exit_code
from linearizability.finding import Difference, Finding
from linearizability.judgement import Anomaly, Evidence, Judgement, Verdict
from reports.results import read_results

GOLDEN = Path(__file__).parent / "golden"
SOURCE = Source("Kafka protocol guide, Error Codes", "https://kafka.apache.org/protocol")
REQUIREMENTS = tuple(
    Requirement(name, level, f"The promise of {name}.", (SOURCE,), check=lambda trial: {})
    for name, level in (
        ("produce/first", Level.MUST),
        ("produce/second", Level.SHOULD),
        ("fetch/third", Level.MUST),
        ("fetch/fourth", Level.MAY),
    )
)


class ScriptedTarget:
    kind = "scripted"
    version = None

    def __init__(self, name, nodes=None, **_):
        self.name, self.count = name, nodes or 1

    def collect_logs(self, directory):
        directory.mkdir(parents=True)


def judged(requirement, target, verdict, **fields):
    values = {"requirement": requirement, "level": "MUST", "target": target, "scripts": 15, "seconds": 0.5, **fields}
    return RequirementJudged(Finding(Verdict(verdict), **values))


def events_of(targets, requirements, seed, run_dir, verdicts):
    names = tuple(target.name for target in targets)
    ids = tuple(requirement.id for requirement in requirements)
    yield RunStarted(str(run_dir), seed, "ci", names, ids)
    for name in names:
        yield TargetStarting(name, 1)
        yield TargetStarted(name, 1, 0.5, {"broker": "1.0"})
    for index, requirement in enumerate(ids, 1):
        yield RequirementStarted(requirement, index, len(ids))
        for name in names:
            yield ScriptRan(requirement, name, 1, 15)
        for name in names:
            result = verdicts.get((requirement, name), "ok")
            if isinstance(result, BaseException):
                raise result
            yield result if isinstance(result, RequirementJudged) else judged(requirement, name, result)
    yield RunEnded(complete=True, seed=seed, seconds=1.25)


@pytest.fixture
def verdicts(tmp_path, monkeypatch):
    """Replace the engine; return the dict of its results, to which a test adds entries.

    A key is a requirement and a target. A value is a verdict, a whole event or an exception to raise (default: ok).
    """
    verdicts = {}

    def run_requirements(targets, requirements, *, seed, profile, run_dir, expectations):
        return events_of(targets, requirements, seed, run_dir, verdicts)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("kafkatrial.running.run_requirements", run_requirements)
    monkeypatch.setattr("kafkatrial.running.target_of_requirements", ScriptedTarget)
    monkeypatch.setattr("kafkatrial.selection.REQUIREMENTS", REQUIREMENTS)
    monkeypatch.setattr("conformance.registry.REQUIREMENTS", REQUIREMENTS)
    return verdicts


@pytest.fixture
def command(verdicts, capsys, tmp_path):
    """Return a function that runs a command and returns its exit code, standard output and standard error."""

    def run(*words):
        code = exit_code(list(words))
        captured = capsys.readouterr()
        return code, comparable(captured.out, tmp_path), comparable(captured.err, tmp_path)

    return run


def comparable(text, tmp_path):
    text = text.replace(str(tmp_path), "TMP")
    return re.sub(r"runs/\d{8}T\d{6}-", "runs/TIME-", text)


def check(name, code, out, err):
    text = f"exit {code}\n--- standard output\n{out}--- standard error\n{err}"
    path = GOLDEN / f"{name}.txt"
    if os.environ.get("UPDATE_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    assert text == path.read_text()


def test_run_ok(command):
    check("run-ok", *command("run", "--seed", "7"))


def test_run_with_every_kind_of_verdict(command, verdicts):
    evidence = Evidence((4,), "orders", 0, 40, 1, "gone")
    lost = Judgement(300, 2400, (Anomaly("lost-write", Verdict.VIOLATION, 12, (evidence,)),))
    verdicts["produce/first", "a"] = judged(
        "produce/first",
        "a",
        "violation",
        reason="12 records were lost",
        expected="every record is read",
        actual="offset 40 is gone",
        program="play(steps=[Produce(records=3)])\n",
        judgement=lost,
        differences=(Difference("b", "semantic", 2, "base_offset=3", "base_offset=4"),),
        reproduce="kafkatrial run --target a --nodes 1 --seed 7 produce/first",
        failure_dir="RUN/failures/1",
    )
    verdicts["produce/second", "a"] = judged(
        "produce/second", "a", "violation", expected_violation=True, reason="known"
    )
    verdicts["produce/second", "b"] = judged("produce/second", "b", "ok", expected_violation=True, reason="take it out")
    verdicts["fetch/third", "a"] = judged("fetch/third", "a", "not-applicable", reason="needs replication")
    verdicts["fetch/third", "b"] = judged("fetch/third", "b", "unknown", reason="nothing was read")
    check("run-everything", *command("run", "--seed", "7", "--target", "a", "--target", "b"))


def test_run_writes_its_files_and_results(command):
    command("run", "--seed", "7", "--out", "kept", "produce")
    assert sorted(path.name for path in Path("kept").iterdir()) == [
        "brokers",
        "junit.xml",
        "report.html",
        "results.json",
    ]
    results = read_results(Path("kept"))
    assert [requirement.id for requirement in results.requirements] == ["produce/first", "produce/second"]
    assert (results.exit_code, results.complete, results.seed) == (0, True, 7)


def test_a_random_seed_is_printed_first_and_last(command):
    _, out, _ = command("run")
    first = re.match(r"seed (\d+),", out).group(1)
    assert out.rstrip().endswith(f"Seed       {first}")
    assert command("run", "--seed", first, "--out", "again")[1].startswith(f"seed {first},")


@pytest.mark.parametrize(
    ("result", "code"),
    [
        ("unknown", 6),
        ("violation", 1),
        ("not-applicable", 5),
        (TargetError("b1 died"), 3),
        (NotInstalledError("no"), 4),
    ],
)
def test_exit_codes(command, verdicts, result, code):
    verdicts["produce/first", "reference"] = result
    assert command("run", "produce/first")[0] == code


def test_an_error_during_the_run_keeps_the_verdicts_so_far(command, verdicts):
    verdicts["produce/second", "reference"] = TargetError("node 1 ended by itself")
    code, _, err = command("run", "--seed", "7", "--out", "kept")
    assert (code, err) == (3, "kafkatrial: node 1 ended by itself\n")
    results = read_results(Path("kept"))
    assert ([o.requirement for o in results.outcomes], results.complete) == (["produce/first"], False)


def test_an_unexpected_error_is_reported_in_one_line_and_a_file(command, verdicts):
    verdicts["produce/first", "reference"] = ZeroDivisionError("oops")
    code, _, err = command("run", "--seed", "7", "--out", "kept")
    assert (code, err) == (
        3,
        "kafkatrial: internal error: ZeroDivisionError: oops (traceback in kept/internal-error.txt)\n",
    )
    assert "Traceback" in Path("kept/internal-error.txt").read_text()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_keeps_the_verdicts_so_far(command, verdicts, monkeypatch, number):
    def interrupt():
        os.kill(os.getpid(), number)

    monkeypatch.setattr("kafkatrial.running.RunProgress", lambda *_: Interrupting(interrupt))
    before = signal.getsignal(number)
    code, _, _ = command("run", "--seed", "7", "--out", "kept")
    assert code == 2
    assert [outcome.requirement for outcome in read_results(Path("kept")).outcomes] == ["produce/first"]
    assert Path("kept/report.html").exists()
    assert signal.getsignal(number) is before


class Interrupting:
    """Progress display that interrupts the run at the first verdict."""

    def __init__(self, interrupt):
        self._interrupt = interrupt

    def handle(self, event):
        if isinstance(event, RequirementJudged):
            self._interrupt()

    def __enter__(self):
        return self

    def __exit__(self, *exc_info):
        pass


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("misspelt-requirement", ["run", "produce/frist"]),
        ("misspelt-area", ["run", "fecth"]),
        ("strange-requirement", ["run", "zzz"]),
        ("unknown-profile", ["run", "--profile", "huge"]),
        ("wrong-level", ["run", "--level", "may"]),
        ("no-nodes", ["run", "--nodes", "0"]),
        ("nodes-no-number", ["run", "--nodes", "x"]),
        ("unknown-option", ["run", "--sed", "1"]),
        ("unknown-command", ["rnu"]),
        ("missing-expectations", ["run", "--expectations", "none.toml"]),
        ("check-nothing", ["check", "none"]),
        ("check-without-a-directory", ["check"]),
        ("broker-unknown-option", ["broker", "--prot", "1"]),
        ("broker-strange-port", ["broker", "--port", "70000"]),
        ("broker-two-nodes", ["broker", "--nodes", "2"]),
        ("broker-unknown-target", ["broker", "--target", "refrence"]),
        ("probe-no-address", ["targets", "probe", "localhost"]),
        ("install-unknown-target", ["targets", "install", "redpanda"]),
        ("both-forms", ["requirements", "--json", "--markdown"]),
    ],
)
def test_wrong_usage_is_reported_in_one_line_and_exit_code_4(command, name, words):
    code, out, err = command(*words)
    assert (code, out, err.count("\n")) == (4, "", 1)
    check(f"usage-{name}", code, out, err)


def test_expectations_of_unknown_requirements_are_rejected(command):
    Path("known.toml").write_text('[[violation]]\nrequirement = "produce/frist"\nreason = "r"\nlink = "l"\n')
    code, _, err = command("run", "--expectations", "known.toml")
    assert code == 4
    assert err == (
        "kafkatrial: known.toml: produce/frist: no requirement and no area of that name; did you mean produce/first?\n"
    )


def test_expectations_of_an_area_are_rejected(command):
    Path("known.toml").write_text('[[violation]]\nrequirement = "produce"\nreason = "r"\n')
    _, _, err = command("run", "--expectations", "known.toml")
    assert err.startswith("kafkatrial: known.toml: produce is an area; name each of its requirements")


def test_a_run_prints_the_number_of_known_violations_and_their_file(command):
    Path("known.toml").write_text('[[violation]]\nrequirement = "produce/first"\nreason = "r"\n')
    _, out, _ = command("run", "--target", "a", "--target", "b", "--expectations", "known.toml")
    assert out.splitlines()[2:4] == [f"known violations of {name}: 1, in known.toml" for name in "ab"]


def test_the_plan_names_what_would_run(command):
    code, out, _ = command("run", "--plan", "--seed", "7", "--level", "must", "--target", "a")
    assert code == 0
    assert json.loads(out) == {
        "targets": ["a"],
        "seed": 7,
        "requirements": [
            {"id": "produce/first", "level": "MUST", "text": "The promise of produce/first."},
            {"id": "fetch/third", "level": "MUST", "text": "The promise of fetch/third."},
        ],
    }


def test_events_are_lines_of_json_with_the_finding_as_text(command, verdicts, tmp_path):
    verdicts["produce/first", "reference"] = judged("produce/first", "reference", "violation", reason="lost")
    with (tmp_path / "events").open("wb") as file:
        _, out, _ = command("run", "--seed", "7", "--events", str(file.fileno()))
    events = [json.loads(line) for line in (tmp_path / "events").read_text().splitlines()]
    assert out == ""
    assert [event["event"] for event in events][:3] == ["run-started", "target-starting", "target-started"]
    first = next(event for event in events if event["event"] == "requirement-judged")
    assert (first["standing"], first["text"].splitlines()[0]) == (
        "violation",
        "✘ violation produce/first  on reference",
    )


@pytest.mark.parametrize("verdict", ["not-applicable", "unknown", "violation"])
def test_texts_of_a_verdict_are_escaped_for_pytest(command, verdicts, tmp_path, verdict):
    """The pytest plugin passes the reason to pytest, and pytest escapes nothing."""
    hostile = "red \x1b[31m\nFAILED \x9b2J " + "x" * 10_000
    verdicts["produce/first", "reference"] = judged("produce/first", "reference", verdict, reason=hostile)
    with (tmp_path / "events").open("wb") as file:
        command("run", "--seed", "7", "--events", str(file.fileno()), "produce/first")
    events = [json.loads(line) for line in (tmp_path / "events").read_text().splitlines()]
    (event,) = (event for event in events if event["event"] == "requirement-judged")
    assert event["reason"].startswith(r"red \x1b[31m FAILED \x9b2J xxx")
    assert len(event["reason"]) < 5_000
    assert not {"\x1b", "\x9b"} & {*event["reason"], *event["text"]}


def test_requirements(command):
    check("requirements", *command("requirements"))
    check("requirements-markdown", *command("requirements", "--markdown", "fetch"))
    objects = json.loads(command("requirements", "--json", "fetch/fourth")[1])
    assert [(each["id"], each["level"], each["sources"][0]["url"]) for each in objects] == [
        ("fetch/fourth", "MAY", "https://kafka.apache.org/protocol")
    ]


JUDGEMENTS = {
    "ok": Judgement(3, 4, ()),
    "violation": Judgement(
        3, 4, (Anomaly("lost-write", Verdict.VIOLATION, 1, (Evidence((1,), "t", 0, 2, 5, "gone"),)),)
    ),
    "unknown": Judgement(0, 0, (), ("nothing was read",)),
}


@pytest.fixture
def judged_as(monkeypatch):
    """Return a function that sets the verdict of every history."""
    return lambda judgement: monkeypatch.setattr("linearizability.check.judge", lambda path: judgement)


@pytest.mark.parametrize(("verdict", "code"), [("ok", 0), ("violation", 1), ("unknown", 6)])
def test_check(command, judged_as, verdict, code):
    Path("run").mkdir()
    Path("run/run.json").touch()
    judged_as(JUDGEMENTS[verdict])
    shown = command("check", "run")
    assert shown[0] == code
    check(f"check-{verdict}", *shown)
    code_again, out, err = command("check", "run", "--json")
    assert (code_again, json.loads(out), err) == (code, JUDGEMENTS[verdict].as_json(), "")


def test_check_of_a_run_combines_its_histories(command, judged_as):
    for name in ("a", "b"):
        Path("run/histories", name).mkdir(parents=True)
        Path("run/histories", name, "run.json").touch()
    Path("run/results.json").touch()
    judged_as(JUDGEMENTS["violation"])
    _, out, _ = command("check", "run", "--json")
    (lost,) = json.loads(out)["anomalies"]
    assert (lost["count"], [row["text"] for row in lost["evidence"]]) == (2, ["histories/a: gone", "histories/b: gone"])
    assert "histories/a" in command("check", "run")[1]


REGISTER = """\
INFO  jepsen.util - 0\t:invoke\t:write\t3
INFO  jepsen.util - 0\t:ok\t:write\t3
INFO  jepsen.util - 1\t:invoke\t:read\tnil
INFO  jepsen.util - 1\t:ok\t:read\t3
"""
QUEUE = """\
{:process 0, :type :invoke, :f :send, :value [[:send 4 70]]}
{:process 0, :type :ok, :f :send, :value [[:send 4 [0 70]]]}
{:process 1, :type :invoke, :f :send, :value [[:send 4 71]]}
{:process 1, :type :ok, :f :send, :value [[:send 4 [1 71]]]}
{:process 2, :type :invoke, :f :poll, :value [[:poll]]}
{:process 2, :type :ok, :f :poll, :value [[:poll {4 [[0 70] [1 71]]}]]}
"""


@pytest.mark.parametrize(
    ("name", "text", "options", "code"),
    [
        ("register-ok", REGISTER, [], 0),
        ("register-violation", REGISTER.replace(":read\t3", ":read\t4"), [], 1),
        ("register-unknown", REGISTER, ["--time-limit", "0"], 6),
        ("register-damaged", REGISTER + "INFO", [], 4),
        ("queue-ok", QUEUE, [], 0),
        ("queue-violation", QUEUE.replace("[0 70] [1", "[1"), [], 1),
        ("queue-unseen", QUEUE.replace(" [1 71]]}", "]}"), [], 6),
        ("queue-damaged", QUEUE.replace("[0 70] [1", "[0 seventy] [1"), [], 4),
        ("strange-file", "once upon a time", [], 4),
        ("file-by-spark", QUEUE, ["--engine", "spark"], 4),
    ],
)
def test_check_of_a_file(command, name, text, options, code):
    Path("history").write_text(text)
    shown = command("check", "history", *options)
    assert shown[0] == code
    check(f"check-{name}", *shown)
    code_again, out, err = command("check", "history", "--json", *options)
    assert (code_again, err) == (code, shown[2])
    if code in {0, 1, 6}:
        verdict = {0: "ok", 1: "violation", 6: "unknown"}[code]
        assert (json.loads(out)["verdict"], list(json.loads(out))[1:]) == (
            verdict,
            ["operations", "records", "anomalies", "reasons"],
        )


def test_export_and_import(command):
    Path("history.edn").write_text(QUEUE)
    assert command("export", "history.edn", "run") == (0, "run\n", "")
    assert command("export", "run", "text.ndjson") == (0, "text.ndjson\n", "")
    assert command("export", "text.ndjson", "again.ndjson")[0] == 0
    assert Path("again.ndjson").read_text() == Path("text.ndjson").read_text()
    outputs = {command("check", name, "--json")[1] for name in ("history.edn", "run", "text.ndjson")}
    assert len(outputs) == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["history.edn", "history.edn"], "history.edn: already exists; name another file or directory"),
        (["none", "run"], "none: no such directory"),
        (
            ["log", "run"],
            "log: a log of Jepsen against etcd: a register with compare-and-set, which is no Kafka history",
        ),
        (["history.edn", "none/x.ndjson"], "none/x.ndjson: cannot be written: No such file or directory"),
    ],
)
def test_export_of_an_unsupported_file(command, words, message):
    Path("history.edn").write_text(QUEUE)
    Path("log").write_text(REGISTER)
    code, out, err = command("export", *words)
    assert (code, out, err.count("\n")) == (4, "", 1)
    assert err.startswith(f"kafkatrial: {message}")


@pytest.mark.parametrize("words", [["--version"], ["--version", "run"]])
def test_the_version_is_that_of_the_distribution(command, words):
    code, out, err = command(*words)
    assert (code, err) == (0, "")
    assert out.startswith(f"kafkatrial {version('kafkatrial')}\nPython {platform.python_version()}, confluent-kafka ")
