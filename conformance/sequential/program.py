"""Scripts printed as Python programs.

`source` returns a script as an expression. `program` returns a file that runs the script again by calling `show`.
"""

import argparse
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from typing import Any, Final

from conformance.printed_programs import (
    EXIT_CODES,
    exit_code_without_verdict,
    print_output,
    target_of_program,
    targets_argument,
)
from conformance.sequential.connections import TargetDown
from conformance.sequential.expectation import Expectation, mismatches
from conformance.sequential.model import expected
from conformance.sequential.response import Response
from conformance.sequential.routing import NotReady
from conformance.sequential.session import Session
from conformance.sequential.steps import Script
from fixtures.clients.raw import UnsupportedApi
from fixtures.targets.target import Target, TargetError
from linearizability.judgement import Verdict
from linearizability.printable import in_cell, one_line

_WIDTH: Final = 110
_REPEATED_FROM: Final = 24
"""Minimum length of a repeated character that is printed as a product, such as `b'x' * 24`."""

_PROGRAM: Final = '''"""Reproduction of {requirement} on {target}. The argument may name another target."""

from kafkatrial.suite import activate

activate()

import chaos.targets  # noqa: E402, F401 - registers the targets `simulation` and `defective:NAME`
from conformance.sequential.program import show  # noqa: E402
from conformance.sequential.steps import *  # noqa: E402, F403

SCRIPT = {script}

if __name__ == "__main__":
    show(SCRIPT, requirement="{requirement}", target="{target}", nodes={nodes}{targets})
'''


def source(value: Any, indent: int = 0) -> str:
    """Return a value of `steps` as a Python expression, without fields that have their default value."""
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
    if isinstance(value, tuple) and len(value) >= _REPEATED_FROM and all(item == value[0] for item in value):
        return f"({_flat(value[0])},) * {len(value)}"
    if isinstance(value, tuple):
        return "(" + ", ".join(map(_flat, value)) + ("," if len(value) == 1 else "") + ")"
    if isinstance(value, str | bytes) and len(value) >= _REPEATED_FROM and len(set(value)) == 1:
        return f"{value[:1]!r} * {len(value)}"
    if is_dataclass(value):
        return f"{type(value).__name__}({', '.join(name + _flat(item) for name, item in _arguments(value))})"
    return repr(value)


def _arguments(value: Any) -> list[tuple[str, Any]]:
    """Return (`name=`, value) of each field whose value is not its default.

    The name is empty for the first field if it has no default.
    """
    found = []
    for place, item in enumerate(fields(value)):
        content = getattr(value, item.name)
        default = item.default_factory() if item.default_factory is not MISSING else item.default
        if default is MISSING or content != default:
            found.append(("" if place == 0 and default is MISSING else f"{item.name}=", content))
    return found


def program(script: Script, *, requirement: str, target: str, nodes: int, others: Sequence[str] = ()) -> str:
    """Return a Python file that runs the script on a new target, and prints each response and its unexpected fields.

    :param others: other targets that the argument of the program is likely to name.
    """
    targets = targets_argument(target, *others)
    return _PROGRAM.format(script=source(script), requirement=requirement, target=target, nodes=nodes, targets=targets)


def show(script: Script, *, requirement: str, target: str, nodes: int, targets: str = "") -> None:
    """Run a printed program: exit with 1 if a response is not as expected or the target goes down, with 0 otherwise.

    If the script cannot run, print the reason in one line to standard error, and exit with the same code
    as the commands of kafkatrial.

    :param targets: file with the table of the target, if it has one.
    """
    parser = argparse.ArgumentParser(description=f"Run a script that violated {requirement}.")
    parser.add_argument(
        "target",
        nargs="?",
        default=target,
        help="Target of the script: KIND[:VERSION] or bootstrap:HOST:PORT (default: %(default)s).",
    )
    chosen = parser.parse_args().target
    try:
        with target_of_program(chosen, written_for=target, nodes=nodes, targets=targets) as started:
            wrong = _show_on(started, script, requirement)
    except (TargetError, TargetDown, NotReady, UnsupportedApi) as error:
        print(one_line(error), file=sys.stderr)  # noqa: T201
        raise SystemExit(exit_code_without_verdict(error)) from error
    raise SystemExit(EXIT_CODES[Verdict.VIOLATION if wrong else Verdict.OK])


def _show_on(target: Target, script: Script, requirement: str) -> int:
    """Print each step with its response; return the number of fields that are not as expected.

    If the target goes down during a step, print this step and the reason; that counts as one field.
    """
    print_output(f"{requirement} on {target.name}")
    with Session(target, f"repro-{time.time_ns():x}") as session:
        try:
            responses = session.run(script)
        except TargetDown as down:
            if down.step is None:
                raise
            print_output(f"{down.step + 1}. {source(script.steps[down.step])}")
            print_output(f"   ! the broker went down: {one_line(down)}")
            return 1
        expectations = expected(session.pinned(script))
    print_output("\n".join(transcript(script, responses, expectations)))
    return sum(len(mismatches(*pair)) for pair in zip(expectations, responses, strict=True))


def transcript(script: Script, responses: Sequence[Response], expectations: Sequence[Expectation]) -> Iterator[str]:
    """Yield each step, its decoded response, and the fields that are not as expected."""
    steps = zip(script.steps, responses, expectations, strict=True)
    for number, (step, response, expectation) in enumerate(steps, start=1):
        yield f"{number}. {source(step)}"
        yield f"   {in_cell(_line(response))}"
        for wrong in mismatches(expectation, response):
            yield in_cell(f"   ! {wrong.field}: expected {wrong.expected}, was {wrong.actual}")


def _line(response: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in response.items())
