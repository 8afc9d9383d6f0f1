"""`kafkatrial compare`: its files and exit codes, the baseline, and invalid input."""

import json
import re

import pytest

from conformance.differential import Cause, Comparer, Comparison, GroupedDifference, Occurrence
from conformance.sequential.judging import Rank
from fixtures.targets.target import TargetError
from kafkatrial.__main__ import exit_code
from kafkatrial.comparing import exit_code_of_comparison
from kafkatrial.difference_baseline import updated_baseline
from kafkatrial.exit_codes import ExitCode
from tests.conformance.fakes import FakeTarget

WORDS = ["compare", "--target", "a", "--target", "b", "--seed", "5", "--out", "run"]


def difference(rank=Rank.SEMANTIC, field="offset", **fields):
    return GroupedDifference(
        Cause(rank, "Fetch", field), Occurrence(2, "1", "\x1b[31m"), "print()\n", ("x/y",), 3, **fields
    )


def result(*differences, compared=3, skipped=(), unknown=()):
    names = {"x/y": compared} if compared else {}
    return Comparison({each.cause: each for each in differences}, names, dict(skipped), dict(unknown))


@pytest.fixture
def found(tmp_path, monkeypatch):
    """Replace the comparison, so that no target starts; return the list `[result]` or `[result, exception]`.

    The comparison returns this result, and then raises the exception, if there is one. A test can replace both.
    """
    found = [result(difference())]

    def run(self, _requirements):
        self.result = found[0]
        yield "x/y"
        if len(found) > 1:
            raise found[1]

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("kafkatrial.comparing.target_of_requirements", lambda name, nodes=None: FakeTarget(name))
    monkeypatch.setattr(Comparer, "run", run)
    return found


@pytest.mark.parametrize(
    ("outcome", "known", "code"),
    [
        (result(), (), ExitCode.OK),
        (result(difference()), (), ExitCode.VIOLATION),
        (result(difference(Rank.FATAL)), (), ExitCode.VIOLATION),
        (result(difference(is_flaky=True)), (), ExitCode.VIOLATION),
        (result(difference(Rank.COSMETIC)), (), ExitCode.OK),
        (result(difference()), ("semantic Fetch offset",), ExitCode.OK),
        (result(difference(), difference(field="records")), ("semantic Fetch offset",), ExitCode.VIOLATION),
        (result(unknown=[("x/y", "no leader")]), (), ExitCode.INCONCLUSIVE),
        (result(compared=0), (), ExitCode.NOTHING_RAN),
    ],
)
def test_only_new_differences_that_matter_fail(outcome, known, code):
    assert exit_code_of_comparison(outcome, dict.fromkeys(known, "")) is code


def test_differences_are_printed_and_kept_with_their_scripts(found, tmp_path, capsys):
    found[0] = result(difference(after=("fatal Produce connection",)), difference(Rank.COSMETIC, "size"))
    assert exit_code(WORDS) is ExitCode.VIOLATION
    out = capsys.readouterr().out
    assert re.match(r"seed 5, profile ci, scripts of \d+ requirements on a and b\nrun run\n", out)
    for line in (
        "semantic  Fetch offset  in 3 scripts of 1 requirement",
        "  b  step 2: \\x1b[31m",
        "  after fatal Produce connection",
        "3 scripts, 2 causes of differences, 1 new",
        "Exit code  1: a new difference",
        "Seed       5",
    ):
        assert line in out.splitlines()
    assert (tmp_path / "run" / "differences" / "1.py").read_text() == "print()\n"
    document = json.loads((tmp_path / "run" / "comparison.json").read_text())
    assert [(each["id"], each["here"], each["there"]) for each in document["differences"]] == [
        ("semantic Fetch offset", "1", "\x1b[31m"),
        ("cosmetic Fetch size", "1", "\x1b[31m"),
    ]
    assert (document["format"], document["complete"], document["exit_code"]) == (1, True, 1)


def test_a_consequence_is_listed_after_the_differences_without_an_earlier_cause():
    comparison = result(
        difference(field="a", after=("semantic Fetch b",)), difference(field="b"), difference(Rank.FATAL, "c")
    )
    assert [each.cause.field for each in comparison.in_order()] == ["c", "b", "a"]


def test_a_baseline_is_written_and_then_only_new_differences_fail(found, tmp_path, capsys):
    baseline = tmp_path / "known.json"
    found[0] = result(difference(), difference(Rank.COSMETIC, "size"))
    assert exit_code([*WORDS, "--baseline", "known.json", "--update-baseline"]) is ExitCode.OK
    assert "known.json: 1 added, 0 removed\nExit code  0: the baseline was updated\n" in capsys.readouterr().out
    assert json.loads(baseline.read_text()) == {
        "format": 1,
        "differences": [{"id": "semantic Fetch offset", "reason": ""}],
    }
    baseline.write_text(baseline.read_text().replace('"reason": ""', '"reason": "by design"'))
    assert exit_code([*WORDS[:-1], "again", "--baseline", "known.json"]) is ExitCode.OK
    assert "known: by design" in capsys.readouterr().out
    found[0] = result(difference(field="records"))
    assert exit_code([*WORDS[:-1], "third", "--baseline", "known.json"]) is ExitCode.VIOLATION
    assert "no longer found: semantic Fetch offset" in capsys.readouterr().out


