"""Engine: events, verdicts, saved failures, and errors of targets and of checks."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading

import pytest

from conformance.engine import reproduce_command, run_requirements, seed_of
from conformance.events import RequirementJudged, RequirementStarted, RunEnded, RunStarted, ScriptRan, TargetStarted
from conformance.expectations import ExpectedViolation
from conformance.profiles import Profile
from conformance.registry import select
from fixtures.targets.catalogue import parse_target
from fixtures.targets.target import Capability, Node, TargetError
from linearizability.finding import Finding
from linearizability.judgement import Verdict
from tests.conformance.fakes import FakeTarget, finds, requirement

PROFILE = Profile("ci", scripts_max=3, shrink_seconds=1)
OK = Finding(Verdict.OK, scripts=3)
VIOLATION = Finding(
    Verdict.VIOLATION,
    "it was 1, not 2",
    scripts=2,
    expected="2",
    actual="1",
    program="print('again')\n",
    trial='{"trial": 1}\n',
    steps="1. Fetch()\n   error NONE",
)


def run(requirements, tmp_path, targets=None, **options):
    targets = [FakeTarget()] if targets is None else targets
    return list(run_requirements(targets, requirements, seed=7, profile=PROFILE, run_dir=tmp_path, **options))


def judged(events):
    return [event.finding for event in events if isinstance(event, RequirementJudged)]


def test_events_cover_the_run_from_start_to_end(tmp_path):
    target = FakeTarget()

    def check(context):
        context.script_ran(target.name, 1, 3)
        return {target.name: OK}

    events = run([requirement(check)], tmp_path, [target])
    kinds = [type(event) for event in events]
    assert kinds[0] is RunStarted
    assert kinds[-4:] == [RequirementStarted, ScriptRan, RequirementJudged, RunEnded]
    assert TargetStarted in kinds
    assert events[-1].complete
    assert (target.starts, target.stops) == (1, 1)
    assert judged(events)[0].verdict == "ok"
    assert all(json.dumps(event.as_json()) for event in events)


def test_each_check_has_the_profile_and_its_own_seed(tmp_path):
    seen = []

    def check(context):
        seen.append(context)
        return {target.name: OK for target in context.targets}

    run([requirement(check, "area/one"), requirement(check, "area/two")], tmp_path)
    assert [context.scripts_max for context in seen] == [3, 3]
    assert [context.seed for context in seen] == [seed_of(7, "area/one"), seed_of(7, "area/two")]
    assert len({path for context in seen for path in context.history_dirs.values()}) == 2


def test_a_violation_is_saved_with_the_files_that_reproduce_it(tmp_path):
    (event,) = judged(run([requirement(finds(VIOLATION))], tmp_path, [FakeTarget(nodes=())]))
    failure = tmp_path / "failures" / "1"
    assert event.failure_dir == str(failure)
    assert event.reproduce == "kafkatrial run --target fake:4.3.1 --nodes 0 --seed 7 area/words"
    document = json.loads((failure / "finding.json").read_text())
    assert document["actual"] == "1"
    assert list(document) == [
        "event", "requirement", "level", "target", "verdict", "expected_violation", "reason", "scripts", "seconds",
        "expected", "actual", "program", "flaky", "judgement", "differences", "reproduce", "failure_dir",
    ]  # fmt: skip
    readme = (failure / "README.md").read_text()
    assert event.reproduce in readme
    assert "kafkatrial replay trial.json" in readme
    assert (failure / "trial.json").read_text() == VIOLATION.trial
    assert (failure / "steps.txt").read_text() == f"{VIOLATION.steps}\n"
    assert "steps.txt has each request" in (failure / "README.md").read_text()
    assert (
        "again"
        in subprocess.run([sys.executable, failure / "repro.py"], check=True, capture_output=True, text=True).stdout
    )


@pytest.mark.parametrize(
    ("finding", "interference", "verdict", "reason"),
    [
        (VIOLATION, "", Verdict.VIOLATION, "it was 1, not 2"),
        (VIOLATION, "a link is cut", Verdict.UNKNOWN, "a link is cut; meanwhile: it was 1, not 2"),
        (OK, "a link is cut", Verdict.OK, ""),
    ],
)
def test_a_broker_is_not_to_blame_for_broken_links(finding, interference, verdict, reason, tmp_path):
    target = FakeTarget()
    target.interference = interference
    (event,) = judged(run([requirement(finds(finding))], tmp_path, [target]))
    assert (event.verdict, event.reason, bool(event.failure_dir)) == (verdict, reason, verdict == "violation")


def test_a_fault_that_cannot_be_healed_because_the_links_have_failed_ends_no_run(tmp_path):
    def check(context):
        raise TargetError("no response")

    target = FakeTarget()
    target.interference = "the links have failed"
    (event,) = judged(run([requirement(check)], tmp_path, [target]))
    assert (event.verdict, event.reason) == (Verdict.UNKNOWN, "the links have failed; meanwhile: no response")
    with pytest.raises(TargetError, match=r"^no response$"):
        run([requirement(check)], tmp_path)


def test_a_missing_capability_has_the_reason_of_the_target(tmp_path):
    target = FakeTarget()
    target.lacking = {Capability.LINK_FAULTS: "it has one node", Capability.DISK_FAULTS: "it has no disk"}
    row = requirement(finds(OK), needs=frozenset({Capability.LINK_FAULTS, Capability.TOPIC_ADMIN}))
    (event,) = judged(run([row], tmp_path, [target]))
    assert (event.verdict, event.reason) == (Verdict.NOT_APPLICABLE, "needs link-faults (it has one node)")


def test_reproduce_has_no_number_of_nodes_for_an_existing_cluster():
    assert (
        reproduce_command({"bootstrap:h:1": 3}, 5, "ci", "a/b") == "kafkatrial run --target bootstrap:h:1 --seed 5 a/b"
    )


def test_reproduce_names_both_targets_if_both_are_needed():
    command = reproduce_command({"reference": 1, "apache-kafka:4.3.1": 3}, 5, "ci", "a/b")
    assert command == "kafkatrial run --target reference --target apache-kafka:4.3.1 --seed 5 a/b"
    same = reproduce_command({"apache-kafka:3.9.2": 3, "apache-kafka:4.3.1": 3}, 5, "ci", "a/b")
    assert same == "kafkatrial run --target apache-kafka:3.9.2 --target apache-kafka:4.3.1 --nodes 3 --seed 5 a/b"


def test_reproduce_names_a_profile_that_is_not_the_default():
    assert reproduce_command({"reference": 1}, 5, "nightly", "a/b").endswith("--seed 5 --profile nightly a/b")


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"needs": frozenset({Capability.LINK_FAULTS})}, "needs link-faults"),
        ({"nodes_min": 3}, "needs 3 nodes, there are 0 (--nodes 3)"),
        ({"since": "4.4.0"}, "holds since Kafka 4.4.0, this is 4.3.1"),
        ({"until": "4.2"}, "holds until Kafka 4.2, this is 4.3.1"),
    ],
)
def test_a_requirement_that_does_not_apply_is_not_run(fields, reason, tmp_path):
    def check(context):
        raise AssertionError("ran")

    (event,) = judged(run([requirement(check, **fields)], tmp_path, [FakeTarget(nodes=())]))
    assert (event.verdict, event.reason) == (Verdict.NOT_APPLICABLE, reason)


@pytest.mark.parametrize("fields", [{"since": "4.3.1"}, {"until": "4.3"}, {"until": "4.3.1"}, {"since": "3.10"}])
def test_version_ranges_include_their_ends(fields, tmp_path):
    (event,) = judged(run([requirement(finds(OK), **fields)], tmp_path))
    assert event.verdict == "ok"


def test_every_requirement_applies_to_a_target_of_unknown_version(tmp_path):
    later = requirement(finds(OK), since="9.0")
    assert judged(run([later], tmp_path, [FakeTarget("reference")]))[0].verdict == "ok"


def test_each_target_gets_its_own_verdict(tmp_path):
    differing = requirement(lambda context: {"a:1": OK, "b:1": VIOLATION})
    events = judged(run([differing], tmp_path, [FakeTarget("a:1"), FakeTarget("b:1")]))
    assert [(event.target, event.verdict) for event in events] == [("a:1", "ok"), ("b:1", "violation")]


def expected(link="https://example.org/7"):
    return {"fake:4.3.1": {"area/words": ExpectedViolation("area/words", "known", link)}}


@pytest.mark.parametrize(("link", "reason"), [("https://example.org/7", "known, https://example.org/7"), ("", "known")])
def test_an_expected_violation_has_its_known_reason(tmp_path, link, reason):
    (event,) = judged(run([requirement(finds(VIOLATION))], tmp_path, expectations=expected(link)))
    assert event.expected_violation
    assert event.reason == f"it was 1, not 2 (expected: {reason})"


def test_an_expected_violation_that_does_not_happen_is_reported(tmp_path):
    (event,) = judged(run([requirement(finds(OK))], tmp_path, expectations=expected()))
    assert event.verdict == "ok"
    assert event.expected_violation
    assert "remove it from the expectations" in event.reason


def test_a_missing_api_is_not_applicable(tmp_path):
    finding = Finding(Verdict.NOT_APPLICABLE, "does not offer DeleteRecords")
    (event,) = judged(run([requirement(finds(finding))], tmp_path))
    assert (event.verdict, event.reason) == (Verdict.NOT_APPLICABLE, "does not offer DeleteRecords")


def test_a_target_that_does_not_start_stops_all_and_raises(tmp_path):
    targets = [FakeTarget("a"), FakeTarget("b", fails_to_start=True)]
    with pytest.raises(TargetError, match="b did not start"):
        run([requirement(finds(OK))], tmp_path, targets)
    assert [target.stops for target in targets] == [1, 1]


def test_a_requirement_that_an_expected_violation_blocks_is_expected_too(tmp_path):
    blocked = Finding(Verdict.UNKNOWN, "blocked by area/words", blocked_by="area/words")
    known = {"area/words": ExpectedViolation("area/words", "no idempotence", "")}
    rows = [requirement(finds(VIOLATION)), requirement(finds(blocked), "area/blocked")]
    for expectations, standings in ((known, ["expected violation"] * 2), ({}, ["violation", "unknown"])):
        found = judged(run(rows, tmp_path / standings[0], expectations={"fake:4.3.1": expectations}))
        assert [each.standing for each in found] == standings
    unknown = requirement(finds(Finding(Verdict.UNKNOWN, "no leader")))
    assert [each.standing for each in judged(run([unknown], tmp_path, expectations={"fake:4.3.1": known}))] == [
        "unknown"
    ]


def test_a_saved_failure_names_the_file_of_client_settings(tmp_path, monkeypatch):
    monkeypatch.setenv("KAFKATRIAL_CLIENT_SETTINGS", "/a b/client.toml")
    run([requirement(finds(VIOLATION))], tmp_path)
    readme = (tmp_path / "failures/1/README.md").read_text()
    assert "KAFKATRIAL_CLIENT_SETTINGS='/a b/client.toml' python repro.py" in readme


def test_an_error_in_a_check_is_raised_and_the_targets_are_stopped(tmp_path):
    target = FakeTarget()

    def check(context):
        raise ZeroDivisionError("a bug")

    events = run_requirements(
        [target], [requirement(check), requirement(finds(OK), "x/y")], seed=7, profile=PROFILE, run_dir=tmp_path
    )
    seen = []
    with pytest.raises(ZeroDivisionError):
        seen.extend(events)
    assert [(found.verdict, found.reason) for found in judged(seen)] == [
        (Verdict.UNKNOWN, "internal error: ZeroDivisionError: a bug"),
        (Verdict.OK, ""),
    ]
    assert target.stops == 1


def test_closing_the_event_stream_stops_the_targets(tmp_path):
    target = FakeTarget()
    events = run_requirements([target], [requirement(finds(OK))], seed=1, profile=PROFILE, run_dir=tmp_path)
    while not isinstance(next(events), RequirementStarted):
        pass
    events.close()
    assert target.stops == 1


def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def test_a_target_that_died_is_started_again(tmp_path):
    target = FakeTarget(nodes=(Node(1, "127.0.0.1", closed_port()),))
    run([requirement(finds(OK), "area/one"), requirement(finds(OK), "area/two")], tmp_path, [target])
    assert target.starts == 3


def test_later_verdicts_of_a_target_that_stays_down_are_unknown(tmp_path):
    target = FakeTarget(nodes=(Node(1, "127.0.0.1", closed_port()),))

    def check(context):
        target.fails_to_start = True
        return {target.name: OK}

    first, second = judged(run([requirement(check, "area/one"), requirement(check, "area/two")], tmp_path, [target]))
    assert first.verdict == "ok"
    assert second.verdict == "unknown"
    assert "went down and did not start again" in second.reason


def test_an_interrupted_run_stops_the_targets_and_is_not_complete(tmp_path):
    """SIGINT arrives while the engine waits for a check. The check ends when it next reports its progress."""
    target = FakeTarget()
    stopped = threading.Event()
    ended = threading.Event()
    target.stop = stopped.set

    def check(context):
        os.kill(os.getpid(), signal.SIGINT)
        stopped.wait(10)
        try:
            context.script_ran(target.name, 1, 3)
        finally:
            ended.set()

    events = run([requirement(check)], tmp_path, [target])
    assert isinstance(events[-1], RunEnded)
    assert not events[-1].complete
    assert not judged(events)
    assert ended.is_set()


def test_a_broker_that_is_killed_serves_the_next_requirement(tmp_path):
    """The reference broker is killed during one requirement, and restarted before the next one."""
    target = parse_target("reference", nodes=1, work_dir=tmp_path / "brokers")
    (dense,) = select(["produce/offsets-are-dense"])

    def kills(context):
        target.processes.kill(1)
        return dense.check(context)

    events = run_requirements(
        [target], [requirement(kills, "area/kills"), dense], seed=1, profile=PROFILE, run_dir=tmp_path / "run"
    )
    first, second = judged(events)
    assert (first.verdict, second.verdict) == ("unknown", "ok")
    assert "went down while script 1 ran" in first.reason
