"""Help texts of all commands, compared with golden files. This command rewrites the files:

UPDATE_GOLDEN=1 .venv/bin/pytest -n 0 tests/kafkatrial/test_help.py
"""

import os
import re
from pathlib import Path

import pytest
import typer

from kafkatrial import commands
from kafkatrial.app import _build_app, run_command
from kafkatrial.commands.broker import run_broker

GOLDEN = Path(__file__).parent / "golden" / "help"
COMMANDS = sorted(
    module.stem.replace("_", "-")
    for module in Path(commands.__file__).parent.glob("*.py")
    if module.stem not in {"__init__", "engine", "help_format"}  # these modules are not commands
)
SUBCOMMANDS = ["expectations update", "targets install", "targets probe"]


@pytest.fixture
def help_of(capsys, monkeypatch):
    """Return a function that returns the help of a command at 80 columns, without trailing spaces."""
    monkeypatch.setenv("COLUMNS", "80")

    def run(command):
        try:
            assert run_command([*command.split(), "--help"]) == 0
        except SystemExit as end:  # raised by argparse, which parses the arguments of `broker`
            assert end.code == 0  # noqa: PT017
        lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
        return "\n".join(lines).strip("\n") + "\n"

    return run


@pytest.mark.parametrize("command", ["", *COMMANDS, *SUBCOMMANDS])
def test_help_is_the_golden_copy(help_of, command):
    path = GOLDEN / f"{command.replace(' ', '-') or 'kafkatrial'}.txt"
    text = help_of(command)
    if os.environ.get("UPDATE_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    assert text == path.read_text()


def test_every_golden_copy_belongs_to_a_command():
    names = {"kafkatrial", *COMMANDS, *(name.replace(" ", "-") for name in SUBCOMMANDS)}
    assert {path.stem for path in GOLDEN.iterdir()} == names


@pytest.mark.parametrize("command", ["", *COMMANDS, *SUBCOMMANDS])
def test_help_ends_with_examples_of_the_command(help_of, command):
    examples = help_of(command).partition("Examples:\n")[2].splitlines()
    assert examples
    assert all(example.strip().startswith(f"kafkatrial {command}".strip()) for example in examples)


def test_the_help_of_every_parameter_is_a_sentence():
    texts = list(parameter_helps(typer.main.get_command(_build_app())))
    assert len(texts) > 80
    assert [text for text in texts if not re.fullmatch(r"[A-Z].*\.", text)] == []


def parameter_helps(command):
    hidden = {"install_completion", "show_completion"}  # Typer's own
    for parameter in command.params:
        if parameter.name not in hidden and not getattr(parameter, "hidden", False):
            yield parameter.help or f"{command.name} {parameter.name}: no help"
    for child in getattr(command, "commands", {}).values():
        yield from parameter_helps(child)


def test_help_lists_every_command_by_the_name_that_runs_it(help_of):
    panels = help_of("").partition("─ Run ─")[2]
    assert sorted(re.findall(r"^│ (\S+)", panels, re.MULTILINE)) == COMMANDS


def test_completion_offers_every_command_by_the_name_that_runs_it(capsys, monkeypatch):
    monkeypatch.setenv("_KAFKATRIAL_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "kafkatrial ")
    monkeypatch.setenv("COMP_CWORD", "1")
    with pytest.raises(SystemExit):
        run_command([])
    assert sorted(capsys.readouterr().out.split()) == COMMANDS


def test_broker_has_the_same_help_with_typer_and_without(help_of, capsys):
    """`kafkatrial.__main__` runs `broker` without Typer; Typer only lists the command and completes its name."""
    with_typer = help_of("broker")
    with pytest.raises(SystemExit):
        run_broker(["--help"])
    without_typer = capsys.readouterr().out
    assert with_typer.split() == without_typer.split()
    assert without_typer.startswith("usage: kafkatrial broker")
