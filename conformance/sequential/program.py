"""Scripts as Python.

`source` prints a script, `program` makes of it a file that runs it again, and `show` is what that file does.
"""

import argparse
import sys
import time
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from typing import Any, Final

from conformance.printed_programs import EXIT_CODES, exit_code_without_verdict, target_of_program
from conformance.sequential.connections import TargetDown
from conformance.sequential.expectation import mismatches
from conformance.sequential.model import expected
from conformance.sequential.session import NotReady, Session
from conformance.sequential.steps import Script
from fixtures.clients.raw import UnsupportedApi
from fixtures.targets.target import Target, TargetError
from linearizability.judgement import Verdict

_WIDTH: Final = 110
_REPEATED_FROM: Final = 24
"""Strings of one character print as a product from this length on."""

_PROGRAM: Final = '''"""{requirement} on {target}, again. Another target's name may be given."""

from kafkatrial.suite import activate

activate()

import chaos.targets  # noqa: E402, F401 - registers the targets `simulation` and `defective:NAME`
from conformance.sequential.program import show  # noqa: E402
from conformance.sequential.steps import *  # noqa: E402, F403

SCRIPT = {script}

if __name__ == "__main__":
    show(SCRIPT, requirement="{requirement}", target="{target}", nodes={nodes})
'''


def source(value: Any, indent: int = 0) -> str:
    """A value of `steps` as an expression that gives it back; fields with their default value are left out."""
    flat = _flat(value)
    if len(flat) + indent <= _WIDTH:
        return flat
    inner = " " * (indent + 4)
    if isinstance(value, tuple):
        return "(\n" + "".join(f"{inner}{source(item, indent + 4)},\n" for item in value) + " " * indent + ")"
    if is_dataclass(value):
        arguments = "".join(f"{inner}{name}{source(item, indent + 4)},\n" for name, item in _arguments(value))
        return f"{type(value).__name__}(\n{arguments}{' ' * indent})"
    return flat


def _flat(value: Any) -> str:
    if isinstance(value, Enum):
        return f"{type(value).__name__}.{value.name}"
    if isinstance(value, tuple):
        return "(" + ", ".join(map(_flat, value)) + ("," if len(value) == 1 else "") + ")"
    if isinstance(value, str | bytes) and len(value) >= _REPEATED_FROM and len(set(value)) == 1:
        return f"{value[:1]!r} * {len(value)}"
    if is_dataclass(value):
        return f"{type(value).__name__}({', '.join(name + _flat(item) for name, item in _arguments(value))})"
    return repr(value)


def _arguments(value: Any) -> list[tuple[str, Any]]:
    """(`name=`, value) of the fields that are not at their default; a first field without a default needs no name."""
    found = []
    for place, item in enumerate(fields(value)):
        content = getattr(value, item.name)
        default = item.default_factory() if item.default_factory is not MISSING else item.default
        if default is MISSING or content != default:
            found.append(("" if place == 0 and default is MISSING else f"{item.name}=", content))
    return found


def program(script: Script, *, requirement: str, target: str, nodes: int) -> str:
    """A Python file that runs the script on a fresh target and prints each answer beside what Kafka says."""
    return _PROGRAM.format(script=source(script), requirement=requirement, target=target, nodes=nodes)


def show(script: Script, *, requirement: str, target: str, nodes: int) -> None:
    """The main function of a printed program: exits with 1 where an answer is not Kafka's, 0 where all are.

    Where the script cannot run it says why in one line on standard error, and exits as every command of ours does.
    """
    parser = argparse.ArgumentParser(description=f"Run the script that broke {requirement}.")
    parser.add_argument("target", nargs="?", default=target, help="KIND[:VERSION] or bootstrap:HOST:PORT")
    chosen = parser.parse_args().target
    try:
        with target_of_program(chosen, written_for=target, nodes=nodes) as started:
            wrong = _show_on(started, script, requirement)
    except (TargetError, TargetDown, NotReady, UnsupportedApi) as error:
        print(error, file=sys.stderr)  # noqa: T201
        raise SystemExit(exit_code_without_verdict(error)) from error
    raise SystemExit(EXIT_CODES[Verdict.VIOLATION if wrong else Verdict.OK])


def _show_on(target: Target, script: Script, requirement: str) -> int:
    """Print each step with its answer; returns how many fields are not as they ought to be."""
    print(f"{requirement} on {target.name}")  # noqa: T201 - a program's output
    wrong = 0
    with Session(target, f"repro-{time.time_ns():x}") as session:
        outcomes = zip(script.steps, session.run(script), expected(script), strict=True)
        for number, (step, answer, expectation) in enumerate(outcomes, start=1):
            print(f"{number}. {source(step)}\n   {_line(answer)}")  # noqa: T201
            for mismatch in mismatches(expectation, answer):
                wrong += 1
                print(f"   ! {mismatch.field}: expected {mismatch.expected}, was {mismatch.actual}")  # noqa: T201
    return wrong


def _line(answer: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in answer.items())
