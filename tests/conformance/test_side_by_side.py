"""Requirements that share a cluster: several are checked at a time; one that is not ok is checked again, alone."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import strategies as st

from conformance.engine import run_requirements
from conformance.events import RequirementStarted
from conformance.expectations import ExpectedViolation
from conformance.registry import REQUIREMENTS
from conformance.search import scripts_of
from conformance.side_by_side import SideBySide, shares_a_cluster
from fixtures.targets.target import Capability, Node, TargetError
from linearizability.finding import Finding
from linearizability.judgement import Verdict
from tests.conformance.fakes import FakeTarget, finds, shared
from tests.conformance.test_engine import OK, PROFILE, VIOLATION, judged, run

OK_EVERYWHERE = finds(OK)
WAIT_S = 30


class Checks:
    """Check that returns or raises the nth finding in its nth call, and then always the last. It keeps the contexts."""

    def __init__(self, *findings):
        self.findings = findings
        self.contexts = []

    def __call__(self, context):
        self.contexts.append(context)
        found = self.findings[min(len(self.contexts), len(self.findings)) - 1]
        if isinstance(found, BaseException):
            raise found
        return {target.name: found for target in context.targets}


def test_several_are_checked_at_a_time(tmp_path):
    together = threading.Barrier(3)

    def check(context):
        together.wait(WAIT_S)
        return OK_EVERYWHERE(context)

    found = judged(run([shared(check, f"area/{name}") for name in "abc"], tmp_path))
    assert [(each.requirement, each.verdict) for each in found] == [(f"area/{name}", "ok") for name in "abc"]


@pytest.mark.parametrize("alone", ["needs", "stage", "expected"])
def test_one_at_a_time_if_a_check_breaks_nodes_or_time_is_virtual_or_a_violation_is_expected(alone, tmp_path):
    running = threading.Lock()

    def check(context):
        assert running.acquire(blocking=False)
        threading.Event().wait(0.01)
        running.release()
        return OK_EVERYWHERE(context)

    control = frozenset({Capability.PROCESS_CONTROL})
    target = FakeTarget(capabilities=control)
    if alone == "stage":
        target.stage = object()  # any stage but that of real threads
    rows = [shared(check, f"area/{n}", needs=control if alone == "needs" else frozenset()) for n in range(5)]
    known = None
    if alone == "expected":
        known = {target.name: {row.id: ExpectedViolation(row.id, "known", "") for row in rows}}
    assert [each.verdict for each in judged(run(rows, tmp_path, [target], expectations=known))] == ["ok"] * 5


def test_a_violation_is_confirmed_alone_with_the_same_scripts(tmp_path):
    checks = Checks(VIOLATION, VIOLATION)
    found = judged(run([shared(checks, "area/bad"), shared(OK_EVERYWHERE, "area/good")], tmp_path))
    assert [(each.requirement, each.verdict) for each in found] == [("area/good", "ok"), ("area/bad", "violation")]
    beside, alone = checks.contexts
    assert beside.seed == alone.seed
    assert (beside.shrink_seconds, alone.shrink_seconds) == (0, 1)
    assert len(list((tmp_path / "failures").iterdir())) == 1


def test_a_violation_that_is_not_reproduced_alone_is_unknown(tmp_path):
    found = judged(run([shared(Checks(VIOLATION, OK), "area/race"), shared(OK_EVERYWHERE, "area/good")], tmp_path))
    assert found[1].verdict == Verdict.UNKNOWN
    assert found[1].reason == "not reproduced alone; while other requirements were checked, it was 1, not 2"


def test_a_rare_violation_is_reproduced_by_a_later_check_alone(tmp_path):
    checks = Checks(VIOLATION, OK, OK, OK, VIOLATION)
    found = judged(run([shared(checks, "area/rare"), shared(OK_EVERYWHERE, "area/good")], tmp_path))
    assert [(each.requirement, each.verdict) for each in found] == [("area/good", "ok"), ("area/rare", "violation")]
    assert len(checks.contexts) == 5
    assert len({context.seed for context in checks.contexts}) == 1


def test_a_violation_is_reproduced_beside_the_other_targets_that_are_ok(tmp_path):
    """The responses of one target may show the violation of another one."""
    targets = [FakeTarget(name) for name in ("rare:1", "fine:1", "bad:1")]
    contexts = []

    def check(context):
        contexts.append(context)
        is_rare = len(contexts) in {1, 3} and len(context.targets) > 1
        found = {"rare:1": VIOLATION if is_rare else OK, "fine:1": OK, "bad:1": VIOLATION}
        return {target.name: found[target.name] for target in context.targets}

    rows = [shared(check, "area/rare"), shared(OK_EVERYWHERE, "area/good")]
    found = {
        each.target: each.verdict for each in judged(run(rows, tmp_path, targets)) if each.requirement == rows[0].id
    }
    assert found == {"rare:1": "violation", "fine:1": "ok", "bad:1": "violation"}
    assert [[target.name for target in context.targets] for context in contexts[2:]] == [["rare:1", "fine:1"]]


def test_an_error_while_a_violation_is_reproduced_leaves_the_findings_of_other_targets(tmp_path):
    targets = [FakeTarget(name) for name in ("rare:1", "bad:1")]
    for target in targets:
        target.interference = ""
    contexts = []

    def check(context):
        contexts.append(context)
        if len(contexts) > 2:
            targets[0].interference = "the links have failed"
            raise TargetError("no response")
        return {"rare:1": VIOLATION if len(contexts) == 1 else OK, "bad:1": VIOLATION}

    rows = [shared(check, "area/rare"), shared(OK_EVERYWHERE, "area/good")]
    found = {
        each.target: each.verdict for each in judged(run(rows, tmp_path, targets)) if each.requirement == rows[0].id
    }
    assert found == {"rare:1": "unknown", "bad:1": "violation"}


@pytest.mark.parametrize(
    "first", [Finding(Verdict.UNKNOWN, "no coordinator"), ValueError("a bug"), KeyboardInterrupt()]
)
def test_after_any_other_result_the_check_alone_decides(first, tmp_path):
    found = judged(run([shared(Checks(first, OK), "area/slow"), shared(OK_EVERYWHERE, "area/good")], tmp_path))
    assert [each.verdict for each in found] == ["ok", "ok"]


def test_an_internal_error_is_raised_by_the_check_alone(tmp_path):
    bug = ValueError("a bug")
    with pytest.raises(ValueError, match="a bug"):
        run([shared(Checks(bug, bug), "area/broken"), shared(OK_EVERYWHERE, "area/good")], tmp_path)


def test_no_check_begins_beside_others_on_a_target_that_is_down(tmp_path):
    begun = []

    def check(context):
        is_alone = context.shrink_seconds > 0
        begun.append((context.requirement_id, is_alone))
        return {target.name: OK if is_alone else Finding(Verdict.UNKNOWN) for target in context.targets}

    rows = [shared(check, f"area/{n:02}") for n in range(20)]
    found = judged(run(rows, tmp_path, [FakeTarget(nodes=(Node(1, "127.0.0.1", 1),))]))
    assert [each.requirement for each in found] == [row.id for row in rows]
    beside = {name for name, is_alone in begun if not is_alone}
    assert 1 <= len(beside) <= 4
    assert {name for name, is_alone in begun if is_alone} == {row.id for row in rows}
    reason = "not reproduced alone; while other requirements were checked, it went down"
    assert {each.requirement for each in found if each.verdict is Verdict.UNKNOWN and each.reason == reason} == beside


def test_checks_end_without_an_error_if_the_run_is_interrupted(tmp_path):
    """The checks fail after their target was stopped. They do not connect to its nodes, which are unknown then.

    pytest fails the test if a thread ends with an unhandled error.
    """
    target = StoppedTarget()

    def check(context):
        target.stopped.wait(WAIT_S)
        context.script_ran(target.name, 1, 3)

    before = set(threading.enumerate())
    rows = [shared(check, "area/one"), shared(check, "area/two")]
    events = run_requirements([target], rows, seed=7, profile=PROFILE, run_dir=tmp_path)
    next(event for event in events if isinstance(event, RequirementStarted))
    assert not events.throw(KeyboardInterrupt()).complete
    assert not set(threading.enumerate()) - before, "threads of checks are still running"


class StoppedTarget(FakeTarget):
    """Target whose nodes are unknown after it was stopped, like a cluster that kafkatrial starts."""

    def __init__(self):
        self.stopped = threading.Event()
        super().__init__()

    @property
    def nodes(self):
        if self.stopped.is_set():
            raise TargetError(f"{self.name} is not started")
        return ()

    @nodes.setter
    def nodes(self, nodes):
        assert not nodes

    def stop(self):
        self.stopped.set()


def test_half_of_the_requirements_share_a_cluster_and_none_of_those_that_break_one():
    sharing = [each for each in REQUIREMENTS if shares_a_cluster(each)]
    assert len(sharing) > len(REQUIREMENTS) / 2
    assert not {"storage", "membership"} & {each.area for each in sharing}
    assert "negotiation/broken-requests-are-survived" not in {each.id for each in sharing}


def test_threads_generate_the_same_scripts():
    strategies = [st.lists(st.integers(0, n) | st.text(max_size=n), max_size=9).map(tuple) for n in range(1, 9)]

    def scripts(n):
        return scripts_of(strategies[n], seed_value=n, scripts_max=40)

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(scripts, range(8))) == [scripts(n) for n in range(8)]


def test_no_check_begins_after_an_interruption():
    interrupted = threading.Event()
    interrupted.set()
    checks = SideBySide([(REQUIREMENTS[0], None)], on_done=lambda: None, interrupted=interrupted)
    for thread in checks.start():
        thread.join()
    assert not checks.results
