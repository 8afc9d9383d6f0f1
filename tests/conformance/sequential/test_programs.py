"""Printed scripts evaluate to the same scripts, and printed programs run them."""

import ast
import os
import re
import runpy
import subprocess
import sys
from contextlib import nullcontext

import pytest
from hypothesis import given
from hypothesis import strategies as st

import chaos.targets  # noqa: F401 - registers the kinds of targets `simulation` and `defective`
from conformance.concurrent.program import program_of
from conformance.sequential import program as program_module
from conformance.sequential import steps
from conformance.sequential.program import program, source
from conformance.sequential.steps import (
    Batch,
    CreateTopic,
    ElectionType,
    ElectLeaders,
    Eventually,
    Fetch,
    Flaw,
    IncrementalAlterConfigs,
    ListReassignments,
    On,
    Operation,
    Produce,
    RawBytes,
    Record,
    Script,
)
from conformance.sequential.strategies import batches, many, producer, produces, script, several
from conformance.trial.trial import ClusterSettings, Topic, Trial
from fixtures.targets.catalogue import target_kinds
from fixtures.targets.recipe_file import VARIABLE
from tests.conformance.tampering_proxy import TamperingProxy, api

NAMES = {name: getattr(steps, name) for name in steps.__all__}

scripts = script(
    st.builds(CreateTopic, partitions=st.integers(1, 3), validate_only=st.booleans()),
    many(produces(batches(flaw=st.none() | st.sampled_from(Flaw)), acks=st.sampled_from([-1, 0, 1])), at_least=0),
    producer(several("next", "gap", "again 2", at_most=3)),
    st.builds(Fetch, st.integers(0, 9), version=st.none() | st.integers(0, 20)),
    st.builds(
        On, st.integers(1, 3), st.sampled_from([ElectLeaders(election=ElectionType.UNCLEAN), ListReassignments()])
    ),
    st.sampled_from(Operation).map(lambda kind: Eventually(IncrementalAlterConfigs((("cleanup.policy", kind, "x"),)))),
    st.binary(max_size=50).map(RawBytes),
)


@given(scripts)
def test_source_evaluates_to_the_same_script(value):
    assert eval(source(value), NAMES) == value


@given(scripts)
def test_a_program_is_python_that_assigns_the_script(value):
    text = program(value, requirement="produce/offsets-are-dense", target="reference", nodes=1)
    assigned = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Assign)]
    assert eval(ast.unparse(assigned[0].value), NAMES) == value


def test_defaults_are_left_out():
    value = Script((CreateTopic(), Produce((Batch((Record(b"a"),)),)), Fetch(3)))
    assert source(value) == "Script((CreateTopic(), Produce((Batch((Record(b'a'),)),)), Fetch(offset=3)))"


def test_a_long_content_of_one_repeated_byte_is_printed_as_a_product():
    assert source(Record(b"x" * 500)) == "Record(b'x' * 500)"


def test_many_equal_records_are_printed_as_a_product():
    batch = Batch((Record(b"x"),) * 600)
    assert source(batch) == "Batch((Record(b'x'),) * 600)"
    assert eval(source(batch), NAMES) == batch


def test_a_long_script_takes_a_line_per_step():
    value = Script((CreateTopic(), *(Fetch(offset) for offset in range(9))))
    assert source(value).splitlines()[2:4] == ["        CreateTopic(),", "        Fetch(),"]


SCRIPT = Script((CreateTopic(), Produce((Batch((Record(b"a"),), flaw=Flaw.WRONG_CRC),)), Fetch(0)))


