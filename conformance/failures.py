"""Directories of violations: `failures/<n>/` has the files that reproduce violation n.

- `finding.json`: the `Finding`, as the event `requirement-judged` has it.
- `repro.py`: the shrunk script as a program.
- `steps.txt`: for a script of single requests, each request with its decoded response.
- `trial.json`: for a concurrent script, the same script as a saved trial, which `kafkatrial replay` runs on any target.
- `README.md`: the requirement, the expected and the actual behaviour, and the command that reproduces the violation.
"""

import json
import os
import shlex
from pathlib import Path
from typing import Final

from conformance.events import RequirementJudged
from conformance.requirements.requirement import Requirement
from fixtures.targets.connection_settings import VARIABLE
from linearizability.finding import Finding

STEPS_FILE: Final = "steps.txt"
_README = """# {requirement} on {target}

{text}

- Source: {sources}
- Expected: {expected}
- Actual: {actual}
- Reproduced by a second run: {again}

Run it again:

    {reproduce}

{program}{trial}{steps}"""
_PROGRAM = "Or the shrunk script alone:\n\n    {environment}python repro.py\n"
_TRIAL = "\nOr on another target:\n\n    kafkatrial replay trial.json --target apache-kafka\n"
_STEPS = f"\n{STEPS_FILE} has each request of the script with its response.\n"


def save_failure(directory: Path, requirement: Requirement, found: Finding) -> None:
    """Write one violation to a new directory. Raises `OSError`."""
    directory.mkdir(parents=True)
    document = json.dumps(RequirementJudged(found).as_json(), indent=2)
    (directory / "finding.json").write_text(document + "\n", encoding="utf-8")
    if found.program:
        (directory / "repro.py").write_text(found.program, encoding="utf-8")
    if found.steps:
        text = found.steps + "\n"
        (directory / STEPS_FILE).write_text(text, encoding="utf-8", errors="backslashreplace")
    if found.trial:
        (directory / "trial.json").write_text(found.trial, encoding="utf-8")
    (directory / "README.md").write_text(_readme(requirement, found), encoding="utf-8")


def _readme(requirement: Requirement, found: Finding) -> str:
    return _README.format(
        requirement=requirement.id,
        target=found.target,
        text=f"{requirement.level}: {requirement.text}",
        sources="; ".join(source.title for source in requirement.sources),
        expected=found.expected or "see the judgement in finding.json",
        actual=found.actual or found.reason,
        again="no, it is flaky" if found.flaky else "yes",
        reproduce=found.reproduce,
        program=_PROGRAM.format(environment=_environment()) if found.program else "",
        trial=_TRIAL if found.trial else "",
        steps=_STEPS if found.steps else "",
    )


def _environment() -> str:
    """Return the assignment of the variable that names the file of client settings; empty if this run has none."""
    file = os.environ.get(VARIABLE)
    return f"{VARIABLE}={shlex.quote(file)} " if file else ""
