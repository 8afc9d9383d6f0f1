"""The document of a saved trial: a JSON object with the trial, its version, and facts such as the violation it shows.

`kafkatrial replay` reads every document of this form: a trial that a simulation, a chaos session or a failed
requirement has saved runs on any target.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from conformance.trial.version_1 import upgraded
from conformance.value_json import NotAValueError, from_json, printed, to_json

VERSION: Final = 2
"""Version of the values in a trial. It is raised by a change that alters the meaning of an older document."""
_VERSION: Final = "trial_version"
_TRIAL: Final = "trial"


def document(trial: object, facts: Mapping[str, object]) -> str:
    """Return the document of a trial, as text."""
    return json.dumps({_VERSION: VERSION, **facts, _TRIAL: to_json(trial)}, indent=1) + "\n"


def trial_of(found: object, wanted: Any) -> Any:
    """Return the trial in a document, as a value of one of the wanted types.

    Raises `NotAValueError`.
    """
    if not isinstance(found, Mapping) or _TRIAL not in found:
        raise NotAValueError("not a saved trial: an object with the field trial is expected")
    version = found.get(_VERSION)
    if version not in {1, VERSION} or type(version) is not int:
        raise NotAValueError(f"{_VERSION}: {printed(version)}; this kafkatrial reads versions 1 and {VERSION}")
    return from_json(wanted, upgraded(found[_TRIAL]) if version == 1 else found[_TRIAL])
