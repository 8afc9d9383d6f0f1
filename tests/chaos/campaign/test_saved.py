"""A failure is saved once and loaded unchanged; its program runs on its own and reports whether it still fails."""

import subprocess
import sys
from dataclasses import replace

import pytest

from chaos.campaign.counterexample import FILE_NAME, Counterexample, program_of
from chaos.campaign.saved import SavedFailureError, load_failure, load_failures, save
from conformance.trial.document import document
from conformance.trial.trial import Trial
from fixtures.clients.steps import Producer, SendBatches
from fixtures.faults import Kill, Role, Timed

DEFECT = "acknowledge-before-replication"
SCRIPT = Trial(
    clients=(Producer(steps=(SendBatches(batches=5),)),),
    schedule=(Timed(at_ms=10, fault=Kill(Role.LEADER), for_ms=500),),
)
FOUND = Counterexample(SCRIPT, "lost-write", 'a "value" \\ that """ is gone', seed=7, defect=DEFECT, at_ms=1_234)


def test_a_saved_failure_is_loaded_unchanged(tmp_path):
    directory = save(tmp_path, FOUND)
    (saved,) = load_failures(tmp_path)
    assert (saved.directory, saved.trial, saved.name, saved.defect) == (directory, SCRIPT, "lost-write", DEFECT)


def test_equal_failures_are_saved_once_and_different_failures_separately(tmp_path):
    different = (replace(FOUND, trial=Trial()), replace(FOUND, defect=""), replace(FOUND, name="duplicate"))
    for counterexample in (FOUND, FOUND, *different):
        save(tmp_path, counterexample)
    assert len(load_failures(tmp_path)) == 4


def test_a_missing_directory_has_no_failures(tmp_path):
    assert load_failures(tmp_path / "nowhere") == ()


@pytest.mark.parametrize("content", ["", "{}", document(Trial(), {}), document(1, {"name": "lost-write"}), "\x00"])
def test_an_unreadable_file_is_an_error_of_one_line(tmp_path, content):
    file = save(tmp_path, FOUND) / FILE_NAME
    file.write_text(content)
    with pytest.raises(SavedFailureError) as raised:
        load_failures(tmp_path)
    assert str(file) in str(raised.value)
    assert "\n" not in str(raised.value)


def run_program(tmp_path, counterexample):
    file = tmp_path / "program.py"
    file.write_text(program_of(counterexample))
    return run_file(tmp_path, file)


def run_file(tmp_path, file):
    done = subprocess.run([sys.executable, file], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert not done.stderr
    return done.returncode, done.stdout


def test_a_program_prints_the_violation_and_exits_1(tmp_path):
    code, output = run_program(tmp_path, FOUND)
    assert code == 1
    assert output.startswith("simulation: violation\nviolation acknowledged-is-committed: ")
    assert "digest" in output


def test_a_program_without_the_defect_exits_0(tmp_path):
    code, output = run_program(tmp_path, replace(FOUND, defect=""))
    assert (code, output.splitlines()[0]) == (0, "simulation: ok")


def test_a_program_names_the_fault_times_the_seed_and_the_command():
    program = program_of(FOUND)
    assert "Timed(at_ms=10, fault=Kill(node=Role.LEADER), for_ms=500)" in program
    assert f"kafkatrial simulate --seeds 7 --defect {DEFECT}" in program
    assert len(program.splitlines()) < 40


def test_the_saved_program_runs_the_saved_trial_even_after_an_edit_of_its_file(tmp_path):
    directory = save(tmp_path, FOUND)
    program = directory / "program.py"
    assert "Trial(" not in program.read_text()
    assert FOUND.name in program.read_text()
    assert run_file(tmp_path, program)[0] == 1
    file = directory / FILE_NAME
    file.write_text(file.read_text().replace(f'"defect": "{DEFECT}"', '"defect": ""'))
    assert run_file(tmp_path, program)[0] == 0


def test_a_failure_is_loaded_with_its_target(tmp_path):
    counterexample = replace(FOUND, target="apache-kafka:4.3.1", defect="", seed=9, is_confirmed=False)
    directory = save(tmp_path, counterexample)
    saved = load_failure(directory)
    assert (saved.target, saved.trial, saved.name) == (counterexample.target, SCRIPT, "lost-write")
    assert directory.name.startswith("apache-kafka-4.3.1-lost-write-")
    assert "run_program(trial, target='apache-kafka:4.3.1', name='lost-write')" in program_of(counterexample)
    with pytest.raises(SavedFailureError, match="nowhere: not the directory of a saved failure"):
        load_failure(tmp_path / "nowhere")