def test_an_update_keeps_reasons_and_removes_differences_only_after_a_whole_comparison():
    known = {"a": "because", "b": "gone"}
    assert updated_baseline(known, {"a", "c"}, is_whole=True) == {"a": "because", "c": ""}
    assert updated_baseline(known, {"a", "c"}, is_whole=False) == {"a": "because", "b": "gone", "c": ""}


@pytest.mark.parametrize("kind", ["skipped", "unknown"])
def test_an_update_without_results_of_all_scripts_removes_nothing(found, tmp_path, capsys, kind):
    baseline = tmp_path / "known.json"
    baseline.write_text('{"format": 1, "differences": [{"id": "semantic Fetch offset", "reason": "by design"}]}')
    found[0] = result(difference(field="records"), **{kind: [("x/z", "no leader")]})
    exit_code([*WORDS, "--baseline", "known.json", "--update-baseline"])
    kept = {each["id"]: each["reason"] for each in json.loads(baseline.read_text())["differences"]}
    assert kept == {"semantic Fetch offset": "by design", "semantic Fetch records": ""}
    assert "no longer found" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("raised", "code"),
    [(KeyboardInterrupt(), ExitCode.INTERRUPTED), (TargetError("b did not start again"), ExitCode.INTERNAL)],
)
def test_differences_found_before_an_abort_are_kept(found, tmp_path, capsys, raised, code):
    found.append(raised)
    assert exit_code([*WORDS, "--baseline", "known.json", "--update-baseline"]) is code
    document = json.loads((tmp_path / "run" / "comparison.json").read_text())
    assert (document["complete"], document["exit_code"], len(document["differences"])) == (False, int(code), 1)
    assert not (tmp_path / "known.json").exists()
    assert len(capsys.readouterr().err.splitlines()) == 1


@pytest.mark.parametrize(
    ("rank", "known", "code"),
    [
        (Rank.SEMANTIC, (), ExitCode.VIOLATION),
        (Rank.SEMANTIC, ("semantic Fetch offset",), ExitCode.INTERRUPTED),
        (Rank.COSMETIC, (), ExitCode.INTERRUPTED),
    ],
)
def test_an_interruption_after_a_new_difference_is_a_violation(found, tmp_path, capsys, rank, known, code):
    baseline = {"format": 1, "differences": [{"id": name} for name in known]}
    (tmp_path / "known.json").write_text(json.dumps(baseline))
    found[:] = [result(difference(rank)), KeyboardInterrupt()]
    assert exit_code([*WORDS, "--baseline", "known.json"]) is code
    document = json.loads((tmp_path / "run" / "comparison.json").read_text())
    assert (document["complete"], document["exit_code"]) == (False, int(code))
    shown = capsys.readouterr()
    assert f"Exit code  {int(code)}: " in shown.out
    assert shown.err == "kafkatrial: interrupted; the clusters are stopped\n"


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ([], "two different targets are compared; give --target twice"),
        (["--target", "a", "--target", "a"], "two different targets are compared"),
        (["--target", "a", "--target", "b", "--target", "c"], "two different targets are compared"),
        (["--target", "a", "--target", "b", "--profile", "x"], "--profile: no profile x; there are ci, nightly"),
        (["--target", "a", "--target", "b", "--update-baseline"], "--update-baseline needs --baseline FILE"),
        (["--target", "a", "--target", "b", "--baseline", "no.json"], "no.json: there is no such baseline; --update"),
        (["--target", "a", "--target", "b", "--baseline", "bad.json"], "bad.json: not a baseline of format 1: format"),
        (["--target", "a", "--target", "b", "prodoce"], "prodoce: no requirement and no area of that name"),
    ],
)
@pytest.mark.usefixtures("found")
def test_invalid_input_is_reported_in_one_line(tmp_path, capsys, words, line):
    (tmp_path / "bad.json").write_text('{"format": 2, "differences": []}')
    assert exit_code(["compare", *words]) is ExitCode.USAGE
    (message,) = capsys.readouterr().err.splitlines()
    assert line in message
    assert not (tmp_path / ".kafkatrial").exists()


def test_a_broker_over_sockets_responds_as_in_the_simulation(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words = ["compare", "--target", "simulation", "--target", "reference", "--nodes", "1", "--seed", "1"]
    assert exit_code([*words, "offsets/unknown-partition-is-rejected"]) is ExitCode.OK
    assert "0 causes of differences" in capsys.readouterr().out
