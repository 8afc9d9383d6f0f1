"""Saved counterexamples of the defects: for each the smallest trial, with the seed of the trial before shrinking.

They are stored beside this file as `counterexamples/NAME.json`. Only `keep` writes them.
"""

import json
from pathlib import Path
from typing import Any, Final

from chaos.campaign.counterexample import Counterexample
from conformance.trial.document import document, trial_of
from conformance.trial.trial import Trial

COUNTEREXAMPLES: Final = Path(__file__).parent / "counterexamples"


def saved_counterexample(defect: str) -> Counterexample | None:
    """Return the saved counterexample of a defect; None if there is none.

    There is none for a defect that a requirement detects.
    """
    path = COUNTEREXAMPLES / f"{defect}.json"
    if not path.exists():
        return None
    facts: Any = json.loads(path.read_text(encoding="utf-8"))
    return Counterexample(
        trial=trial_of(facts, Trial),
        name=facts["name"],
        text=facts["text"],
        seed=facts["seed"],
        defect=defect,
        at_ms=facts["at_ms"],
        digest=facts["digest"],
    )


def keep(found: Counterexample) -> Path:
    """Save a counterexample, and replace an earlier one."""
    COUNTEREXAMPLES.mkdir(exist_ok=True)
    path = COUNTEREXAMPLES / f"{found.defect}.json"
    facts = {
        "defect": found.defect,
        "name": found.name,
        "text": found.text,
        "seed": found.seed,
        "at_ms": found.at_ms,
        "digest": found.digest,
    }
    path.write_text(document(found.trial, facts), encoding="utf-8")
    return path
