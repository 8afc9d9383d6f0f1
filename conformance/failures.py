"""A violation on disk: `failures/<n>/` with all that it takes to reproduce it.

- `finding.json`: the `RequirementJudged` event.
- `repro.py`: the shrunk script as a program.
- `trial.json`: the same script as a saved trial, if it is concurrent; `kafkatrial replay` runs it on any target.
- `README.md`: what was promised, what was seen, and the one command that shows it again.
"""

import json
from pathlib import Path

from conformance.events import RequirementJudged
from conformance.requirements.requirement import Requirement

_README = """# {requirement} on {target}

{text}

- Source: {sources}
- Expected: {expected}
- Actual: {actual}
- Seen again when run again: {again}

Run it again:

    {reproduce}

{program}{trial}"""
_PROGRAM = "Or the shrunk script alone:\n\n    python repro.py\n"
_TRIAL = "\nOr on another target:\n\n    kafkatrial replay trial.json --target apache-kafka\n"


def save_failure(directory: Path, requirement: Requirement, judged: RequirementJudged, trial: str) -> None:
    """Write one violation to a new directory. Raises `OSError`.

    :param trial: document of the saved trial; empty: there is none.
    """
    directory.mkdir(parents=True)
    finding = json.dumps(judged.as_json(), indent=2, default=str)
    (directory / "finding.json").write_text(finding + "\n", encoding="utf-8")
    if judged.program:
        (directory / "repro.py").write_text(judged.program, encoding="utf-8")
    if trial:
        (directory / "trial.json").write_text(trial, encoding="utf-8")
    (directory / "README.md").write_text(_readme(requirement, judged, has_trial=bool(trial)), encoding="utf-8")


def _readme(requirement: Requirement, judged: RequirementJudged, *, has_trial: bool) -> str:
    return _README.format(
        requirement=requirement.id,
        target=judged.target,
        text=f"{requirement.level}: {requirement.text}",
        sources="; ".join(source.title for source in requirement.sources),
        expected=judged.expected or "see the judgement in finding.json",
        actual=judged.actual or judged.reason,
        again="no, it is flaky" if judged.flaky else "yes",
        reproduce=judged.reproduce,
        program=_PROGRAM if judged.program else "",
        trial=_TRIAL if has_trial else "",
    )