def test_a_program_runs_its_script_again(broker, tmp_path):
    """The program exits with 0, because every response of a correct broker is as the model expects."""
    path = tmp_path / "repro.py"
    path.write_text(program(SCRIPT, requirement="produce/corrupt-batch-is-rejected", target="reference", nodes=1))
    address = f"bootstrap:{broker.nodes[0].host}:{broker.nodes[0].port}"
    ran = subprocess.run([sys.executable, path, address], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert "2. Produce(" in ran.stdout
    assert "error CORRUPT_MESSAGE" in ran.stdout


@pytest.mark.parametrize("target", ["simulation", "defective:flush-no-directory"])
def test_a_program_runs_on_every_kind_of_target(tmp_path, target):
    path = tmp_path / "repro.py"
    path.write_text(program(SCRIPT, requirement="produce/corrupt-batch-is-rejected", target=target, nodes=1))
    ran = subprocess.run([sys.executable, path], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert f"on {target}" in ran.stdout


def test_a_program_has_the_same_kinds_of_targets_as_a_run(tmp_path):
    path = tmp_path / "repro.py"
    path.write_text(program(SCRIPT, requirement="a/b", target="no-such-target", nodes=1))
    ran = subprocess.run([sys.executable, path], capture_output=True, text=True, check=False)
    known = ran.stderr.partition("(known: ")[2].partition(")")[0].split(", ")
    assert set(known) == {row.kind for row in target_kinds()} >= {"simulation", "defective", "reference"}


def test_a_program_whose_script_ends_the_broker_exits_with_1(broker, monkeypatch, capsys):
    def ends(request, forward):
        if api(request) != "Fetch":
            return forward(request)
        proxy.__exit__()
        return None

    proxy = TamperingProxy(broker, ends).__enter__()
    monkeypatch.setattr(program_module, "target_of_program", lambda *_, **__: nullcontext(proxy))
    monkeypatch.setattr("conformance.sequential.timeouts.READY_TIMEOUT_S", 1.0)
    monkeypatch.setattr(sys, "argv", ["repro.py"])
    with pytest.raises(SystemExit) as ended:
        program_module.show(SCRIPT, requirement="a/b", target="reference", nodes=1)
    assert ended.value.code == 1
    *_, step, reason = capsys.readouterr().out.splitlines()
    assert step == "3. Fetch()"
    assert reason.startswith("   ! the broker went down: ")


def test_a_program_leaves_nothing_in_the_working_directory(tmp_path, monkeypatch):
    monkeypatch.delenv("HYPOTHESIS_STORAGE_DIRECTORY", raising=False)
    path = tmp_path / "repro.py"
    path.write_text(program(SCRIPT, requirement="a/b", target="bootstrap:127.0.0.1:9", nodes=1))
    assert subprocess.run([sys.executable, path], capture_output=True, check=False, cwd=tmp_path).returncode == 3
    assert [*tmp_path.iterdir()] == [path]


def test_a_program_escapes_what_a_broker_returned_or_logged(tmp_path):
    """If a broker does not start, the error contains its log. A response may contain any text."""
    text = "\\033]0;x\\007\\033[31m \\302\\2332J"
    table = f"""[targets.hostile]\nstart = ["sh", "-c", 'printf "ERROR {text}"; exit 3']\n"""
    (tmp_path / "brokers.toml").write_text(table)
    path = tmp_path / "repro.py"
    path.write_text(program(SCRIPT, requirement="a/b", target="hostile", nodes=1))
    environment = {**os.environ, VARIABLE: str(tmp_path / "brokers.toml")}
    ran = subprocess.run([sys.executable, path], capture_output=True, text=True, check=False, env=environment)
    assert (ran.returncode, ran.stdout) == (3, "")
    (line,) = ran.stderr.splitlines()
    assert r"ERROR \x1b]0;x\x07\x1b[31m \x9b2J" in line

    response = {"connection": "\x1b[31m\nforged: \u202e" + "x" * 10_000}
    step, shown, *_ = program_module.transcript(Script((Fetch(),)), [response], [{}])
    assert step == "1. Fetch()"
    assert shown.startswith(r"   connection \x1b[31m\nforged: \u202exxx")
    assert len(shown) < 5_000


@pytest.mark.parametrize(
    ("printed", "words"),
    [
        (lambda: program(SCRIPT, requirement="a/b", target="mybroker", nodes=1), []),
        (lambda: program_of(Trial(cluster=ClusterSettings(1), topics=(Topic(),), clients=()), "mybroker"), []),
        (lambda: program(SCRIPT, requirement="a/b", target="reference", nodes=1, others=["mybroker"]), ["mybroker"]),
    ],
    ids=["sequential", "concurrent", "of a comparison"],
)
@pytest.mark.parametrize("named", ["", "my brokers.toml"], ids=["default file", "named file"])
def test_a_program_knows_the_file_of_its_target(printed, words, named, tmp_path, monkeypatch, capsys):
    """The program runs in another directory, without the variable. If the file is gone, its error names the variable.

    `words` are the arguments of the program.
    """
    file = tmp_path / (named or "kafkatrial.toml")
    file.write_text("""[targets.mybroker]\nstart = ["sh", "-c", "exit 3"]\n""")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(VARIABLE, named)
    path = tmp_path / "repro.py"
    path.write_text(printed())

    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    monkeypatch.setattr(sys, "argv", ["repro.py", *words])
    for error in (
        r"mybroker did not start: node 1 ended ",
        rf"cannot read .* the variable {VARIABLE} may name another",
    ):
        monkeypatch.setenv(VARIABLE, "")
        with pytest.raises(SystemExit):
            runpy.run_path(str(path), run_name="__main__")
        assert re.search(error, capsys.readouterr().err)
        file.unlink(missing_ok=True)


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_a_program_whose_reader_ends_is_no_violation(tmp_path, encoding):
    script = Script((CreateTopic(), Produce((Batch((Record(b"a", headers=(("\u20ac", b""),)),)),)), Fetch()))
    path = tmp_path / "repro.py"
    path.write_text(program(script, requirement="a/b", target="simulation", nodes=1), encoding="utf-8")
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    ran = subprocess.run([sys.executable, path], capture_output=True, check=False, env=environment)
    assert ran.returncode == 0, ran.stderr
    assert "\u20ac".encode(encoding, "backslashreplace") in ran.stdout
    with subprocess.Popen([sys.executable, path], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        child.stdout.close()
        assert child.stderr.read() == b""
    assert child.returncode == 141  # 128 + SIGPIPE


def test_a_program_without_its_target_fails_with_one_line(tmp_path):
    path = tmp_path / "repro.py"
    path.write_text(program(Script((CreateTopic(),)), requirement="a/b", target="reference", nodes=1))
    for target, code in (("no-such-target", 4), ("bootstrap:127.0.0.1:9", 3)):
        ran = subprocess.run([sys.executable, path, target], capture_output=True, text=True, check=False)
        assert (ran.returncode, ran.stdout) == (code, "")
        (line,) = ran.stderr.splitlines()
        assert target.removeprefix("bootstrap:") in line
