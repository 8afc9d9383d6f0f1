"""Document of a saved trial: a JSON object with the trial, a version, and facts such as the violation that it shows.

Simulations, chaos sessions and failed requirements all save their trials in this form. `kafkatrial replay` reads it and
runs the trial on any target.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from conformance.trial.version_1 import upgraded
from conformance.value_json import NotAValueError, from_json, printed, to_json

VERSION: Final = 2
"""Version of the document. Increment it if a change gives saved trials another meaning, and convert them on reading."""
_VERSION_FIELD: Final = "trial_version"
_TRIAL_FIELD: Final = "trial"


def document(trial: object, facts: Mapping[str, object]) -> str:
    """Return the document of a trial, as text.

    :param facts: additional fields of the document.
    """
    return json.dumps({_VERSION_FIELD: VERSION, **facts, _TRIAL_FIELD: to_json(trial)}, indent=1) + "\n"


def trial_of(found: object, wanted: Any) -> Any:
    """Return the trial in a document.

    :param found: the parsed JSON of the document.
    :param wanted: type hint of the trial.
    :raises NotAValueError: the JSON is not a document, has another version, or its trial is not of the wanted type.
    """
    if not isinstance(found, Mapping) or _TRIAL_FIELD not in found:
        raise NotAValueError(f'not a saved trial: an object with the field "{_TRIAL_FIELD}" is expected')
    version = found.get(_VERSION_FIELD)
    if type(version) is not int or version not in {1, VERSION}:
        raise NotAValueError(f"{_VERSION_FIELD}: {printed(version)}; this kafkatrial reads versions 1 and {VERSION}")
    trial = found[_TRIAL_FIELD]
    return from_json(wanted, upgraded(trial) if version == 1 else trial)
