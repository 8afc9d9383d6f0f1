"""The counterexamples that were found for the defects: for each the smallest trial, with the seed that gave it.

They lie beside this file as `counterexamples/NAME.json`. What is in them was really found: `keep` writes what shrinking
has come to, and nobody else does.
"""

import json
from pathlib import Path
from typing import Any, Final

from chaos.campaign.counterexample import Counterexample
from chaos.trial import Trial
from conformance.trial_document import document, trial_of

COUNTEREXAMPLES: Final = Path(__file__).parent / "counterexamples"


def saved_counterexample(defect: str) -> Counterexample | None:
    """What was found for a defect; null where nothing was, or where a requirement catches it."""
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
    """Save a counterexample in the place of the one that is there."""
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
