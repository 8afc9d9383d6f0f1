"""Printed programs: they can be copied and compiled, whatever the width of the console."""

import io
from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest
from rich.console import Console
from rich.text import Text

from conformance.concurrent import program as concurrent
from conformance.sequential.program import program
from conformance.sequential.steps import Batch, CreateTopic, Fetch, Flaw, Produce, Record, Script
from conformance.trial.phased_clients import OneShotProducer, SendRecords
from conformance.trial.trial import Trial
from kafkatrial.console import show
from linearizability.finding import Standing
from reports.junit import write_junit
from reports.program import render_command, render_program
from reports.terminal import as_text, render_finding

STEPS = Script((CreateTopic(), *(Fetch(offset) for offset in range(30)),
               Produce((Batch((Record(bytes(range(256))),), flaw=Flaw.WRONG_CRC),))))  # fmt: skip
PROGRAMS = [
    program(STEPS, requirement="produce/corrupt-batch-is-rejected", target="reference", nodes=3),
    concurrent.program_of(
        Trial(clients=tuple(OneShotProducer(steady=(SendRecords(n),) * 9) for n in range(9)), requirement="a/b"),
        "simulation",
    ),
]
BEFORE, AFTER = "  The shortest script that shows it:\n", "\n  Kept in "


def violation(results, source):
    """Return the violation of the sample results with `source` as its program, and the violated requirement."""
    (outcome,) = [found for found in results.outcomes if found.standing is Standing.VIOLATION][:1]
    return replace(outcome, program=source), results.requirement(outcome.requirement)


def copied(text):
    """Return the program in a printed finding, without trailing spaces."""
    text = "\n".join(map(str.rstrip, text.splitlines()))
    return text.partition(BEFORE)[2].partition(AFTER)[0]


@pytest.mark.parametrize("source", PROGRAMS)
@pytest.mark.parametrize("width", [40, 400])
@pytest.mark.parametrize("is_terminal", [False, True])
def test_console_prints_the_program_unchanged(results, source, width, is_terminal):
    console = Console(file=io.StringIO(), width=width, force_terminal=is_terminal, color_system=None)
    show(console, render_finding(*violation(results, source)))
    shown = copied(console.file.getvalue())
    assert shown == source.rstrip()
    compile(shown, "copied", "exec")


@pytest.mark.parametrize("source", PROGRAMS)
def test_pytest_and_junit_print_the_program_unchanged(results, source, tmp_path):
    outcome, requirement = violation(results, source)
    assert copied(as_text(render_finding(outcome, requirement), width=40)) == source.rstrip()
    outcomes = tuple(outcome if found.standing is Standing.VIOLATION else found for found in results.outcomes)
    path = write_junit(replace(results, outcomes=outcomes), tmp_path)
    texts = [element.text for element in ET.parse(path).getroot().iter("failure")]
    assert source.rstrip() in [copied(text) for text in texts]


def test_colour_does_not_change_the_text():
    console = Console(file=io.StringIO(), width=30, force_terminal=True, color_system="truecolor")
    console.print(render_program(PROGRAMS[0]), crop=False)
    assert Text.from_ansi(console.file.getvalue()).plain.rstrip() == PROGRAMS[0].rstrip()


def test_command_is_one_line():
    command = "kafkatrial run " + "--target reference " * 9
    assert as_text(render_command("Reproduce: ", command), width=40) == f"Reproduce: {command}".rstrip()
